//go:build unix

// Package local is this machine as a host: commands run as children of this program. Tools are
// tested on it, and the self-test measures the generator's own ceiling with it.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A Host is this machine under a name.
type Host struct {
	name  string
	addr  netip.Addr
	cpus  []int
	agent []string
}

// New is this machine as the host name with the address addr; work on it is pinned to cpus. agent is
// the command line that starts this program's agent.
func New(name string, addr netip.Addr, cpus []int, agent ...string) *Host {
	return &Host{name: name, addr: addr, cpus: cpus, agent: agent}
}

// Name is unique in a place.
func (h *Host) Name() string { return h.name }

// Addr is the address to listen on.
func (h *Host) Addr() netip.Addr { return h.addr }

// CPUs are what work is to be pinned to.
func (h *Host) CPUs() []int { return h.cpus }

// stderrKept is how much of a command's last words an ExitError keeps, in bytes.
const stderrKept = 2048

// killWait is how long Run waits for the output of a killed command that somebody still holds open.
const killWait = 2 * time.Second

// Run runs c as the leader of a process group of its own, and kills the whole group when ctx ends. On Linux the kernel
// kills c when this program ends, in whatever way.
func (h *Host) Run(ctx context.Context, c host.Cmd) error {
	args := h.resolve(c.Args)
	if len(args) == 0 {
		return fmt.Errorf("on %s: %w: the command is empty", h.name, host.ErrNoCommand)
	}
	last := &tail{to: c.Stderr}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = c.Stdout, last
	cmd.SysProcAttr = attributes()
	defer stay()()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = killWait
	feed, err := feeder(cmd, c.Stdin)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return h.startError(ctx, c, err)
	}
	go feed()
	err = cmd.Wait()
	// What the command left running goes with it.
	_ = killGroup(cmd.Process.Pid)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &host.ExitError{Command: c.String(), Host: h.name, Status: exit.ExitCode(), Stderr: last.String()}
	}
	if err != nil {
		return fmt.Errorf("on %s: %s: %w", h.name, c, err)
	}
	return nil
}

// feeder gives a command its input, which may come after it has ended: then nobody waits for that.
func feeder(cmd *exec.Cmd, from io.Reader) (feed func(), err error) {
	if from == nil {
		return func() {}, nil
	}
	pipe, err := cmd.StdinPipe()
	return func() {
		defer pipe.Close()
		_, _ = io.Copy(pipe, from) // a command need not read what it is given
	}, err
}

func (h *Host) resolve(args []string) []string {
	if len(args) > 0 && args[0] == host.Agent {
		return append(append([]string{}, h.agent...), args[1:]...)
	}
	return args
}

func (h *Host) startError(ctx context.Context, c host.Cmd, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("on %s: %s: %w", h.name, c.Args[0], host.ErrNoCommand)
	}
	return fmt.Errorf("on %s: start %s: %w", h.name, c, err)
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// A tail passes text on and keeps the end of it.
type tail struct {
	mu sync.Mutex
	to interface{ Write([]byte) (int, error) }
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - stderrKept; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
