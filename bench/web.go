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

// A webBench is the flags, and the server that all ask.
type webBench struct {
	only           string
	pairs, clients int
	duration       time.Duration
	limit          time.Duration
	rate           float64
	realtime       bool
	verbose        bool
	server         *httpServer
}

// benchWeb compares the generator of requests over HTTP with wrk in a closed loop, and with vegeta in an open one: on
// the same server, on the same CPUs, in interleaved pairs whose order alternates. It needs wrk, taskset and two CPUs.
func benchWeb(ctx context.Context, args []string) (err error) {
	var b webBench
	set := flag.NewFlagSet("web", flag.ContinueOnError)
	set.StringVar(&b.only, "only", "", "closed, open or memory; empty is the first two")
	set.IntVar(&b.pairs, "pairs", 7, "interleaved pairs per comparison")
	set.IntVar(&b.clients, "clients", 32, "of the closed loop")
	set.DurationVar(&b.duration, "duration", 2*time.Second, "of a run; of memory, the whole of it")
	set.DurationVar(&b.limit, "limit", time.Millisecond, "of the 99th percentile of lateness")
	set.Float64Var(&b.rate, "rate", 5000, "requests per second of memory")
	set.BoolVar(&b.realtime, "realtime", false,
		"all sides go before whatever else runs (SCHED_RR), on a machine that others use too; takes root")
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
		return b.memory(ctx)
	}
	if b.only == "" || b.only == "closed" {
		if err := b.closed(ctx); err != nil {
			return err
		}
	}
	if b.only == "" || b.only == "open" {
		return b.open(ctx)
	}
	return nil
}

func (b *webBench) say(format string, a ...any) {
	if b.verbose {
		fmt.Printf(format, a...)
	}
}

// ask runs the generator.
func (b *webBench) ask(ctx context.Context, j job) (figure, error) {
	j.Path, j.Connections, j.Window = "/", 16, b.duration
	return b.server.ask(ctx, j, b.realtime)
}

// closed compares requests per second of so many clients with wrk's.
func (b *webBench) closed(ctx context.Context) error {
	ours := func() (float64, error) {
		f, err := b.ask(ctx, job{Clients: b.clients})
		return float64(f.OK) / b.duration.Seconds(), err
	}
	wrk := func() (float64, error) { return b.wrk(ctx) }
	pairs, err := interleave(b.pairs, ours, wrk, func(p pair[float64]) {
		b.say("closed: ours %.0f/s, wrk %.0f/s, ratio %.3f\n", p.ours, p.theirs, p.ours/p.theirs)
	})
	if err != nil {
		return err
	}
	r := ratioOf(pairs, func(rate float64) float64 { return rate })
	fmt.Printf("closed loop, %d clients: ours %.0f/s, wrk %.0f/s, ratio of medians %.3f, "+
		"quartiles of ratios %.3f to %.3f (wanted 0.8)\n", b.clients, r.ours, r.theirs, r.of, r.q1, r.q3)
	return nil
}

// wrk is requests per second.
func (b *webBench) wrk(ctx context.Context) (float64, error) {
	seconds := max(1, int(b.duration.Seconds()))
	out, err := output(pinned(ctx, clientCPU, b.realtime,
		"wrk", "-t", "1", "-c", strconv.Itoa(b.clients), "-d", strconv.Itoa(seconds)+"s", b.server.URL))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "Requests/sec:"); is {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("wrk printed no rate: %s", out)
}

// Steps of the search for a rate: each is this much above the one before.
const (
	firstRate = 2000
	rateStep  = 1.19 // four to a doubling
	lastRate  = 100_000
)

// open compares the highest rate at which one request in a hundred is late by no more than the limit, per CPU second,
// with vegeta's. The rates are climbed in turn.
func (b *webBench) open(ctx context.Context) error {
	program, remove, err := buildVegeta(ctx)
	if err != nil {
		return err
	}
	defer remove()
	ours := func() (step, error) {
		return b.climb("ours", func(rate float64) (figure, error) { return b.ask(ctx, job{Rate: rate}) })
	}
	vegeta := func() (step, error) {
		return b.climb("vegeta", func(rate float64) (figure, error) {
			return figureOf(pinned(ctx, clientCPU, b.realtime, program,
				"-url", b.server.URL, "-rate", strconv.Itoa(int(rate)), "-duration", b.duration.String()))
		})
	}
	var kept []pair[step] // by both
	_, err = interleave(b.pairs, ours, vegeta, func(p pair[step]) {
		x, y := p.ours, p.theirs
		if y.rate == 0 {
			fmt.Printf("open: ours %.0f/s (%.0f per CPU second), "+
				"vegeta keeps no rate at which the p99 of lateness is below %v\n", x.rate, x.perCPU, b.limit)
			return
		}
		b.say("open: ours %.0f/s (%.0f per CPU second), vegeta %.0f/s (%.0f), ratio per CPU second %.2f\n",
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
		rate.ours, rate.theirs, rate.of, perCPU.ours, perCPU.theirs, perCPU.of, perCPU.q1, perCPU.q3)
	return nil
}

// buildVegeta compiles the program of bench/vegeta into a directory that remove removes.
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

// A step is a rate that was kept, and what it cost.
type step struct{ rate, perCPU float64 }

// climb finds the highest rate that is kept, or 0: it raises the rate until requests are left unanswered, or four rates
// in a row after one that was kept are not. A rate below the first one that is kept may have been too low: some sleep
// too long between few requests.
func (b *webBench) climb(name string, do func(rate float64) (figure, error)) (step, error) {
	var best step
	for rate, missed := float64(firstRate), 0; rate <= lastRate && missed < 4; rate *= rateStep {
		f, err := do(math.Round(rate))
		if err != nil {
			return best, err
		}
		b.say("  %s %.0f/s: %d answered, %d failed, late p99 %.3f ms, CPU %.2f s\n",
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

// memory runs once for the whole duration while the process prints its size.
func (b *webBench) memory(ctx context.Context) error {
	f, err := b.ask(ctx, job{Rate: b.rate, SizeEvery: b.duration / 60})
	if err != nil {
		return err
	}
	fmt.Printf("%.0f/s: %d answered, %d failed, CPU %.1f s in %.0f s\n", b.rate, f.OK, f.Failed, f.CPU, f.Elapsed)
	return nil
}
