//go:build unix

package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// killWait is how long the output of a killed command is waited for that somebody still holds open.
const killWait = 2 * time.Second

// Serve is the far end: it runs args, feeds it what the frames on s.Stdin carry, and ends it with all its
// children when they end, or ctx does. How it ended is written to s.Stderr last. An error means that even
// that was not possible.
func Serve(ctx context.Context, s Streams, args []string) error {
	return run(ctx, s, args).write(s.Stderr)
}

func run(ctx context.Context, s Streams, args []string) verdict {
	if len(args) == 0 {
		return verdict{Missing: true}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdin := newQueue()
	defer stdin.close()
	go func() {
		defer cancel()
		unframe(s.Stdin, stdin)
	}()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = killWait
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return verdict{Error: err.Error()}
	}
	if err := cmd.Start(); err != nil {
		return verdict{Missing: errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT), Error: err.Error()}
	}
	go func() {
		defer pipe.Close()
		_, _ = io.Copy(pipe, stdin) // a command need not read what it is given
	}()
	err = cmd.Wait()
	// What the command left running goes with it.
	_ = killGroup(cmd.Process.Pid)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return verdict{Status: exit.ExitCode()}
	case err != nil:
		return verdict{Error: err.Error()}
	}
	return verdict{}
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// unframe puts what the frames carry into q, and returns when there are no more of them.
func unframe(in io.Reader, q *queue) {
	var length [4]byte
	for {
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > frameSize {
			return // not ours
		}
		if n == 0 {
			q.close()
			continue
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		q.put(b)
	}
}

// A queue holds input that the command has not read yet, as much as there is: the end of the frames must
// be seen also when the command reads nothing.
type queue struct {
	mu    sync.Mutex
	ready *sync.Cond
	b     []byte
	over  bool
}

func newQueue() *queue {
	q := &queue{}
	q.ready = sync.NewCond(&q.mu)
	return q
}

func (q *queue) put(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.b = append(q.b, b...)
	}
	q.ready.Signal()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.ready.Broadcast()
}

func (q *queue) Read(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b) == 0 && !q.over {
		q.ready.Wait()
	}
	if len(q.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, q.b)
	q.b = q.b[n:]
	return n, nil
}
