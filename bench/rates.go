package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A studyRun runs the experiments of a study. Each is a line of the log.
type studyRun struct {
	study     study
	n         int // experiments wanted
	binary    string
	cpus      []string // each runs one experiment at a time; an empty name means all CPUs
	log, page string
	version   string
	mu        sync.Mutex
	done      []experiment
}

// parseRates parses the flags of the subcommand.
func parseRates(args []string) (*studyRun, error) {
	l := &studyRun{}
	var name, cpus string
	set := flag.NewFlagSet("rates", flag.ContinueOnError)
	names := strings.Join(apply(studies, func(s study) string { return s.name }), ", ")
	set.StringVar(&name, "study", "aa", "one of "+names)
	set.IntVar(&l.n, "n", 0, "experiments, those in the log included (default: the study's own number)")
	set.StringVar(&l.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&cpus, "cpus", "", "one experiment at a time on each of these CPUs, such as 0,1 (default: one on all)")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	l.cpus = strings.Split(cpus, ",")
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("-study: %q is none of %s", name, names)
	}
	l.study = studies[i]
	if l.study.cluster && cpus != "" {
		return nil, fmt.Errorf("-cpus: experiments of %s share a cluster, so there is one at a time", name)
	}
	if l.n == 0 {
		l.n = l.study.n
	}
	l.log, l.page = filepath.Join("bench", "rates", name+".ndjson"), filepath.Join("docs", l.study.page)
	return l, nil
}

// benchRates measures how often verdicts of the program are wrong or missed: in A/A experiments every `different` is
// false, and in experiments with a known slowdown every verdict but `different, worse` is a miss. It runs the
// experiments that the log lacks, and prints the page.
//
// Each experiment is one call of the binary with runs of 200 ms. Its outcome is appended to the log before the next one
// begins, so the command continues after an interruption. The page in docs/ is written from the log after each.
func benchRates(ctx context.Context, args []string) error {
	l, err := parseRates(args)
	if err != nil {
		return err
	}
	version, err := output(knotmeter(ctx, l.binary, "version"))
	if err != nil {
		return err
	}
	l.version = strings.TrimSpace(string(version))
	if l.done, err = readLog[experiment](l.log); err != nil {
		return err
	}
	if err := l.study.checkLog(l.done); err != nil {
		return fmt.Errorf("%s: %w", l.log, err)
	}
	if err := l.measure(ctx); err != nil {
		return err
	}
	_, err = os.Stdout.Write(l.study.document(l.done))
	return err
}

// measure runs the experiments that the log lacks, one at a time on each CPU.
func (l *studyRun) measure(ctx context.Context) error {
	missing := l.missing()
	seeds := make(chan uint64, len(missing))
	for _, seed := range missing {
		seeds <- seed
	}
	close(seeds)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for _, cpu := range l.cpus {
		workers.Go(func() {
			for seed := range seeds {
				if ctx.Err() != nil {
					return
				}
				if err := l.runOne(ctx, cpu, seed); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// missing returns the seeds without an experiment in the log.
func (l *studyRun) missing() []uint64 {
	var seeds []uint64
	for seed := uint64(1); seed <= uint64(l.n); seed++ {
		if !slices.ContainsFunc(l.done, func(x experiment) bool { return x.Seed == seed }) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// runOne runs an experiment and appends it to the log, unless it is interrupted.
func (l *studyRun) runOne(ctx context.Context, cpu string, seed uint64) error {
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
	fmt.Fprintln(os.Stderr, x.progressLine(l.n))
	return os.WriteFile(l.page, l.study.document(l.done), 0o644)
}

// readLog reads the experiments of a log, one per line. It cuts off a last line that a crash left incomplete, so that
// this experiment is repeated. A missing log is empty.
func readLog[E any](path string) ([]E, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var done []E
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var x E
		if err := json.Unmarshal(line, &x); err != nil {
			if i == len(lines)-1 {
				return done, os.Truncate(path, int64(len(text)-len(line)))
			}
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		done = append(done, x)
	}
	return done, nil
}

func appendLog[E any](path string, x E) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
