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

// Serve is the far end: it runs args, feeds it what the frames on s.Stdin carry, and ends it with all its
// children when they end, or ctx does. How it ended is written to s.Stderr last. An error means that even
// that was not possible.
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
	return verdictOf(ctx, err).write(s.Stderr)
}

// verdictOf says how a command ended, or was killed when ctx ended.
func verdictOf(ctx context.Context, err error) verdict {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return verdict{}
	case ctx.Err() != nil:
		return verdict{Status: -1}
	case errors.As(err, &exit):
		return verdict{Status: exit.ExitCode()}
	}
	return verdict{Missing: errors.Is(err, host.ErrNoCommand), Error: err.Error()}
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
