package host

import (
	"cmp"
	"io"
	"strings"
	"sync"
)

// tailSize is the most that a Tail keeps unless it is set, in bytes.
const tailSize = 2048

// A Tail keeps the end of what is written to it: the last words of a command. It is safe for concurrent use.
type Tail struct {
	Keep int // bytes at most; 0: 2048
	mu   sync.Mutex
	last []byte
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if extra := len(t.last) - cmp.Or(t.Keep, tailSize); extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	return len(p), nil
}

// String is what was kept, without space around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}

// Beneath is a writer to w, if that is not nil, of which the tail keeps the end.
func (t *Tail) Beneath(w io.Writer) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(t, w)
}
