//go:build unix

package host

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newLocal(agent ...string) *Local {
	return NewLocal("here", netip.MustParseAddr("127.0.0.1"), []int{0}, agent...)
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := newLocal().Run(t.Context(), Cmd{Args: []string{"sh", "-c", "cat; echo done"},
		Stdin: strings.NewReader("given "), Stdout: &out})
	if err != nil || out.String() != "given done\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestAgent(t *testing.T) {
	var out bytes.Buffer
	err := newLocal("echo", "agent").Run(t.Context(), Cmd{Args: []string{Agent, "x"}, Stdout: &out})
	if err != nil || out.String() != "agent x\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestErrors(t *testing.T) {
	var exit *ExitError
	err := newLocal().Run(t.Context(), Cmd{Args: []string{"sh", "-c", "echo why >&2; exit 3"}})
	if !errors.As(err, &exit) || exit.Status != 3 || exit.Stderr != "why" || exit.Host != "here" {
		t.Errorf("exit: %v", err)
	}
	err = newLocal().Run(t.Context(), Cmd{Args: []string{"sh", "-c", "kill -9 $$"}})
	if !errors.As(err, &exit) || exit.Status != -1 {
		t.Errorf("signal: %v", err)
	}
	for _, args := range [][]string{{"there-is-no-such-program"}, {"/no/such/file"}, {}, {Agent}} {
		if err := newLocal().Run(t.Context(), Cmd{Args: args}); !errors.Is(err, ErrNoCommand) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestLongStderr(t *testing.T) {
	var exit *ExitError
	err := newLocal().Run(t.Context(), Cmd{Args: []string{"sh", "-c",
		"i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"}})
	if !errors.As(err, &exit) || len(exit.Stderr) > tailSize || !strings.HasSuffix(exit.Stderr, "line 1999") {
		t.Errorf("%v", err)
	}
}

// TestKilled checks that a command and its children have ended before Run returns when the context ends, and also
// children that a command left running.
func TestKilled(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := newLocal().Run(ctx, Cmd{Args: []string{"sh", "-c", "sleep 100 & echo $!; wait"}, Stdout: &out})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	waitGone(t, out.String())
	out.Reset()
	err = newLocal().Run(t.Context(), Cmd{Args: []string{"sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"},
		Stdout: &out})
	if err != nil {
		t.Errorf("error is %v", err)
	}
	waitGone(t, out.String())
}

// waitGone waits until a process has ended; a zombie counts as ended.
func waitGone(t *testing.T, text string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil &&
			strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still lives", pid)
}
