package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSilence starts commands that wait for what never comes, interrupts each once it waits, and checks that it ends
// with the status of an interruption.
func TestSilence(t *testing.T) {
	t.Setenv("KNOTMETER_CLAIMS", t.TempDir())
	for name, args := range map[string][]string{
		"plan":   {"plan", "-f", "FIFO"},
		"run":    {"run", "-f", "FIFO"},
		"suite":  {"plan", "local:/tmp", "--suite", "storage:FIFO"},
		"audit":  {"audit", "FIFO"},
		"import": {"import", "csv", "FIFO", "--out", "OUT"},
	} {
		t.Run(name+" reads a FIFO", func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			endsInterrupted(t, strings.NewReplacer("FIFO", fifo), args, func() bool {
				// Open fails until the FIFO is opened for reading.
				fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_NONBLOCK, 0)
				if err == nil {
					t.Cleanup(func() { unix.Close(fd) })
				}
				return err == nil
			})
		})
	}
	for name, args := range map[string][]string{
		"clean":  {"clean", "kube:silent"},
		"doctor": {"doctor", "kube:silent"},
		"plan":   {"plan", "kube:silent", "kube:silent?label=b"},
		"run":    {"run", "kube:silent", "kube:silent?label=b", "--yes", "--out", "OUT"},
	} {
		t.Run(name+" asks an API server", func(t *testing.T) {
			asked := make(chan struct{}, 1000)
			server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			config := filepath.Join(t.TempDir(), "config")
			err := os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, current-context: silent,
  contexts: [{name: silent, context: {cluster: silent, user: u}}], users: [{name: u, user: {token: x}}],
  clusters: [{name: silent, cluster: {insecure-skip-tls-verify: true, server: "`+server.URL+`"}}]}`), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBECONFIG", config)
			endsInterrupted(t, strings.NewReplacer(), args, func() bool { return len(asked) > 0 })
		})
	}
}

// endsInterrupted runs a command, interrupts it as soon as it waits, and checks how it ended and what it left.
func endsInterrupted(t *testing.T, names *strings.Replacer, args []string, waits func() bool) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	var given []string
	for _, arg := range args {
		given = append(given, strings.Replace(names.Replace(arg), "OUT", out, 1))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- Main(ctx, Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, "test", given)
	}()
	deadline := time.After(time.Minute)
	for !waits() {
		select {
		case s := <-status:
			t.Fatalf("%v ended by itself with status %d: %s", given, s, &stderr)
		case <-deadline:
			t.Fatalf("%v does not wait", given)
		case <-time.After(10 * time.Millisecond):
		}
	}
	interrupt()
	select {
	case s := <-status:
		if s != statusInterrupted || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%v: status %d: %s", given, s, &stderr)
		}
	case <-deadline:
		t.Fatalf("%v does not end", given)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || len(left) > 0 {
		t.Errorf("%v left %v, %v", given, left, err)
	}
}
