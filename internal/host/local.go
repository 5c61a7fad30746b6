//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"syscall"
	"time"
)

// A Local is this machine as a host. Commands run as children of this program.
type Local struct {
	name  string
	addr  netip.Addr
	cpus  []int
	agent []string
}

// NewLocal returns this machine as a host with a name and an address, whose work is pinned to cpus. agent is the
// command line that starts this program's agent.
func NewLocal(name string, addr netip.Addr, cpus []int, agent ...string) *Local {
	return &Local{name: name, addr: addr, cpus: cpus, agent: agent}
}

// Name returns the name of the host.
func (h *Local) Name() string { return h.name }

// Addr returns the address of the host.
func (h *Local) Addr() netip.Addr { return h.addr }

// CPUs returns the CPUs that the work is pinned to.
func (h *Local) CPUs() []int { return h.cpus }

// Run runs c as [Exec] does, with errors as [Host] describes them.
func (h *Local) Run(ctx context.Context, c Cmd) error {
	var last Tail
	var exit *exec.ExitError
	err := Exec(ctx, Cmd{c.Argv(h.agent...), c.Stdin, c.Stdout, last.Tee(c.Stderr)})
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &exit):
		return &ExitError{Command: c.String(), Host: h.name, Status: exit.ExitCode(), Stderr: last.String()}
	case errors.Is(err, ErrNoCommand):
		return fmt.Errorf("on %s: %w", h.name, err)
	}
	return fmt.Errorf("on %s: %s: %w", h.name, c, err)
}

// killWait is how long Exec waits for the output of a killed command if another process holds it open.
const killWait = 2 * time.Second

// Exec runs a command as a child of this program and the leader of its own process group. It kills the whole group when
// the command has ended, or when ctx ends; then it returns ctx's cause. On Linux the kernel kills the command when this
// program ends for any reason. The error wraps ErrNoCommand if the program does not exist; other errors are those of
// [exec.Cmd].
func Exec(ctx context.Context, c Cmd) error {
	if len(c.Args) == 0 {
		return fmt.Errorf("%w: the command is empty", ErrNoCommand)
	}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.SysProcAttr = sysProcAttr()
	defer lockThread()()
	kill := func() error { return killGroup(cmd.Process.Pid) }
	cmd.Cancel, cmd.WaitDelay = kill, killWait
	feed, err := inputFeeder(cmd, c.Stdin)
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		go feed()
		err = cmd.Wait()
		_ = kill() // children that the command left running
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s: %w", c.Args[0], ErrNoCommand)
	}
	return err
}

// inputFeeder returns a function that copies from into the command's input. Exec does not wait for that function, since
// the reader may block after the command has ended.
func inputFeeder(cmd *exec.Cmd, from io.Reader) (feed func(), err error) {
	if from == nil {
		return func() {}, nil
	}
	pipe, err := cmd.StdinPipe()
	return func() {
		defer pipe.Close()
		_, _ = io.Copy(pipe, from) // a command need not read its input
	}, err
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
