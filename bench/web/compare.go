//go:build linux

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// closed compares requests per second of so many clients with wrk's.
func (b *bench) closed(ctx context.Context) error {
	var ours, theirs, ratios []float64
	for pair := range b.pairs {
		var x, y float64
		one := func() (err error) {
			f, err := b.ask(ctx, job{Clients: b.clients, Duration: b.duration})
			x = float64(f.Sent) / f.Elapsed
			return err
		}
		other := func() (err error) { y, err = b.wrk(ctx); return err }
		if err := alternate(pair, one, other); err != nil {
			return err
		}
		b.say("closed: ours %.0f/s, wrk %.0f/s, ratio %.3f\n", x, y, x/y)
		ours, theirs, ratios = append(ours, x), append(theirs, y), append(ratios, x/y)
	}
	x, y, r := stats.Median(ours), stats.Median(theirs), stats.Summarise(ratios)
	fmt.Printf("closed loop, %d clients: ours %.0f/s, wrk %.0f/s, ratio of medians %.3f, quartiles of ratios %.3f to %.3f "+
		"(wanted 0.8)\n", b.clients, x, y, x/y, r.Q1, r.Q3)
	return nil
}

func (b *bench) say(format string, a ...any) {
	if b.verbose {
		fmt.Printf(format, a...)
	}
}

// alternate lets the first one begin in every other pair.
func alternate(pair int, one, other func() error) error {
	if pair%2 == 1 {
		one, other = other, one
	}
	if err := one(); err != nil {
		return err
	}
	return other()
}

// wrk is requests per second.
func (b *bench) wrk(ctx context.Context) (float64, error) {
	seconds := max(1, int(b.duration.Seconds()))
	out, err := b.on(ctx, "wrk", "-t", "1", "-c", strconv.Itoa(b.clients), "-d", strconv.Itoa(seconds)+"s", b.url)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "Requests/sec:"); is {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("wrk said no rate: %s", out)
}

// Steps of the search for a rate: each is this much above the one before.
const (
	firstRate = 2000
	rateStep  = 1.19 // four to a doubling
	lastRate  = 100_000
)

// open compares the highest rate at which one request in a hundred is late by no more than the limit, per CPU second,
// with vegeta's. The rates are climbed in turn.
func (b *bench) open(ctx context.Context) error {
	vegeta, err := b.buildVegeta(ctx)
	if err != nil {
		return err
	}
	var ours, theirs, perOurs, perTheirs, ratios []float64
	for pair := range b.pairs {
		var x, y step
		one := func() (err error) {
			x, err = b.climb("ours", func(rate float64) (figure, error) { return b.ask(ctx, job{Rate: rate, Duration: b.duration}) })
			return err
		}
		other := func() (err error) {
			y, err = b.climb("vegeta", func(rate float64) (figure, error) { return b.vegeta(ctx, vegeta, rate) })
			return err
		}
		if err := alternate(pair, one, other); err != nil {
			return err
		}
		if y.rate == 0 {
			fmt.Printf("open: ours %.0f/s (%.0f per CPU second), vegeta keeps no rate at which the p99 of lateness is below %v\n", x.rate, x.perCPU, b.limit)
			continue
		}
		ours, theirs = append(ours, x.rate), append(theirs, y.rate)
		perOurs, perTheirs, ratios = append(perOurs, x.perCPU), append(perTheirs, y.perCPU), append(ratios, x.perCPU/y.perCPU)
		b.say("open: ours %.0f/s (%.0f per CPU second), vegeta %.0f/s (%.0f), ratio per CPU second %.2f\n",
			x.rate, x.perCPU, y.rate, y.perCPU, x.perCPU/y.perCPU)
	}
	if len(ratios) == 0 {
		return nil
	}
	x, y, r := stats.Median(ours), stats.Median(theirs), stats.Summarise(ratios)
	perX, perY := stats.Median(perOurs), stats.Median(perTheirs)
	fmt.Printf("open loop, p99 of lateness below %v: ours %.0f/s, vegeta %.0f/s, ratio %.2f; per CPU second ours %.0f, "+
		"vegeta %.0f, ratio of medians %.2f, quartiles of ratios %.2f to %.2f (wanted 2)\n",
		b.limit, x, y, x/y, perX, perY, perX/perY, r.Q1, r.Q3)
	return nil
}

// A step is a rate that was kept, and what it cost.
type step struct{ rate, perCPU float64 }

// climb finds the highest rate that is kept, or 0: it raises the rate until requests are left unanswered, or four rates
// in a row after one that was kept are not. A rate below the first one that is kept may have been too low: some sleep
// too long between few requests.
func (b *bench) climb(name string, do func(rate float64) (figure, error)) (step, error) {
	var best step
	for rate, missed := float64(firstRate), 0; rate <= lastRate && missed < 4; rate *= rateStep {
		f, err := do(math.Round(rate))
		if err != nil {
			return best, err
		}
		b.say("  %s %.0f/s: %d answered, %d failed, late p99 %.3f ms, CPU %.2f s\n",
			name, rate, f.Sent, f.Failed, f.LateP99*1e3, f.CPU)
		switch planned := math.Round(rate) * b.duration.Seconds(); {
		case f.Failed > 0 || float64(f.Sent) < 0.99*planned:
			missed = 4
		case f.LateP99 <= b.limit.Seconds():
			best, missed = step{rate, float64(f.Sent) / f.CPU}, 0
		case best.rate > 0:
			missed++
		}
	}
	return best, nil
}

func (b *bench) vegeta(ctx context.Context, program string, rate float64) (figure, error) {
	out, err := b.on(ctx, program, "-url", b.url, "-rate", strconv.Itoa(int(rate)), "-duration", b.duration.String())
	if err != nil {
		return figure{}, err
	}
	var f figure
	err = json.Unmarshal(out, &f)
	f.Sent -= f.Failed
	return f, err
}

// memory runs once for the whole duration and tells how the size of the process goes.
func (b *bench) memory(ctx context.Context) error {
	f, err := b.ask(ctx, job{Rate: b.rate, Duration: b.duration, RSS: b.duration / 60})
	if err != nil {
		return err
	}
	fmt.Printf("%.0f/s: %d answered, %d failed, CPU %.1f s in %.0f s\n", b.rate, f.Sent, f.Failed, f.CPU, f.Elapsed)
	return nil
}
