package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// same is a source that repeats one request.
type same struct{ request *Request }

func (s same) Names() []string         { return []string{"only"} }
func (s same) Request(uint64) *Request { return s.request }

func get(path string) same { return same{&Request{Method: "GET", Path: path}} }

// turns is a source that returns several requests in turn.
type turns []*Request

func (s turns) Names() []string {
	var names []string
	for i := range s {
		names = append(names, fmt.Sprintf("kind%d", i))
	}
	return names
}
func (s turns) Request(n uint64) *Request { return s[n%uint64(len(s))] }

func serverOf(s *httptest.Server) Server {
	host := strings.TrimPrefix(strings.TrimPrefix(s.URL, "http://"), "https://")
	server := Server{Addresses: []string{host}, Host: host}
	if s.TLS != nil {
		server.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
	return server
}

func config(s Server, source Source) Config {
	return Config{Server: s, Source: source, Warmup: 50 * time.Millisecond,
		Window: 500 * time.Millisecond, Timeout: 5 * time.Second}
}

func run(t *testing.T, c Config) Report {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProtocols checks, for each protocol and loop, that every request is answered and counted.
func TestProtocols(t *testing.T) {
	var seen atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Method, r.Header.Get("X-Test"), body)
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	clear := httptest.NewUnstartedServer(handler)
	clear.Config.Protocols = new(http.Protocols)
	clear.Config.Protocols.SetUnencryptedHTTP2(true)
	clear.Start()
	defer clear.Close()

	h1, h2, open := serverOf(secure), serverOf(secure), serverOf(clear)
	h2.HTTP2, open.HTTP2 = true, true
	for name, test := range map[string]struct {
		server Server
		proto  string
	}{"plain": {serverOf(plain), "HTTP/1.1"}, "tls": {h1, "HTTP/1.1"}, "h2": {h2, "HTTP/2.0"}, "h2c": {open, "HTTP/2.0"}} {
		for _, loop := range []string{"open", "closed", "reconnect"} {
			if loop == "reconnect" && test.server.HTTP2 {
				continue
			}
			t.Run(name+"/"+loop, func(t *testing.T) {
				seen.Store(0)
				c := config(test.server, same{&Request{Method: "POST", Path: "/x",
					Header: []Field{{"X-Test", "yes"}}, Body: []byte("body"),
					Contains: []byte(test.proto + " POST yes body")}})
				c.Warmup = 0
				c.Rate = 200
				if loop == "closed" {
					c.Rate, c.Clients = 0, 3
				}
				c.Reconnect = loop == "reconnect"
				r := run(t, c)
				if r.Total.OK == 0 || r.Total.Failed() > 0 || r.Planned != r.Total.OK && loop == "open" {
					t.Errorf("%+v", r)
				}
				// When the window of a closed loop ends, each client has one more request under way.
				if n := seen.Load(); n < int64(r.Total.OK) || n > int64(r.Total.OK)+3 {
					t.Errorf("the server saw %d requests, %d were counted", n, r.Total.OK)
				}
				if loop == "open" && r.Planned != 100 {
					t.Errorf("%d planned", r.Planned)
				}
				if loop == "reconnect" && r.Connections < int(r.Total.OK) {
					t.Errorf("%d connections for %d requests", r.Connections, r.Total.OK)
				}
				if most := 4 * c.Window.Seconds(); r.Elapsed > most {
					t.Errorf("CPU time was looked at over %g s, want at most %g", r.Elapsed, most)
				}
				if (r.TLS != "") != (test.server.TLS != nil) || r.Connect == "" || r.Service == "" || r.FirstByte == "" {
					t.Errorf("histograms: %+v", r)
				}
			})
		}
	}
}

// TestStall checks that a server's stall of 2 s in 10 s shows in the percentiles, because latency counts from the
// scheduled time: of 2000 requests 400 wait, up to 2 s. Time is simulated, so that nothing else stalls.
func TestStall(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var began time.Time
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Millisecond)
			if at := time.Since(began); at > 4*time.Second && at < 6*time.Second {
				time.Sleep(6*time.Second - at)
			}
		})})
		c.Rate, c.Window, c.Warmup = 200, 10*time.Second, 0
		began = time.Now()
		r := run(t, c)
		h, err := r.Total.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		if p99 := h.Quantile(0.99); p99 < 1.89 || p99 > 1.92 || r.Total.OK != 2000 {
			t.Errorf("p99 is %g s of %d, wanted 1.9 of 2000", p99, r.Total.OK)
		}
		if p50 := h.Quantile(0.5); p50 > 0.0011 {
			t.Errorf("p50 is %g s", p50)
		}
		// In a closed loop with few clients the same stall hardly shows, which is why its results are labelled.
		began = time.Now()
		c.Rate, c.Clients = 0, 2
		r = run(t, c)
		if h, err = r.Total.Histogram(); err != nil || h.Quantile(0.99) > 0.0011 {
			t.Errorf("closed loop: p99 %g s, %v", h.Quantile(0.99), err)
		}
	})
}

