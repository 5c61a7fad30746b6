package web

import (
	"bytes"
	"net"
	"sync/atomic"
)

// A line is a connection of HTTP/1.1. Requests are written by whoever begins them, and one goroutine
// reads the answers.
type line struct {
	d    *driver
	id   int
	conn net.Conn

	// busy is when the request under way was sent, 0 if none is. Whoever makes it 0 says what became of the
	// request; until then the fields below do not change.
	busy    atomic.Int64
	request *Request
	planned int64
}

func openLine(d *driver, conn net.Conn) *line {
	l := &line{d: d, conn: conn}
	d.mu.Lock()
	l.id = d.opened
	d.mu.Unlock()
	go l.read()
	return l
}

// text is the request in the form of HTTP/1.1. Host and connections are the same in a whole run.
func (l *line) text(r *Request) []byte {
	if b := r.encoded.Load(); b != nil {
		return *b
	}
	b := r.encode(nil, l.d.Server.Host, l.d.Reconnect)
	r.encoded.Store(&b)
	return b
}

func (l *line) begin(n uint64, planned int64) {
	l.request, l.planned = l.d.Source.Request(n), planned
	text := l.text(l.request)
	l.busy.Store(max(l.d.now(), 1))
	if _, err := l.conn.Write(text); err != nil {
		l.failed(err)
	}
}

// end takes the request that was sent then, if it is still under way, and counts what became of it.
func (l *line) end(sent int64, o outcome) bool {
	if sent == 0 || !l.busy.CompareAndSwap(sent, 0) {
		return false
	}
	o.kind, o.planned, o.sent = l.request.Kind, l.planned, sent
	l.d.record(l.id, o)
	l.d.flying.Add(-1)
	return true
}

// failed ends a request without an answer, and the connection with it.
func (l *line) failed(err error) {
	l.end(l.busy.Load(), outcome{end: l.d.now(), failure: failureOf(err)})
	l.d.lost(l)
}

func (l *line) read() {
	r := newReader(l.conn)
	var first int64
	r.first = func() { first = l.d.now() }
	r.keep = func() bool { return l.request.Contains != nil }
	for {
		err := r.wait()
		sent := l.busy.Load()
		if err == nil && sent == 0 {
			err = errGarbled // an answer that nobody asked for
		}
		var a answer
		if err == nil {
			a, err = r.answer(l.request.Method)
		}
		if err != nil {
			l.failed(err)
			return
		}
		o := l.outcome(a)
		o.first = first
		if !l.end(sent, o) || a.closing || l.d.Reconnect {
			l.d.lost(l)
			return
		}
		l.d.done(l)
	}
}

// outcome is what an answer makes of the request.
func (l *line) outcome(a answer) outcome {
	o := outcome{end: l.d.now(), status: a.status, good: l.request.good(a.status), bytes: a.bytes, retryAfter: a.retryAfter}
	if want := l.request.Contains; o.good && want != nil && !bytes.Contains(a.body, want) {
		o.good, o.failure = false, Unlike
	}
	return o
}

func (l *line) overdue(before int64) int64 {
	sent := l.busy.Load()
	if sent < before && l.end(sent, outcome{end: l.d.now(), failure: TimedOut}) {
		l.d.lost(l)
		return 0
	}
	return sent
}

func (l *line) close() { _ = l.conn.Close() }
