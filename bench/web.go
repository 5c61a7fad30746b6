package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A webBench holds the flags of the subcommand and the server.
type webBench struct {
	only           string
	pairs, clients int
	duration       time.Duration
	limit          time.Duration // of the 99th percentile of lateness
	rate           float64       // requests per second when measuring memory
	realtime       bool
	verbose        bool
	server         *httpServer
}

// benchWeb compares the HTTP load generator with wrk in a closed loop and with vegeta in an open loop, on the same
// server and CPUs, in interleaved pairs in alternating order. It needs wrk, taskset and two CPUs.
func benchWeb(ctx context.Context, args []string) (err error) {
	var b webBench
	set := flag.NewFlagSet("web", flag.ContinueOnError)
	set.StringVar(&b.only, "only", "", "closed, open or memory (default: closed and open)")
	set.IntVar(&b.pairs, "pairs", 7, "interleaved pairs per comparison")
	set.IntVar(&b.clients, "clients", 32, "clients of the closed loop")
	set.DurationVar(&b.duration, "duration", 2*time.Second, "duration of a run; of -only memory, the whole duration")
	set.DurationVar(&b.limit, "limit", time.Millisecond, "limit of the 99th percentile of lateness")
	set.Float64Var(&b.rate, "rate", 5000, "requests per second of -only memory")
	set.BoolVar(&b.realtime, "realtime", false,
		"give client and server priority over other processes of a busy machine (SCHED_RR); needs root")
	set.BoolVar(&b.verbose, "v", false, "print every run")
	if err := set.Parse(args); err != nil {
		return err
	}
	if b.rate <= 0 || b.duration <= 0 || b.pairs < 1 || b.clients < 1 {
		return errors.New("-rate, -duration, -pairs and -clients are above 0")
	}
	if runtime.NumCPU() < 2 {
		return errors.New("client and server each need a CPU of their own")
	}
	if b.server, err = startServer(ctx, plainServer, b.realtime); err != nil {
		return err
	}
	defer b.server.stop()
	if b.only == "memory" {
		return b.measureMemory(ctx)
	}
	if b.only == "" || b.only == "closed" {
		if err := b.compareClosed(ctx); err != nil {
			return err
		}
	}
	if b.only == "" || b.only == "open" {
		return b.compareOpen(ctx)
	}
	return nil
}

// logf prints a line if -v is given.
func (b *webBench) logf(format string, a ...any) {
	if b.verbose {
		fmt.Printf(format, a...)
	}
}

// runJob runs the generator.
func (b *webBench) runJob(ctx context.Context, j job) (figure, error) {
	j.Path, j.Connections, j.Window = "/", 16, b.duration
	return b.server.runJob(ctx, j, b.realtime)
}

// compareClosed compares requests per second of a closed loop with wrk's.
func (b *webBench) compareClosed(ctx context.Context) error {
	ours := func() (float64, error) {
		f, err := b.runJob(ctx, job{Clients: b.clients})
		return float64(f.OK) / b.duration.Seconds(), err
	}
	wrk := func() (float64, error) { return b.wrk(ctx) }
	pairs, err := interleave(b.pairs, ours, wrk, func(p pair[float64]) {
		b.logf("closed: ours %.0f/s, wrk %.0f/s, ratio %.3f\n", p.ours, p.theirs, p.ours/p.theirs)
	})
	if err != nil {
		return err
	}
	r := ratioOf(pairs, func(rate float64) float64 { return rate })
	fmt.Printf("closed loop, %d clients: ours %.0f/s, wrk %.0f/s, ratio of medians %.3f, "+
		"quartiles of ratios %.3f to %.3f (wanted 0.8)\n", b.clients, r.ours, r.theirs, r.ofMedians, r.q1, r.q3)
	return nil
}

// wrk runs wrk and returns its requests per second.
func (b *webBench) wrk(ctx context.Context) (float64, error) {
	seconds := max(1, int(b.duration.Seconds()))
	out, err := output(pinnedCommand(ctx, clientCPU, b.realtime,
		"wrk", "-t", "1", "-c", strconv.Itoa(b.clients), "-d", strconv.Itoa(seconds)+"s", b.server.URL))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "Requests/sec:"); found {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("wrk printed no rate: %s", out)
}

// Rates per second that findHighestRate tries, and the factor between two of them.
const (
	firstRate = 2000
	rateStep  = 1.19 // four to a doubling
	lastRate  = 100_000
)

