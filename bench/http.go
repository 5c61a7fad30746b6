package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// CPUs of client and server.
const (
	clientCPU = "0"
	serverCPU = "1"
)

// pinnedCommand returns a command that runs on one CPU; with realtime it precedes other processes there (SCHED_RR).
func pinnedCommand(ctx context.Context, cpu string, realtime bool, command ...string) *exec.Cmd {
	args := []string{"-c", cpu}
	if realtime {
		args = append(args, "chrt", "-r", "1")
	}
	c := exec.CommandContext(ctx, "taskset", append(args, command...)...)
	c.Stderr = os.Stderr
	return c
}

// An httpServer is a process of this program that answers all requests alike.
type httpServer struct {
	process *exec.Cmd
	URL     string
	CA      []byte // certificate in PEM; empty: no TLS
}

// Kinds of servers. They do as little work as possible, so that they are not the bottleneck.
const (
	plainServer = "plain" // HTTP/1.1, a few bytes
	tlsServer   = "tls"   // HTTP/2 with TLS, the size of a ConfigMap
)

// startServer starts a server on its CPU, and waits until it listens.
func startServer(ctx context.Context, kind string, realtime bool) (*httpServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &httpServer{process: pinnedCommand(ctx, serverCPU, realtime, self, serverCommand, kind)}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(out).Decode(s); err != nil {
		s.stop()
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	return s, nil
}

func (s *httpServer) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// serveHTTP runs a server of the kind in args until it is killed.
func serveHTTP(_ context.Context, args []string) error {
	if args[0] == plainServer {
		return servePlain()
	}
	const object = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"key":%q}}`
	body := fmt.Appendf(nil, object, make([]byte, 64))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(os.Stdout).Encode(httpServer{URL: server.URL, CA: ca}); err != nil {
		return err
	}
	select {}
}

func servePlain() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(httpServer{URL: "http://" + l.Addr().String() + "/"}); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answerRequests(c)
	}
}

// answerRequests answers requests without bodies on a connection until it is closed.
func answerRequests(c net.Conn) {
	defer c.Close()
	text := []byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nok\n")
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadSlice('\n')
		if err == nil && len(line) == len("\r\n") { // the end of a request
			_, err = c.Write(text)
		}
		if err != nil {
			return
		}
	}
}

// A job is the configuration of a run of the generator.
type job struct {
	URL            string
	CA             []byte // certificate in PEM; empty: neither TLS nor HTTP/2
	Path           string
	Rate           float64 // requests per second of an open loop; 0: closed loop
	Clients        int     // of a closed loop
	Connections    int
	Warmup, Window time.Duration
	SizeEvery      time.Duration // how often to print the size of the process; 0: never
}

// A figure is the result of a run. Times are in seconds.
type figure struct {
	OK      uint64  `json:"ok"`
	Failed  uint64  `json:"failed"`
	LateP99 float64 `json:"late_p99"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	CPU     float64 `json:"cpu"`
	Elapsed float64 `json:"elapsed"` // time in which CPU was used
}

// runJob runs a job with the generator, in another process on the client's CPU.
func (s *httpServer) runJob(ctx context.Context, j job, realtime bool, env ...string) (figure, error) {
	self, err := os.Executable()
	if err != nil {
		return figure{}, err
	}
	j.URL, j.CA = s.URL, s.CA
	text, err := json.Marshal(j)
	if err != nil {
		return figure{}, err
	}
	c := pinnedCommand(ctx, clientCPU, realtime, self, clientCommand, string(text))
	c.Env = append(os.Environ(), env...)
	return runForFigure(c)
}

// runForFigure runs a program that prints a figure in JSON.
func runForFigure(c *exec.Cmd) (figure, error) {
	out, err := output(c)
	if err != nil {
		return figure{}, err
	}
	var f figure
	return f, json.Unmarshal(out, &f)
}

// A constantSource is an [httpload.Source] of one request.
type constantSource struct{ request *httpload.Request }

func (s constantSource) Names() []string                  { return []string{"get"} }
func (s constantSource) Request(uint64) *httpload.Request { return s.request }

// generateLoad runs a job in JSON with the generator, like the agent, and prints its figure.
func generateLoad(ctx context.Context, args []string) error {
	var j job
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	server, err := httpload.NewServer(j.URL, nil, httpload.Trust{CA: j.CA}, j.CA != nil)
	if err != nil {
		return err
	}
	if j.SizeEvery > 0 {
		go printSize(j.SizeEvery)
	}
	r, err := httpload.Run(ctx, httpload.Config{
		Server: server, Source: constantSource{&httpload.Request{Method: "GET", Path: j.Path}},
		Rate: j.Rate, Clients: j.Clients, Connections: j.Connections, Warmup: j.Warmup, Window: j.Window,
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
		P50: latency.Quantile(0.5), P99: latency.Quantile(0.99), CPU: r.CPU, Elapsed: r.Elapsed,
	})
}

// printSize prints the resident size of this process periodically.
func printSize(every time.Duration) {
	began := time.Now()
	for range time.Tick(every) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			if size, found := strings.CutPrefix(line, "VmRSS:"); found {
				fmt.Fprintf(os.Stderr, "%.0f s: %s\n", time.Since(began).Seconds(), strings.TrimSpace(size))
			}
		}
	}
}
