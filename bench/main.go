//go:build linux

// Command bench measures Knotmeter itself: what its generators, its tools and its reports take, next to programs that
// do the same work, and how often its verdicts are right. Each subcommand is a package below.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/knotmeter/knotmeter/bench/api"
	"github.com/knotmeter/knotmeter/bench/cluster"
	"github.com/knotmeter/knotmeter/bench/network"
	"github.com/knotmeter/knotmeter/bench/rates"
	"github.com/knotmeter/knotmeter/bench/report"
	"github.com/knotmeter/knotmeter/bench/storage"
	"github.com/knotmeter/knotmeter/bench/web"
)

// commands are the subcommands.
var commands = []struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}{
	{"network", "the generator next to iperf3 and C programs, as ratios", network.Run},
	{"web", "the generator of requests next to vegeta and wrk", web.Run},
	{"api", "how late the generator begins requests over HTTP/2, on one CPU", api.Run},
	{"storage", "fio run by Knotmeter next to fio alone", storage.Run},
	{"report", "time and memory of a report on 100 000 runs", report.Run},
	{"cluster", "pods, requests and seconds that runs on a cluster cost", cluster.Run},
	{"position", "what the runs before it in its site do to a run, from results of A/A experiments", rates.Position},
	{"rates", "A/A experiments and known slowdowns: how often a verdict is wrong or missed", rates.Run},
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

// run carries out the subcommand that the first argument names.
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

// usage lists the subcommands.
func usage() string {
	var b strings.Builder
	b.WriteString("name one of these, and -h for its flags:")
	for _, c := range commands {
		fmt.Fprintf(&b, "\n  %-8s %s", c.name, c.about)
	}
	return b.String()
}
