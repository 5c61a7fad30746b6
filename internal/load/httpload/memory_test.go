package httpload

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A memory is a listener whose connections are pipes.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { close(m.done); return nil }
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (m *memory) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// simulate runs a test in simulated time, which passes only while every goroutine waits: timing depends on the server
// and the generator alone, and a window of seconds takes no time.
func simulate(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

// serve starts a server in memory, in a simulated test, and returns the configuration of a run against it.
func serve(t *testing.T, s *http.Server) Config {
	m := &memory{make(chan net.Conn), make(chan struct{})}
	go func() { _ = s.Serve(m) }() // until the test ends
	t.Cleanup(func() {
		s.Close()
		time.Sleep(time.Minute) // until the requests that were given up have ended
	})
	c := config(Server{Addresses: []string{"memory:80"}, Host: "memory", connect: m.connect}, get("/"))
	c.sleep = time.Sleep
	return c
}

// TestUnreadBodies checks that a server that does not read bodies delays neither the pace nor the time-outs.
func TestUnreadBodies(t *testing.T) {
	simulate(t, func(t *testing.T) {
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(30 * time.Second)
		})})
		c.Source = same{&Request{Method: "POST", Path: "/", Body: make([]byte, 1<<20)}}
		c.Rate, c.Connections, c.Warmup, c.Window, c.Timeout = 20, 4, 0, 2*time.Second, 500*time.Millisecond
		began := time.Now()
		got, err := Run(t.Context(), c)
		if err != nil || got.Total.Errors[TimedOut] < 30 || time.Since(began) > 10*time.Second {
			t.Errorf("%+v after %v, %v", got.Total, time.Since(began), err)
		}
	})
}
