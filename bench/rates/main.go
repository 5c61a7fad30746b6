// Command rates measures how often the program is wrong and how often it finds what is there, with
// the program itself: A/A experiments, in which every `different` is false, and experiments with a
// known slowdown, in which every verdict but `different, worse` is a miss.
//
// Each experiment is one call of the binary, with runs of 200 ms in the lab. Its outcome is appended
// to a log before the next begins, so the command may be stopped at any time and goes on where it
// was; the page in docs/ is written from the log after each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	study     study
	n         int
	binary    string
	log, page string
}

func parse(args []string) (options, error) {
	var o options
	var name string
	set := flag.NewFlagSet("rates", flag.ContinueOnError)
	set.StringVar(&name, "study", "aa", "aa or power")
	set.IntVar(&o.n, "n", 0, "experiments, those in the log included (default: 200 of aa, 50 of power)")
	set.StringVar(&o.binary, "binary", "bin/knotmeter", "the program")
	if err := set.Parse(args); err != nil {
		return o, err
	}
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

func run(ctx context.Context, args []string) error {
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
	for seed := uint64(1); seed <= uint64(o.n); seed++ {
		if has(done, seed) {
			continue
		}
		x, err := o.study.measure(ctx, o.binary, seed)
		if ctx.Err() != nil {
			fmt.Fprintf(os.Stderr, "stopped; the next call goes on with experiment %d of %d\n", seed, o.n)
			return nil
		}
		if err != nil {
			return fmt.Errorf("experiment %d: %w", seed, err)
		}
		x.Version = version
		if err := appendLog(o.log, x); err != nil {
			return err
		}
		done = append(done, x)
		fmt.Fprintln(os.Stderr, x.line(o.n))
		if err := os.WriteFile(o.page, o.study.document(done), 0o644); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(o.study.document(done))
	return err
}
