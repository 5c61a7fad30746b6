package host

import (
	"cmp"
	"io"
	"strings"
	"sync"
)

// tailSize is how much a Tail keeps by default, in bytes.
const tailSize = 2048

// A Tail is a writer that keeps the end of what is written to it, such as the last lines of a command's errors. It is
// safe for concurrent use.
type Tail struct {
	Keep int // most bytes that are kept; 0: 2048
	mu   sync.Mutex
	last []byte
}

// Write appends p. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if extra := len(t.last) - cmp.Or(t.Keep, tailSize); extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	return len(p), nil
}

// String returns the kept text without surrounding white space.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}

// Tee returns a writer to w and to the tail; only to the tail if w is nil.
func (t *Tail) Tee(w io.Writer) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(t, w)
}
