package agent

import (
	"slices"
	"sync"
	"time"
)

// Limits of what waits at a [Door].
const (
	DoorPatience = time.Second // for an opening, all of it
	DoorMost     = 64          // connections at once; when another one comes, the oldest has to go
)

// A Door keeps connections that have not said yet what they are for, to whatever a request makes an agent listen on.
// Each has a goroutine of its own, so that none waits for another's silence, only so many wait at once, and all of them
// go when the door is closed. It is open from its zero value on.
type Door struct {
	mu      sync.Mutex
	waiting []*guest // in the order in which they came
	closed  bool
	group   sync.WaitGroup
}

// A guest is a connection whose opening is awaited.
type guest struct{ leave func() }

// Await has a connection read its opening, and then lets it in or turns it away. leave makes read return early, also
// when it has not begun; it is called at most once, and not any more when then is.
func (d *Door) Await(read, leave, then func()) {
	g := &guest{leave}
	d.enter(g) // here, since goroutines begin in any order
	d.group.Go(func() {
		read()
		d.gone(g)
		then()
	})
}

func (d *Door) enter(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		g.leave()
		return
	case len(d.waiting) == DoorMost:
		d.waiting[0].leave()
		d.waiting = d.waiting[1:]
	}
	d.waiting = append(d.waiting, g)
}

// gone forgets a guest, which may have had to leave already.
func (d *Door) gone(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.waiting, g); i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
}

// Close makes all that wait leave, and returns when nothing more will be let in or turned away.
func (d *Door) Close() {
	d.mu.Lock()
	d.closed = true
	for _, g := range d.waiting {
		g.leave()
	}
	d.waiting = nil
	d.mu.Unlock()
	d.group.Wait()
}
