//go:build unix

package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os/exec"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
)

// Serve runs args at the far end and feeds it the data of the frames on s.Stdin. It ends the command with all its
// children when the frames or ctx end. The command's exit status is written to s.Stderr last. An error means that it
// could not be written.
func Serve(ctx context.Context, s Streams, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdin := newQueue()
	defer stdin.close()
	go func() {
		defer cancel()
		unframe(s.Stdin, stdin)
	}()
	err := host.Exec(ctx, host.Cmd{Args: args, Stdin: stdin, Stdout: s.Stdout, Stderr: s.Stderr})
	return statusOf(ctx, err).write(s.Stderr)
}

// statusOf returns the exit status for the error of host.Exec; -1 if ctx has ended, since the command was killed then.
func statusOf(ctx context.Context, err error) exitStatus {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitStatus{}
	case ctx.Err() != nil:
		return exitStatus{Status: -1}
	case errors.As(err, &exit):
		return exitStatus{Status: exit.ExitCode()}
	}
	return exitStatus{Missing: errors.Is(err, host.ErrNoCommand), Error: err.Error()}
}

// unframe puts the data of the frames into q until the frames end.
func unframe(in io.Reader, q *queue) {
	var length [4]byte
	for {
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > frameSize {
			return // not a frame
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

// A queue holds the input that the command has not read yet. It is unbounded, so that the end of the frames is read
// even if the command reads nothing.
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
