// Package rates measures how often the program is wrong and how often it finds what is there, with
// the program itself: A/A experiments, in which every `different` is false, and experiments with a
// known slowdown, in which every verdict but `different, worse` is a miss.
//
// Each experiment is one call of the binary, with runs of 200 ms in the lab. Its outcome is appended
// to a log before the next begins, so the command may be stopped at any time and goes on where it
// was; the page in docs/ is written from the log after each.
package rates

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// options are the flags.
type options struct {
	study     study
	n         int
	binary    string
	cpus      []string
	log, page string
}

func parse(args []string) (options, error) {
	var o options
	var name, cpus string
	set := flag.NewFlagSet("rates", flag.ContinueOnError)
	set.StringVar(&name, "study", "aa", "aa or power")
	set.IntVar(&o.n, "n", 0, "experiments, those in the log included (default: 200 of aa, 50 of power)")
	set.StringVar(&o.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&cpus, "cpus", "", "run one experiment on each of these CPUs at a time, such as 0,1 (default: one on all)")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.cpus = strings.Split(cpus, ",")
	i := slices.IndexFunc(studies(), func(s study) bool { return s.name == name })
	if i < 0 {
		return o, fmt.Errorf("-study: %q is neither aa nor power", name)
	}
	o.study = studies()[i]
	if o.n == 0 {
		o.n = o.study.n
	}
	o.log = filepath.Join("bench", "rates", name+".ndjson")
	o.page = filepath.Join("docs", o.study.page)
	return o, nil
}

// Run carries out the experiments that the log lacks, and prints the page.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	version, err := versionOf(ctx, o.binary)
	if err != nil {
		return err
	}
	done, err := readLog(o.log)
	if err != nil {
		return err
	}
	if err := o.study.owns(done); err != nil {
		return fmt.Errorf("%s: %w", o.log, err)
	}
	l := &ledger{options: o, version: version, done: done}
	if err := l.measure(ctx); err != nil {
		return err
	}
	_, err = os.Stdout.Write(o.study.document(l.done))
	return err
}

// A ledger is the log while experiments are added to it.
type ledger struct {
	options
	version string
	mu      sync.Mutex
	done    []experiment
}

// measure carries out the experiments that the log lacks, one at a time on each CPU.
func (l *ledger) measure(ctx context.Context) error {
	seeds := make(chan uint64)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for _, cpu := range l.cpus {
		workers.Go(func() {
			for seed := range seeds {
				if err := l.one(ctx, cpu, seed); err != nil {
					cancel(err)
				}
			}
		})
	}
	missing := l.missing()
	for i := 0; i < len(missing) && ctx.Err() == nil; i++ {
		select {
		case seeds <- missing[i]:
		case <-ctx.Done():
		}
	}
	close(seeds)
	workers.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// missing lists the seeds that the log has no experiment of.
func (l *ledger) missing() []uint64 {
	var seeds []uint64
	for seed := uint64(1); seed <= uint64(l.n); seed++ {
		if !has(l.done, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// one carries out an experiment and writes it down; an interrupted one is not.
func (l *ledger) one(ctx context.Context, cpu string, seed uint64) error {
	x, err := l.study.measure(ctx, l.binary, cpu, seed)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("experiment %d: %w", seed, err)
	}
	x.Version = l.version
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := appendLog(l.log, x); err != nil {
		return err
	}
	l.done = append(l.done, x)
	fmt.Fprintln(os.Stderr, x.line(l.n))
	return os.WriteFile(l.page, l.study.document(l.done), 0o644)
}