// TestServiceTime checks the latencies of known service times: a fixed and a bimodal one.
func TestServiceTime(t *testing.T) {
	const slow = 100 * time.Millisecond
	simulate(t, func(t *testing.T) {
		var n atomic.Int64
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/fixed" || n.Add(1)%5 == 0 {
				time.Sleep(slow)
			}
		})})
		c.Source = turns{{Method: "GET", Path: "/fixed"}, {Kind: 1, Method: "GET", Path: "/bimodal"}}
		c.Rate, c.Window = 100, 2*time.Second
		r := run(t, c)
		fixed, err := r.Kinds[0].Histogram()
		if err != nil {
			t.Fatal(err)
		}
		bimodal, err := r.Kinds[1].Histogram()
		if err != nil {
			t.Fatal(err)
		}
		if low, high := fixed.Quantile(0.01), fixed.Max(); low < slow.Seconds() || high > slow.Seconds()*1.001 {
			t.Errorf("requests took %g to %g s, not the server's %v", low, high, slow)
		}
		if p50, p90 := bimodal.Quantile(0.5), bimodal.Quantile(0.9); p90 < slow.Seconds() || p50 > slow.Seconds()*0.01 {
			t.Errorf("of a fifth that takes %v the p50 is %g s and the p90 %g s", slow, p50, p90)
		}
		if r.Kinds[0].OK+r.Kinds[1].OK != r.Total.OK || r.Kinds[0].Name != "kind0" {
			t.Errorf("%+v", r.Kinds)
		}
	})
}

// TestOutcomes checks that each failure has its name, and that none counts as a success.
func TestOutcomes(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/busy":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/half":
			if n.Add(1)%2 == 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		case "/reset":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		case "/close":
			conn, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			conn.Close()
		case "/garbled":
			conn, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(conn, "SMTP ready\r\n\r\n")
			conn.Close()
		case "/never":
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case "/other":
			fmt.Fprint(w, "something else")
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/redirect": "status 307", "/busy": "status 429", "/half": "status 500", "/reset": Reset,
		"/close": Closed, "/garbled": Malformed, "/never": TimedOut, "/other": Mismatch,
	} {
		t.Run(path[1:], func(t *testing.T) {
			request := &Request{Method: "GET", Path: path}
			if path == "/other" {
				request.Contains = []byte("expected")
			}
			c := config(serverOf(s), same{request})
			c.Rate = 40
			if path == "/never" {
				c.Timeout = time.Second
			}
			r := run(t, c)
			var status int
			got := r.Total.Errors[want]
			if _, err := fmt.Sscanf(want, "status %d", &status); err == nil {
				got = r.Total.Statuses[status]
			}
			if got == 0 || r.Total.Failed() != got || r.Total.OK+got != r.Planned || r.Planned != 20 {
				t.Errorf("wanted %s: %+v", want, r)
			}
			if path != "/half" && r.Total.OK != 0 {
				t.Errorf("%d successes", r.Total.OK)
			}
			if (r.RetryAfter > 0) != (path == "/busy") {
				t.Errorf("%d asked to wait", r.RetryAfter)
			}
			h, err := r.Total.Histogram()
			if err != nil {
				t.Fatal(err)
			}
			// Each failure counts with its time, and makes no success look faster.
			waited, err := netload.DecodeHistogram(r.Total.Waited)
			if err != nil || h.Count() != int64(r.Planned) || waited.Count() != int64(got) {
				t.Errorf("%d latencies, %d waits, %v", h.Count(), waited.Count(), err)
			}
			if path == "/never" && waited.Min() < 0.999*c.Timeout.Seconds() {
				t.Errorf("a time-out after %g s", waited.Min())
			}
			answered, err := netload.DecodeHistogram(r.Total.Latency)
			if p90 := h.Quantile(0.9); err != nil || path == "/half" && p90 < answered.Max() {
				t.Errorf("p90 is %g s, where the slowest success took %g s, %v", p90, answered.Max(), err)
			}
		})
	}
}

// TestContainsInLongBody checks that only the first MiB of a body is searched for Contains, with both protocols.
func TestContainsInLongBody(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := append(make([]byte, maxKept-len("expected")), "expected"...)
		if r.URL.Path == "/late" {
			text = append([]byte("."), text...)
		}
		_, _ = w.Write(append(text, make([]byte, maxKept)...))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for path, want := range map[string]uint64{"/early": 2, "/late": 0} {
		for _, two := range []bool{false, true} {
			c := config(serverOf(s), same{&Request{Method: "GET", Path: path, Contains: []byte("expected")}})
			c.Server.HTTP2, c.Rate, c.Timeout = two, 4, time.Minute
			got := run(t, c).Total
			if got.OK != want || got.Errors[Mismatch] != 2-want || got.Bytes != want*2*maxKept {
				t.Errorf("%s, HTTP/2 %v: %+v", path, two, got)
			}
		}
	}
}

