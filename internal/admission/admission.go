// Package admission tracks new connections of a listener until each has presented its token, and bounds how many may
// wait and for how long. The load generators and the preflight checks use it.
package admission

import (
	"slices"
	"sync"
	"time"
)

// Limits of a [Queue].
const (
	Timeout  = time.Second // for reading the whole opening of one connection
	Capacity = 64          // connections that wait at once; another one evicts the oldest
)

// A Queue tracks connections that have not presented their token yet. Each is read by a goroutine of its own, so that a
// silent one delays no other. The zero value is ready to use.
type Queue struct {
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
func (q *Queue) Add(read, evict, finish func()) {
	c := &connection{evict}
	q.enter(c) // before the goroutine starts, to keep the order of arrival
	q.group.Go(func() {
		read()
		q.remove(c)
		finish()
	})
}

// enter adds c to the queue. It evicts the oldest connection of a full queue, and c itself if the queue is closed.
func (q *Queue) enter(c *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		c.evict()
		return
	case len(q.waiting) == Capacity:
		q.waiting[0].evict()
		q.waiting = q.waiting[1:]
	}
	q.waiting = append(q.waiting, c)
}

// remove takes c out of the queue, unless it has been evicted.
func (q *Queue) remove(c *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, c); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// Close evicts every waiting connection and returns when finish has been called for each.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	for _, c := range q.waiting {
		c.evict()
	}
	q.waiting = nil
	q.mu.Unlock()
	q.group.Wait()
}
