//go:build linux

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
)

// fixed asks the same all the time.
type fixed struct{ request *httpload.Request }

func (f fixed) Names() []string                  { return []string{"get"} }
func (f fixed) Request(uint64) *httpload.Request { return f.request }

// ours carries out a job with the generator, as the agent does, and prints what came of it.
func ours(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	server, err := httpload.NewServer(j.URL, nil, httpload.Trust{}, false)
	if err != nil {
		return err
	}
	if j.RSS > 0 {
		go tellSize(j.RSS)
	}
	before := cpu()
	r, err := httpload.Run(ctx, httpload.Config{
		Server: server, Source: fixed{&httpload.Request{Method: "GET", Path: "/"}},
		Rate: j.Rate, Clients: j.Clients, Connections: 16, Window: j.Duration,
	})
	if err != nil {
		return err
	}
	late, err := netload.DecodeHistogram(r.Late)
	if err != nil {
		return err
	}
	f := figure{Sent: int(r.Total.OK), Failed: int(r.Total.Failed()), CPU: (cpu() - before).Seconds(), Elapsed: r.Window}
	if late.Count() > 0 {
		f.LateP99 = late.Quantile(0.99)
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func cpu() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tellSize says now and then how large the process is.
func tellSize(every time.Duration) {
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

// serve answers every request with the same few bytes, with as little work as can be: it is not to be the limit.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", l.Addr())
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
	buf := make([]byte, 4096)
	seen := 0 // of the blank line that ends a request
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		for _, b := range buf[:n] {
			switch {
			case b == "\r\n\r\n"[seen]:
				seen++
			case b == '\r':
				seen = 1
			default:
				seen = 0
			}
			if seen < 4 {
				continue
			}
			seen = 0
			if _, err := c.Write(text); err != nil {
				return
			}
		}
	}
}
