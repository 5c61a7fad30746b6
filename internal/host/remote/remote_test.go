//go:build unix

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// newHost returns a host whose far end is this process.
func newHost(spoil func(*Streams)) Host {
	return Host{Name: "far", Agent: "knotmeter-agent", KillTimeout: 3 * time.Second,
		Exec: func(ctx context.Context, args []string, s Streams) error {
			if spoil != nil {
				spoil(&s)
			}
			return Serve(ctx, s, args[2:])
		}}
}

func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	long := strings.Repeat("0123456789abcdef", 1<<14)
	c := host.Cmd{Args: []string{"sh", "-c", "cat; echo said >&2"},
		Stdin: strings.NewReader(long), Stdout: &out, Stderr: &errs}
	if err := newHost(nil).Run(t.Context(), c); err != nil || out.String() != long || errs.String() != "said\n" {
		t.Errorf("%d bytes, %q, %v", out.Len(), errs.String(), err)
	}
	if err := newHost(nil).Run(t.Context(), host.Cmd{Args: []string{"sh", "-c", "read x; test -z \"$x\""}}); err != nil {
		t.Errorf("without Stdin: %v", err)
	}
}

func TestErrors(t *testing.T) {
	var exit *host.ExitError
	err := newHost(nil).Run(t.Context(), host.Cmd{Args: []string{"sh", "-c", "echo why >&2; exit 3"}})
	if !errors.As(err, &exit) || exit.Status != 3 || exit.Stderr != "why" || exit.Host != "far" {
		t.Errorf("exit: %v", err)
	}
	err = newHost(nil).Run(t.Context(), host.Cmd{Args: []string{"sh", "-c", "kill -9 $$"}})
	if !errors.As(err, &exit) || exit.Status != -1 {
		t.Errorf("signal: %v", err)
	}
	for _, args := range [][]string{{"no-such-program-anywhere"}, {"/no/such/file"}, nil} {
		if err := newHost(nil).Run(t.Context(), host.Cmd{Args: args}); !errors.Is(err, host.ErrNoCommand) {
			t.Errorf("%q: %v", args, err)
		}
	}
	err = newHost(nil).Run(t.Context(), host.Cmd{Args: []string{"/"}})
	if err == nil || errors.Is(err, host.ErrNoCommand) {
		t.Errorf("a directory: %v", err)
	}
}

// TestAgent checks that the agent is started by its path at the far end, with its own command.
func TestAgent(t *testing.T) {
	var got []string
	p := Host{Agent: "/agent", Exec: func(_ context.Context, args []string, s Streams) error {
		got = args
		return exitStatus{}.write(s.Stderr)
	}}
	if err := p.Run(t.Context(), host.Cmd{Args: []string{host.Agent, "x"}}); err != nil ||
		strings.Join(got, " ") != "/agent exec /agent agent x" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLost checks that a connection that ends without an exit status is lost.
func TestLost(t *testing.T) {
	for name, says := range map[string]string{"nothing": "",
		"words": "some words\n", "half a verdict": marker + `{"status":0`} {
		p := Host{Name: "far", Exec: func(_ context.Context, _ []string, s Streams) error {
			_, err := io.WriteString(s.Stderr, says)
			return err
		}}
		if err := p.Run(t.Context(), host.Cmd{Args: []string{"true"}}); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	reset := errors.New("connection reset")
	p := Host{Name: "far", Exec: func(context.Context, []string, Streams) error { return reset }}
	if err := p.Run(t.Context(), host.Cmd{Args: []string{"true"}}); !errors.Is(err, ErrLost) || !errors.Is(err, reset) {
		t.Errorf("an error: %v", err)
	}
}

// TestCancel checks that the command and its children have ended before Run returns when ctx ends, also if the command
// does not read a long input.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	go func() {
		pid := make([]byte, 100)
		n, _ := reader.Read(pid)
		t.Logf("process %s", bytes.TrimSpace(pid[:n]))
		cancel()
	}()
	input := strings.NewReader(strings.Repeat("x", 1<<20))
	began := time.Now()
	err := newHost(nil).Run(ctx, host.Cmd{Args: []string{"sh", "-c", "sleep 600 & echo $!; wait"},
		Stdin: input, Stdout: writer})
	if !errors.Is(err, context.Canceled) || time.Since(began) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := newHost(nil).Run(ctx, host.Cmd{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestNoAnswer checks that a far end that does not respond is abandoned.
func TestNoAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Host{KillTimeout: time.Millisecond, Exec: func(held context.Context, _ []string, _ Streams) error {
		cancel()
		<-held.Done()
		return held.Err()
	}}
	if err := p.Run(ctx, host.Cmd{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCut checks that a lost connection ends the command at the far end.
func TestCut(t *testing.T) {
	in, frames := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan error)
	pid, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pid.Close()
	go func() {
		ended <- Serve(t.Context(), Streams{Stdin: in, Stdout: out, Stderr: &errs},
			[]string{"sh", "-c", "echo $$; sleep 600"})
	}()
	if _, err := pid.Read(make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	_ = frames.CloseWithError(errors.New("connection reset"))
	if err := <-ended; err != nil || !strings.Contains(errs.String(), `{"status":-1}`) {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// TestStatusReader checks that text is passed on up to the exit status, and that the status is read, however the writes
// are split.
func TestStatusReader(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		text := strings.Repeat("\x1eknot words ", random.IntN(4))
		whole := text + marker + `{"status":7}` + "\n"
		var to bytes.Buffer
		r := newStatusReader(&to)
		for rest := whole; rest != ""; {
			n := 1 + random.IntN(len(rest))
			if _, err := r.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if v, ok := r.status(); !ok || v.Status != 7 || to.String() != text || r.last.String() != strings.TrimSpace(text) {
			t.Fatalf("%q: %+v %v, passed %q", whole, v, ok, to.String())
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte("words" + marker + `{"status":1}` + "\n"))
	f.Add([]byte(marker + marker))
	f.Fuzz(func(t *testing.T, b []byte) {
		var to bytes.Buffer
		r := newStatusReader(&to)
		n, err := r.Write(b)
		if n != len(b) || err != nil || !bytes.HasPrefix(b, to.Bytes()) {
			t.Errorf("%d of %d, %v, passed %q", n, len(b), err, to.Bytes())
		}
		r.status()
	})
}

func FuzzUnframe(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 'a', 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		q := newQueue()
		unframe(bytes.NewReader(b), q)
		q.close()
		if got, err := io.ReadAll(q); err != nil || len(got) > len(b) {
			t.Errorf("%d bytes of %d, %v", len(got), len(b), err)
		}
	})
}

func TestWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Wait(ctx) }()
	_ = syscall.Kill(os.Getpid(), syscall.SIGCHLD) // no child has ended: nothing happens
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
