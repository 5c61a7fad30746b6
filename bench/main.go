// Command bench measures Knotmeter itself: its load generators, tools and reports compared with other programs for the
// same work, and how often its verdicts are right. Each subcommand has its own files. README.md has the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// Subcommands that this program uses to start itself.
const (
	agentCommand  = "be-an-agent"
	serverCommand = "be-a-server"
	clientCommand = "be-a-client"
)

// commands lists the subcommands. Those without a description are internal.
var commands = []struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}{
	{"network", "the generator next to iperf3 and C programs, as ratios", benchNetwork},
	{"compute", "memory loops next to the same ones in C, as ratios", benchCompute},
	{"web", "the generator of requests next to vegeta and wrk", benchWeb},
	{"api", "how late the generator begins requests over HTTP/2, on one CPU", benchAPI},
	{"storage", "fio run by Knotmeter next to fio alone", benchStorage},
	{"report", "time and memory of a report on 100 000 runs", benchReport},
	{"import", "memory of imports of large tables", benchImport},
	{"cluster", "pods, requests and seconds that runs on a cluster cost", benchCluster},
	{"position", "what the runs before it in its site do to a run, from results of A/A experiments", benchPosition},
	{"rates", "A/A experiments and known slowdowns: how often a verdict is wrong or missed", benchRates},
	{"causes", "known faults and A/A experiments: how often explain names the right cause", benchCauses},
	{"gallery", "real CNIs side by side on clusters of this machine: docs/gallery", benchGallery},
	{agentCommand, "", serveAgent},
	{serverCommand, "", serveHTTP},
	{clientCommand, "", generateLoad},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the subcommand that the first argument names.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage())
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		if err := c.run(ctx, args[1:]); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return nil
	}
	return fmt.Errorf("there is no %q; %s", args[0], usage())
}

// usage returns a list of the subcommands.
func usage() string {
	var b strings.Builder
	b.WriteString("name one of these, and -h for its flags:")
	for _, c := range commands {
		if c.about != "" {
			fmt.Fprintf(&b, "\n  %-8s %s", c.name, c.about)
		}
	}
	return b.String()
}