// TestOutcomesHTTP2 checks that failures have the same names with HTTP/2, and that a connection that the server closes
// is replaced.
func TestOutcomesHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/never":
			<-r.Context().Done()
		case "/goaway":
			w.Header().Set("Connection", "close")
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for path, want := range map[string]string{"/busy": "status 503", "/reset": Reset, "/never": TimedOut, "/goaway": ""} {
		t.Run(path[1:], func(t *testing.T) {
			c := config(serverOf(s), get(path))
			c.Server.HTTP2 = true
			c.Rate = 40
			if path == "/never" {
				c.Timeout = time.Second
			}
			r := run(t, c)
			got := r.Total.Errors[want]
			switch want {
			case "":
				got = r.Total.OK
			case "status 503":
				got = r.Total.Statuses[503]
			}
			if got != 20 || r.Planned != 20 {
				t.Errorf("wanted %q: %+v", want, r.Total)
			}
			if path == "/goaway" && r.Connections < 5 {
				t.Errorf("%d connections", r.Connections)
			}
		})
	}
}

// TestServerAway checks that a server that never listened is an error, and that one that stops during a run and comes
// back causes failed requests, then successes.
func TestServerAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.33.0.1:0") // an address that no other test uses
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := config(Server{Addresses: []string{address}, Host: address}, get("/"))
	c.Rate = 50
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	serve := func() *http.Server {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.NotFoundHandler()}
		go s.Serve(l)
		return s
	}
	s := serve()
	var again *http.Server
	var done sync.WaitGroup
	done.Go(func() {
		time.Sleep(300 * time.Millisecond)
		s.Close()
		time.Sleep(300 * time.Millisecond)
		again = serve()
	})
	c.Source = same{&Request{Method: "GET", Path: "/", Statuses: []int{404}}}
	c.Warmup, c.Window = 0, 1500*time.Millisecond
	r := run(t, c)
	done.Wait()
	defer again.Close()
	if r.Total.OK < 30 || r.Total.Errors[Refused] == 0 || r.Total.OK+r.Total.Failed() != r.Planned {
		t.Errorf("%+v", r.Total)
	}
}

// TestNobodyAccepts checks that connections wait while the accept queue is full, and so do the requests that need them.
func TestNobodyAccepts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	c := config(Server{Addresses: []string{address}, Host: address}, get("/"))
	c.Rate, c.Timeout = 100, 200*time.Millisecond
	r := run(t, c)
	if r.Total.OK != 0 || r.Total.Errors[TimedOut]+r.Total.Errors[Unsent] != r.Planned {
		t.Errorf("%+v of %d", r.Total, r.Planned)
	}
}

func TestCancel(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	reason := errors.New("enough")
	for _, clients := range []int{0, 2} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(reason) })
		c := config(serverOf(s), get("/"))
		c.Window = time.Minute
		if c.Clients = clients; clients == 0 {
			c.Rate = 100
		}
		if _, err := Run(ctx, c); !errors.Is(err, reason) {
			t.Errorf("%v", err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := config(Server{Addresses: []string{"a:1"}}, get("/"))
	good.Rate = 1
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"server": func(c *Config) { c.Server.Addresses = nil }, "source": func(c *Config) { c.Source = nil },
		"both": func(c *Config) { c.Clients = 1 }, "neither": func(c *Config) { c.Rate = 0 },
		"rate": func(c *Config) { c.Rate = math.Inf(1) }, "nan": func(c *Config) { c.Rate = math.NaN() },
		"connections": func(c *Config) { c.Most = maxConnections + 1 }, "window": func(c *Config) { c.Window = 0 },
		"reconnect": func(c *Config) { c.Reconnect, c.Server.HTTP2 = true, true },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Run(t.Context(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s is run: %v", name, err)
		}
	}
}

// TestUntrusted checks that a certificate of an unknown authority is an error before the run.
func TestUntrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	server := serverOf(s)
	server.TLS = &tls.Config{ServerName: "example.com"}
	c := config(server, get("/"))
	c.Rate = 1
	if _, err := Run(t.Context(), c); err == nil || !errors.Is(err, errTLS) {
		t.Errorf("%v", err)
	}
}

// TestSlowAnswers checks that a response that arrives byte by byte is complete with its last byte.
func TestSlowAnswers(t *testing.T) {
	const pieces, apart = 10, 20 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(pieces))
		for range pieces {
			_, _ = w.Write([]byte("x")) // the client may have closed
			_ = http.NewResponseController(w).Flush()
			time.Sleep(apart)
		}
	}))
	defer s.Close()
	c := config(serverOf(s), same{&Request{Method: "GET", Path: "/", Contains: []byte("xxxxxxxxxx")}})
	c.Rate, c.Warmup, c.Window = 50, 0, time.Second
	r := run(t, c)
	if r.Total.OK != 50 || r.Total.Failed() > 0 || r.Total.Bytes != 50*pieces {
		t.Fatalf("%+v", r.Total)
	}
	latency, err := r.Total.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	if least := (pieces - 1) * apart.Seconds(); latency.Min() < least*0.999 {
		t.Errorf("a response that takes %g s took %g s", least, latency.Min())
	}
	// The server separates the first byte from the last, so this holds on slow machines too.
	first, err := netload.DecodeHistogram(r.FirstByte)
	if err != nil || first.Min() >= latency.Min() {
		t.Errorf("first byte after %g s, all after %g s, %v", first.Min(), latency.Min(), err)
	}
}
