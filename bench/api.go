package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// benchAPI measures the lateness of the generator in an open loop of requests over HTTP/2 with TLS, as sent to an API
// server: the time from when a request was due until it was sent. The generator has one CPU and one thread for Go code;
// the server has another CPU. It needs taskset and two CPUs.
func benchAPI(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("api", flag.ContinueOnError)
	rate := set.Float64("rate", 3000, "requests per second")
	times := set.Int("times", 9, "runs, of which the median is reported")
	duration := set.Duration("duration", 2*time.Second, "duration of a run")
	if err := set.Parse(args); err != nil {
		return err
	}
	server, err := startServer(ctx, tlsServer, false)
	if err != nil {
		return err
	}
	defer server.stop()
	var late, p50, p99, cpu []float64
	for n := range *times {
		f, err := server.runJob(ctx, job{
			Path: "/api/v1/namespaces/x/configmaps/x", Rate: *rate, Connections: 1,
			Warmup: 500 * time.Millisecond, Window: *duration,
		}, false, "GOMAXPROCS=1")
		if err != nil {
			return err
		}
		busy := f.CPU / f.Elapsed
		fmt.Printf("run %d: %d answered, %d failed, p99 of lateness %.0f µs, latency p50 %.0f µs, p99 %.0f µs, "+
			"%.0f %% of a CPU\n", n+1, f.OK, f.Failed, 1e6*f.LateP99, 1e6*f.P50, 1e6*f.P99, 100*busy)
		late, p50, p99, cpu = append(late, f.LateP99), append(p50, f.P50), append(p99, f.P99), append(cpu, busy)
	}
	fmt.Printf("median of %d runs at %g/s on one CPU: p99 of lateness %.0f µs (wanted below 1000, best %.0f), "+
		"latency p50 %.0f µs, p99 %.0f µs, %.0f %% of the CPU\n", *times, *rate, 1e6*stats.Median(late), 1e6*slices.Min(late),
		1e6*stats.Median(p50), 1e6*stats.Median(p99), 100*stats.Median(cpu))
	return nil
}
