//go:build linux

// Package api measures how well the generator keeps to an open loop of requests over HTTP/2 with TLS, as they are sent
// to an API server: on one CPU, to a server of its own on another one. The figure is the 99th percentile of how late
// requests were begun. It needs taskset and two CPUs.
package api

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// The arguments by which this program starts itself.
const (
	beServer = "be-a-server"
	beClient = "be-a-client"
)

// A job is what the client does.
type job struct {
	URL      string        `json:"url"`
	CA       []byte        `json:"ca"`
	Rate     float64       `json:"rate"`
	Duration time.Duration `json:"duration"`
}

// A figure is what came of it; times are in seconds.
type figure struct {
	OK      uint64  `json:"ok"`
	Failed  uint64  `json:"failed"`
	LateP99 float64 `json:"late_p99"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	CPU     float64 `json:"cpu"`
}

// Run measures it and prints what came of each run; it starts itself with another argument as server and client.
func Run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == beServer {
		return serve()
	}
	if len(args) > 1 && args[0] == beClient {
		return ask(ctx, args[1])
	}
	set := flag.NewFlagSet("api", flag.ContinueOnError)
	rate := set.Float64("rate", 3000, "requests per second")
	times := set.Int("times", 9, "runs, of which the median is reported")
	duration := set.Duration("duration", 2*time.Second, "of a run")
	if err := set.Parse(args); err != nil {
		return err
	}
	server, j, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	j.Rate, j.Duration = *rate, *duration
	return repeat(ctx, j, *times)
}

// start starts the server on CPU 1.
func start(ctx context.Context) (*exec.Cmd, job, error) {
	var j job
	self, err := os.Executable()
	if err != nil {
		return nil, j, err
	}
	server := exec.CommandContext(ctx, "taskset", "-c", "1", self, "api", beServer)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, j, err
	}
	if err := server.Start(); err != nil {
		return nil, j, err
	}
	return server, j, json.NewDecoder(out).Decode(&j)
}

// repeat has the client ask on CPU 0, with one thread for Go code, and prints the medians.
func repeat(ctx context.Context, j job, times int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	var late, p50, p99, cpu []float64
	for n := range times {
		client := exec.CommandContext(ctx, "taskset", "-c", "0", self, "api", beClient, string(text))
		client.Env = append(os.Environ(), "GOMAXPROCS=1")
		client.Stderr = os.Stderr
		out, err := client.Output()
		if err != nil {
			return err
		}
		var f figure
		if err := json.Unmarshal(out, &f); err != nil {
			return err
		}
		fmt.Printf("run %d: %d answered, %d failed, p99 of lateness %.0f µs, latency p50 %.0f µs, p99 %.0f µs, "+
			"%.0f %% of a CPU\n", n+1, f.OK, f.Failed, 1e6*f.LateP99, 1e6*f.P50, 1e6*f.P99, 100*f.CPU)
		late, p50, p99, cpu = append(late, f.LateP99), append(p50, f.P50), append(p99, f.P99), append(cpu, f.CPU)
	}
	fmt.Printf("median of %d runs at %g/s on one CPU: p99 of lateness %.0f µs (wanted below 1000, best %.0f), "+
		"latency p50 %.0f µs, p99 %.0f µs, %.0f %% of the CPU\n", times, j.Rate, 1e6*stats.Median(late), 1e6*slices.Min(late),
		1e6*stats.Median(p50), 1e6*stats.Median(p99), 100*stats.Median(cpu))
	return nil
}

// serve is a server that answers everything with the size of a ConfigMap, until it is killed.
func serve() error {
	const object = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"key":%q}}`
	body := []byte(fmt.Sprintf(object, make([]byte, 64)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(os.Stdout).Encode(job{URL: server.URL, CA: ca}); err != nil {
		return err
	}
	select {}
}

// fixed asks the same all the time.
type fixed struct{ request *httpload.Request }

func (f fixed) Names() []string                  { return []string{"get"} }
func (f fixed) Request(uint64) *httpload.Request { return f.request }

// ask carries out a job with the generator, as the agent does, and prints what came of it.
func ask(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	server, err := httpload.NewServer(j.URL, nil, httpload.Trust{CA: j.CA}, true)
	if err != nil {
		return err
	}
	r, err := httpload.Run(ctx, httpload.Config{
		Server: server, Source: fixed{&httpload.Request{Method: "GET", Path: "/api/v1/namespaces/x/configmaps/x"}},
		Rate: j.Rate, Connections: 1, Warmup: 500 * time.Millisecond, Window: j.Duration,
	})
	if err != nil {
		return err
	}
	late, err := netload.DecodeHistogram(r.Late)
	if err != nil {
		return err
	}
	latency, err := r.Total.Histogram()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figure{
		OK: r.Total.OK, Failed: r.Total.Failed(), LateP99: late.Quantile(0.99),
		P50: latency.Quantile(0.5), P99: latency.Quantile(0.99), CPU: r.CPU / r.Elapsed,
	})
}