// compareOpen compares the highest rates at which the 99th percentile of lateness is within the limit with vegeta's, in
// requests per second and per CPU second.
func (b *webBench) compareOpen(ctx context.Context) error {
	program, remove, err := buildVegeta(ctx)
	if err != nil {
		return err
	}
	defer remove()
	ours := func() (step, error) {
		return b.findHighestRate("ours", func(rate float64) (figure, error) { return b.runJob(ctx, job{Rate: rate}) })
	}
	vegeta := func() (step, error) {
		return b.findHighestRate("vegeta", func(rate float64) (figure, error) {
			return runForFigure(pinnedCommand(ctx, clientCPU, b.realtime, program,
				"-url", b.server.URL, "-rate", strconv.Itoa(int(rate)), "-duration", b.duration.String()))
		})
	}
	var kept []pair[step] // in which both programs kept a rate
	_, err = interleave(b.pairs, ours, vegeta, func(p pair[step]) {
		x, y := p.ours, p.theirs
		if y.rate == 0 {
			fmt.Printf("open: ours %.0f/s (%.0f per CPU second), "+
				"vegeta keeps no rate at which the p99 of lateness is below %v\n", x.rate, x.perCPU, b.limit)
			return
		}
		b.logf("open: ours %.0f/s (%.0f per CPU second), vegeta %.0f/s (%.0f), ratio per CPU second %.2f\n",
			x.rate, x.perCPU, y.rate, y.perCPU, x.perCPU/y.perCPU)
		kept = append(kept, p)
	})
	if err != nil || len(kept) == 0 {
		return err
	}
	rate := ratioOf(kept, func(s step) float64 { return s.rate })
	perCPU := ratioOf(kept, func(s step) float64 { return s.perCPU })
	fmt.Printf("open loop, p99 of lateness below %v: ours %.0f/s, vegeta %.0f/s, ratio %.2f; per CPU second ours %.0f, "+
		"vegeta %.0f, ratio of medians %.2f, quartiles of ratios %.2f to %.2f (wanted 2)\n", b.limit,
		rate.ours, rate.theirs, rate.ofMedians, perCPU.ours, perCPU.theirs, perCPU.ofMedians, perCPU.q1, perCPU.q3)
	return nil
}

// buildVegeta compiles the program of bench/vegeta into a temporary directory, which remove deletes.
func buildVegeta(ctx context.Context) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "bench-web")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	_, file, _, _ := runtime.Caller(0)
	program = filepath.Join(dir, "vegeta")
	c := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(filepath.Dir(file), "vegeta"), "-o", program, ".")
	if out, err := c.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build vegeta: %w: %s", err, out)
	}
	return program, remove, nil
}

// A step is a rate within the limit of lateness.
type step struct{ rate, perCPU float64 } // requests per second and per CPU second

// findHighestRate returns the highest rate within the limit, or 0. It raises the rate until requests fail or remain
// unanswered, or until four rates in a row after one within the limit exceed it. Rates that are too low may exceed the
// limit as well, since some generators sleep too long between few requests.
func (b *webBench) findHighestRate(name string, do func(rate float64) (figure, error)) (step, error) {
	var best step
	for rate, missed := float64(firstRate), 0; rate <= lastRate && missed < 4; rate *= rateStep {
		f, err := do(math.Round(rate))
		if err != nil {
			return best, err
		}
		b.logf("  %s %.0f/s: %d answered, %d failed, late p99 %.3f ms, CPU %.2f s\n",
			name, rate, f.OK, f.Failed, f.LateP99*1e3, f.CPU)
		switch planned := math.Round(rate) * b.duration.Seconds(); {
		case f.Failed > 0 || float64(f.OK) < 0.99*planned:
			missed = 4
		case f.LateP99 <= b.limit.Seconds():
			best, missed = step{rate, float64(f.OK) / f.CPU}, 0
		case best.rate > 0:
			missed++
		}
	}
	return best, nil
}

// measureMemory runs the generator once for the whole duration; it prints its size sixty times.
func (b *webBench) measureMemory(ctx context.Context) error {
	f, err := b.runJob(ctx, job{Rate: b.rate, SizeEvery: b.duration / 60})
	if err != nil {
		return err
	}
	fmt.Printf("%.0f/s: %d answered, %d failed, CPU %.1f s in %.0f s\n", b.rate, f.OK, f.Failed, f.CPU, f.Elapsed)
	return nil
}
