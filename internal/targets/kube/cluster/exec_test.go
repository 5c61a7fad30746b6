package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// silentServer returns the URL of a server that accepts connections and never answers, and a channel that reports
// requests.
func silentServer(t *testing.T) (server string, requests <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	heard := make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				if n, _ := c.Read(make([]byte, 1)); n > 0 {
					heard <- struct{}{}
				}
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "http://" + l.Addr().String(), heard
}

// executors returns both executors of commands in a pod.
func executors(t *testing.T, server string) map[string]remotecommand.Executor {
	t.Helper()
	config := &rest.Config{Host: server}
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, server)
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"WebSocket": websocket, "SPDY": spdy}
}

func TestStreamUnanswered(t *testing.T) {
	server, _ := silentServer(t)
	for name, executor := range executors(t, server) {
		t.Run(name, func(t *testing.T) {
			s := remote.Streams{Stdin: strings.NewReader("in"), Stdout: io.Discard, Stderr: io.Discard}
			if err := stream(t.Context(), executor, s, time.Millisecond); !errors.Is(err, errUnanswered) {
				t.Errorf("%v, want %v", err, errUnanswered)
			}
		})
	}
}

// TestCancelUnanswered checks that a command whose connection gets no answer ends with its context, as at Ctrl-C.
func TestCancelUnanswered(t *testing.T) {
	server, requests := silentServer(t)
	for name, executor := range executors(t, server) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			far := remote.Host{Name: "pod", Agent: "agent", KillTimeout: time.Millisecond,
				Exec: func(ctx context.Context, _ []string, s remote.Streams) error {
					return stream(ctx, executor, s, time.Hour)
				}}
			go func() {
				<-requests
				cancel()
			}()
			if err := far.Run(ctx, host.Cmd{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
		})
	}
}
