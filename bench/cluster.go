package main

import (
	"context"
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

// A clusterBench holds the flags of the subcommand.
type clusterBench struct {
	binary, kubectl, kubeconfig, duration string
	blocks                                int
	least                                 float64       // share of the wall time
	idle                                  time.Duration // time of the background measurement
}

// benchCluster measures the overhead of an experiment on a Kubernetes cluster, and prints a table: pods, requests to
// the API server and seconds per site, seconds of a run outside its window, and the share of the wall time spent
// measuring. It returns an error if that share is below -least.
//
// Pods and Knotmeter's requests are in the results directory. The requests of the whole cluster, including kubelets and
// controllers, are from the API server's counters, minus the background rate without measurements.
func benchCluster(ctx context.Context, args []string) error {
	var b clusterBench
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.StringVar(&b.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&b.kubectl, "kubectl", "kubectl", "the command that asks the API server, with its first arguments")
	set.StringVar(&b.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster")
	set.StringVar(&b.duration, "duration", "10s", "window of a run")
	set.IntVar(&b.blocks, "blocks", 2, "blocks of the nine cases of network:quick")
	set.Float64Var(&b.least, "least", 0.6, "share of the wall time that has to be measuring")
	set.DurationVar(&b.idle, "idle", 20*time.Second, "how long the API server is watched while nothing is measured")
	if err := set.Parse(args); err != nil {
		return err
	}
	background, err := b.background(ctx)
	if err != nil {
		return err
	}
	costs, err := b.measure(ctx, background)
	if err != nil {
		return err
	}
	fmt.Print(costs.table(b.duration))
	if costs.share < b.least {
		return fmt.Errorf("%.0f %% of the time from start to end were spent measuring; wanted: %.0f %%",
			100*costs.share, 100*b.least)
	}
	return nil
}

// measure runs the experiment; background is the cluster's number of requests per second without it.
func (b clusterBench) measure(ctx context.Context, background float64) (siteCosts, error) {
	before, err := b.requests(ctx)
	if err != nil {
		return siteCosts{}, err
	}
	dir, err := os.MkdirTemp("", "bench-cluster")
	if err != nil {
		return siteCosts{}, err
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "results")
	began := time.Now()
	c := knotmeter(ctx, b.binary, "run", "--yes", "--target", "kube:?kubeconfig="+b.kubeconfig,
		"--suite", "network:quick", "--blocks", strconv.Itoa(b.blocks), "--duration", b.duration, "--progress", "plain",
		"--out", dir)
	c.Stderr = os.Stderr
	if _, err := output(c); err != nil {
		return siteCosts{}, err
	}
	wall := time.Since(began).Seconds()
	after, err := b.requests(ctx)
	if err != nil {
		return siteCosts{}, err
	}
	results, err := store.Open(dir)
	if err != nil {
		return siteCosts{}, err
	}
	return summarise(results.Sites, results.Runs, wall, after-before-background*wall)
}

// background returns the API server's requests per second while nothing is measured.
func (b clusterBench) background(ctx context.Context) (float64, error) {
	before, err := b.requests(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(b.idle):
	}
	after, err := b.requests(ctx)
	if err != nil {
		return 0, err
	}
	return (after - before) / time.Since(began).Seconds(), nil
}

// requests returns the API server's number of requests since it started.
func (b clusterBench) requests(ctx context.Context) (float64, error) {
	args := append(strings.Fields(b.kubectl), "get", "--raw", "/metrics")
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	text, err := output(c)
	if err != nil {
		return 0, err
	}
	return requestsIn(string(text))
}
