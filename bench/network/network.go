//go:build linux

// Package network measures the native load generator against programs that do the same work: iperf3 for streams,
// blocking C programs for requests. It needs root, cc and iperf3.
//
// All of it runs between two network namespaces of its own that one veth pair joins, with client and
// server pinned to the same CPUs for both programs, in interleaved pairs whose order alternates.
package network

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	agentprogram "github.com/knotmeter/knotmeter/internal/agent/program"
)

// agentArgument makes this command an agent.
const agentArgument = "be-an-agent"

// options are the flags.
type options struct {
	pairs          int
	only           *regexp.Regexp
	client, server int
	verbose        bool
}

func parse(args []string) (options, error) {
	var o options
	var only, cpus string
	set := flag.NewFlagSet("network", flag.ContinueOnError)
	set.IntVar(&o.pairs, "pairs", 15, "interleaved pairs per comparison")
	set.StringVar(&only, "only", "", "comparisons whose name matches this expression")
	set.StringVar(&cpus, "cpus", "0,"+strconv.Itoa(runtime.NumCPU()-1), "CPUs of client and server")
	set.BoolVar(&o.verbose, "v", false, "print every pair")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	if _, err := fmt.Sscanf(cpus, "%d,%d", &o.client, &o.server); err != nil {
		return o, fmt.Errorf("-cpus=%s is not two numbers: %w", cpus, err)
	}
	if o.pairs < 1 {
		return o, errors.New("-pairs is below 1")
	}
	return o, nil
}

// Run compares both and prints a table; with another argument it is an agent.
func Run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == agentArgument {
		return agentprogram.Serve(ctx, os.Stdin, os.Stdout)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "knotmeter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	wire, err := newWire(o)
	if err != nil {
		return err
	}
	defer wire.Close()
	comparisons, err := comparisons(ctx, dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "comparison\tpairs\tours\treference\tratio\tquartiles\twanted\tCPU ratio\t")
	for _, c := range comparisons {
		if !o.only.MatchString(c.name) {
			continue
		}
		pairs, err := c.measure(ctx, wire, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintln(table, c.line(pairs))
	}
	return table.Flush()
}

// line is one line of the table.
func (c comparison) line(pairs []pair) string {
	s := summarise(pairs)
	verdict := "reached"
	if c.higher && s.ratio < c.wanted || !c.higher && s.ratio > c.wanted {
		verdict = "NOT reached"
	}
	sign := map[bool]string{true: ">=", false: "<="}[c.higher]
	return strings.Join([]string{c.name, strconv.Itoa(len(pairs)), c.format(s.ours), c.format(s.reference),
		fmt.Sprintf("%.3f", s.ratio), fmt.Sprintf("%.3f to %.3f", s.low, s.high),
		fmt.Sprintf("%s %.2f %s", sign, c.wanted, verdict), fmt.Sprintf("%.3f", s.cost)}, "\t") + "\t"
}
