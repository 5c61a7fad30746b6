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

// CPUs of the two sides of requests over HTTP.
const (
	clientCPU = "0"
	serverCPU = "1"
)

// pinned is a command on one CPU; with realtime it goes before whatever else runs there.
func pinned(ctx context.Context, cpu string, realtime bool, command ...string) *exec.Cmd {
	args := []string{"-c", cpu}
	if realtime {
		args = append(args, "chrt", "-r", "1")
	}
	c := exec.CommandContext(ctx, "taskset", append(args, command...)...)
	c.Stderr = os.Stderr
	return c
}

// An httpServer is another process of this program, which answers every request with the same.
type httpServer struct {
	process *exec.Cmd
	URL     string
	CA      []byte
}

// Kinds of servers, which answer with as little work as can be, so that they are not the limit.
const (
	plainServer = "plain" // HTTP/1.1, a few bytes
	tlsServer   = "tls"   // HTTP/2 with TLS, the size of a ConfigMap
)

func startServer(ctx context.Context, kind string, realtime bool) (*httpServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &httpServer{process: pinned(ctx, serverCPU, realtime, self, beServer, kind)}
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

// serve is the server, until it is killed.
func serve(_ context.Context, args []string) error {
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
		go answer(c)
	}
}

func answer(c net.Conn) {
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

// A job is a run of the generator.
type job struct {
	URL            string
	CA             []byte // none: neither TLS nor HTTP/2
	Path           string
	Rate           float64 // of an open loop; or
	Clients        int     // of a closed one
	Connections    int
	Warmup, Window time.Duration
	SizeEvery      time.Duration // how often to print the size of the process; 0: never
}

// A figure is what came of a run; times are in seconds.
type figure struct {
	OK      uint64  `json:"ok"`
	Failed  uint64  `json:"failed"`
	LateP99 float64 `json:"late_p99"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	CPU     float64 `json:"cpu"`
	Elapsed float64 `json:"elapsed"` // in which CPU was used
}

// ask has the generator carry out a job, in a process of its own on the client's CPU.
func (s *httpServer) ask(ctx context.Context, j job, realtime bool, env ...string) (figure, error) {
	self, err := os.Executable()
	if err != nil {
		return figure{}, err
	}
	j.URL, j.CA = s.URL, s.CA
	text, err := json.Marshal(j)
	if err != nil {
		return figure{}, err
	}
	c := pinned(ctx, clientCPU, realtime, self, beClient, string(text))
	c.Env = append(os.Environ(), env...)
	return figureOf(c)
}

// figureOf runs a program that prints a figure.
func figureOf(c *exec.Cmd) (figure, error) {
	out, err := output(c)
	if err != nil {
		return figure{}, err
	}
	var f figure
	return f, json.Unmarshal(out, &f)
}

// always asks the same all the time.
type always struct{ request *httpload.Request }

func (a always) Names() []string                  { return []string{"get"} }
func (a always) Request(uint64) *httpload.Request { return a.request }

// generate carries out a job with the generator, as the agent does, and prints what came of it.
func generate(ctx context.Context, args []string) error {
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
		Server: server, Source: always{&httpload.Request{Method: "GET", Path: j.Path}},
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

// printSize says now and then how large the process is.
func printSize(every time.Duration) {
	began := time.Now()
	for range time.Tick(every) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			if size, is := strings.CutPrefix(line, "VmRSS:"); is {
				fmt.Fprintf(os.Stderr, "%.0f s: %s\n", time.Since(began).Seconds(), strings.TrimSpace(size))
			}
		}
	}
}
