package httpload

import (
	"bytes"
	"sync/atomic"
)

// An activeRequest is the request that a lane has under way.
type activeRequest struct {
	d  *driver
	id int // connections opened before the lane's; selects a shard

	// busy is when the request under way was sent; 0: there is none. The goroutine that sets it to 0 records the
	// outcome or sends the request again; until then the fields below do not change.
	busy    atomic.Int64
	request *Request
	taken   scheduledRequest
}

// newActiveRequest returns the flight of a lane on a connection that is not counted in d.opened yet.
func newActiveRequest(d *driver) activeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return activeRequest{d: d, id: d.opened}
}

// take sets the operation to send.
func (f *activeRequest) take(o scheduledRequest) { f.request, f.taken = f.d.Source.Request(o.n), o }

// sent marks the request as sent now.
func (f *activeRequest) sent() { f.busy.Store(max(f.d.now(), 1)) }

// end records the outcome of the request that was sent at the time sent, and reports whether it was still under way.
func (f *activeRequest) end(sent int64, o outcome) bool {
	if sent == 0 || !f.busy.CompareAndSwap(sent, 0) {
		return false
	}
	o.kind, o.planned, o.sent = f.request.Kind, f.taken.planned, sent
	f.d.record(f.id, o)
	f.d.inFlight.Add(-1)
	return true
}

// fail ends the request under way, if any, with a failure.
func (f *activeRequest) fail(failure string) {
	f.end(f.busy.Load(), outcome{end: f.d.now(), failure: failure})
}

// expire ends the request under way as timed out if it was sent before a time, and reports that in expired. Otherwise
// it returns when that request was sent; 0: there is none.
func (f *activeRequest) expire(before int64) (sent int64, expired bool) {
	sent = f.busy.Load()
	if sent < before && f.end(sent, outcome{end: f.d.now(), failure: TimedOut}) {
		return 0, true
	}
	return sent, false
}

// lacksContent reports whether the body of a response lacks what it must contain.
func (r *Request) lacksContent(body []byte) bool {
	return r.Contains != nil && !bytes.Contains(body, r.Contains)
}
