package agent

import (
	"slices"
	"sync"
	"time"
)

// Limits of an [Admission].
const (
	AdmissionTime     = time.Second // for reading the whole opening of one connection
	AdmissionCapacity = 64          // connections that wait at once; another one evicts the oldest
)

// An Admission tracks the new connections of a listener until each has presented its token, and bounds how many may
// wait and for how long. Each is read by a goroutine of its own, so that a silent one delays no other. The zero value
// is ready to use.
type Admission struct {
	mu      sync.Mutex
	waiting []*connection // oldest first
	closed  bool
	group   sync.WaitGroup
}

// A connection waits to present its token.
type connection struct{ evict func() }

// Add calls read and then finish in a goroutine: read reads the connection's opening, finish accepts or closes the
// connection. evict must make read return early, even if read has not begun; it is called at most once, and never after
// finish has begun.
func (a *Admission) Add(read, evict, finish func()) {
	c := &connection{evict}
	a.enter(c) // before the goroutine starts, to keep the order of arrival
	a.group.Go(func() {
		read()
		a.remove(c)
		finish()
	})
}

// enter adds c to the queue. It evicts the oldest connection if too many wait, and c itself after Close.
func (a *Admission) enter(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		c.evict()
		return
	case len(a.waiting) == AdmissionCapacity:
		a.waiting[0].evict()
		a.waiting = a.waiting[1:]
	}
	a.waiting = append(a.waiting, c)
}

// remove removes c, unless it has been evicted.
func (a *Admission) remove(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiting, c); i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
}

// Close evicts every waiting connection and returns when finish has been called for each.
func (a *Admission) Close() {
	a.mu.Lock()
	a.closed = true
	for _, c := range a.waiting {
		c.evict()
	}
	a.waiting = nil
	a.mu.Unlock()
	a.group.Wait()
}
