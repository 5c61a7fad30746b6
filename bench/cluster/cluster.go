// Package cluster measures what an experiment costs on a Kubernetes cluster besides its load: pods, requests to the API
// server and seconds of each site, the seconds of a run outside its window, and how much of the wall time is measuring.
//
//	go run ./bench cluster -binary bin/knotmeter -kubectl 'bin/cluster kubectl' -kubeconfig FILE
//
// Pods and our own requests are from the results directory. What all of the cluster asked of its API server meanwhile,
// kubelets and controllers too, is from the API server's own counters, less what they count while nothing is measured.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/store"
)

// options are the flags.
type options struct {
	binary, kubectl, kubeconfig, duration string
	blocks                                int
	least                                 float64
	idle                                  time.Duration
}

// Run measures, and prints a table; it is an error if too little of the time was measuring.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	return o.run(ctx)
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.StringVar(&o.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&o.kubectl, "kubectl", "kubectl", "the command that asks the API server, with its first arguments")
	set.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster")
	set.StringVar(&o.duration, "duration", "10s", "window of a run")
	set.IntVar(&o.blocks, "blocks", 2, "blocks of the nine cases of network:quick")
	set.Float64Var(&o.least, "least", 0.6, "share of the wall time that has to be measuring")
	set.DurationVar(&o.idle, "idle", 20*time.Second, "how long the API server is watched while nothing is measured")
	return o, set.Parse(args)
}

func (o options) run(ctx context.Context) error {
	background, err := o.background(ctx)
	if err != nil {
		return err
	}
	before, err := o.requests(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-cluster")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "results")
	began := time.Now()
	c := exec.CommandContext(ctx, o.binary, "run", "--target", "kube:?kubeconfig="+o.kubeconfig,
		"--suite", "network:quick", "--blocks", strconv.Itoa(o.blocks), "--duration", o.duration,
		"--progress", "plain", "--out", dir)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it removes what it made
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	wall := time.Since(began)
	after, err := o.requests(ctx)
	if err != nil {
		return err
	}
	results, err := store.Open(dir)
	if err != nil {
		return err
	}
	s, err := summarise(results.Sites, results.Runs, wall.Seconds(), after-before-background*wall.Seconds())
	if err != nil {
		return err
	}
	fmt.Print(s.table(o.duration))
	if s.share < o.least {
		return fmt.Errorf("%.0f %% of the time from start to end were spent measuring; wanted: %.0f %%",
			100*s.share, 100*o.least)
	}
	return nil
}

// background is how many requests a second the API server has while nothing is measured.
func (o options) background(ctx context.Context) (float64, error) {
	before, err := o.requests(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(o.idle):
	}
	after, err := o.requests(ctx)
	if err != nil {
		return 0, err
	}
	return (after - before) / time.Since(began).Seconds(), nil
}

// requests is how many the API server has had.
func (o options) requests(ctx context.Context) (float64, error) {
	args := append(strings.Fields(o.kubectl), "get", "--raw", "/metrics")
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), "KUBECONFIG="+o.kubeconfig)
	text, err := c.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c, err)
	}
	return requestsIn(string(text))
}
