package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A memoryBenchmark compares one of our memory loops with the same one in C.
type memoryBenchmark struct {
	name      string
	loop, inC string    // names of the loop in both programs
	set       int       // bytes
	unit      unit.Unit // of bandwidth, or of the time of a load
	wanted    string    // ratio
}

// sameLoop is the wanted ratio of the same loop.
const sameLoop = "0.97 to 1.03"

// memoryBenchmarks lists the comparisons: in memory, and in the first cache, where a loop's own instructions show most.
// The C library's memcpy is not the same loop: it may use instructions that do not read what they overwrite.
var memoryBenchmarks = []memoryBenchmark{
	{"copy 256 MiB", "memory-copy", "copy", 256 << 20, unit.BytePerSecond, sameLoop},
	{"copy, memcpy", "memory-copy", "memcpy", 256 << 20, unit.BytePerSecond, ""},
	{"triad 384 MiB", "memory-triad", "triad", 384 << 20, unit.BytePerSecond, sameLoop},
	{"chase 256 MiB", "memory-latency", "chase", 256 << 20, unit.Second, sameLoop},
	{"chase 4 MiB", "memory-latency", "chase", 4 << 20, unit.Second, sameLoop},
	{"chase 16 KiB", "memory-latency", "chase", 16 << 10, unit.Second, sameLoop},
}

// benchCompute compares the memory loops with the same ones in C, compiled with cc -O2, and prints a table. Both
// programs run in interleaved pairs in alternating order, on the first CPU, and each chase has an order of its own.
func benchCompute(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("compute", flag.ContinueOnError)
	pairs := set.Int("pairs", 15, "interleaved pairs per comparison")
	only := set.String("only", "", "comparisons whose name matches this expression")
	if err := set.Parse(args); err != nil {
		return err
	}
	matching, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *pairs < 1 {
		return errors.New("-pairs is below 1")
	}
	dir, err := os.MkdirTemp("", "knotmeter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := compile(ctx, dir, "compute")
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "comparison\tpairs\tours\tC\tratio\tquartiles\twanted\t")
	for _, b := range memoryBenchmarks {
		if !matching.MatchString(b.name) {
			continue
		}
		ours := func() (float64, error) { return b.ours(ctx) }
		reference := func() (float64, error) { return b.reference(ctx, program) }
		list, err := interleave(*pairs, ours, reference, func(pair[float64]) {})
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		r := ratioOf(list, func(v float64) float64 { return v })
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%.3f\t%.3f to %.3f\t%s\t\n", b.name, len(list),
			unit.Format(r.ours, b.unit), unit.Format(r.theirs, b.unit), r.ofMedians, r.q1, r.q3, b.wanted)
	}
	return table.Flush()
}

// ours runs our loop.
func (b memoryBenchmark) ours(ctx context.Context) (float64, error) {
	r, err := computeload.Run(ctx, computeload.Config{Loop: b.loop, CPUs: 1, Set: b.set,
		Seed: rand.Uint64(), Warmup: 100 * time.Millisecond, Window: window})
	switch {
	case err != nil:
		return 0, err
	case r.Unsupported != "" || r.Wrong != "":
		return 0, errors.New(r.Unsupported + r.Wrong)
	}
	rate := r.Threads[0].Rate()
	if b.unit == unit.Second {
		return 1 / rate, nil
	}
	return rate, nil
}

// reference runs the loop in C.
func (b memoryBenchmark) reference(ctx context.Context, program string) (float64, error) {
	text, err := exec.CommandContext(ctx, program, b.inC, "0", strconv.Itoa(b.set),
		strconv.FormatFloat(window.Seconds(), 'f', -1, 64), strconv.FormatUint(1+rand.Uint64N(1<<62), 10)).Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
}
