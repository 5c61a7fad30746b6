package httpload

import (
	"bytes"
	"sync/atomic"
)

// A flight is the request that a lane has under way, and what becomes of it.
type flight struct {
	d  *driver
	id int // of the lane's connection

	// busy is when the request under way was sent, 0 if none is. Whoever makes it 0 says what became of the
	// request; until then the fields below do not change.
	busy    atomic.Int64
	request *Request
	taken   pending
}

// newFlight is the flight of a lane on the connection that is opened next.
func newFlight(d *driver) flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	return flight{d: d, id: d.opened}
}

// take takes up an operation.
func (f *flight) take(o pending) { f.request, f.taken = f.d.Source.Request(o.n), o }

// sent says that the request is sent now.
func (f *flight) sent() { f.busy.Store(max(f.d.now(), 1)) }

// end takes the request that was sent then, if it is still under way, and counts what became of it.
func (f *flight) end(sent int64, o outcome) bool {
	if sent == 0 || !f.busy.CompareAndSwap(sent, 0) {
		return false
	}
	o.kind, o.planned, o.sent = f.request.Kind, f.taken.planned, sent
	f.d.record(f.id, o)
	f.d.flying.Add(-1)
	return true
}

// fail ends whatever request is under way without an answer.
func (f *flight) fail(failure string) {
	f.end(f.busy.Load(), outcome{end: f.d.now(), failure: failure})
}

// expire gives up a request that was sent before a time. It returns when the one that goes on was sent, 0 if none does.
func (f *flight) expire(before int64) (sent int64, expired bool) {
	sent = f.busy.Load()
	if sent < before && f.end(sent, outcome{end: f.d.now(), failure: TimedOut}) {
		return 0, true
	}
	return sent, false
}

// unlike says whether a success lacks what it has to contain.
func (r *Request) unlike(body []byte) bool {
	return r.Contains != nil && !bytes.Contains(body, r.Contains)
}
