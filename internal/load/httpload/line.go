package httpload

import "net"

// A line is a connection of HTTP/1.1. Requests are written by the goroutine that begins them; another goroutine reads
// the responses.
type line struct {
	activeRequest
	conn net.Conn
}

func openLine(d *driver, conn net.Conn) *line {
	l := &line{activeRequest: newActiveRequest(d), conn: conn}
	go l.read()
	return l
}

// text returns the encoded request. It encodes each request once, since Host and Connection are the same for the whole
// run.
func (l *line) text(r *Request) []byte {
	if b := r.encoded.Load(); b != nil {
		return *b
	}
	b := r.encode(nil, l.d.Server.Host, l.d.Reconnect)
	r.encoded.Store(&b)
	return b
}

func (l *line) begin(o scheduledRequest) {
	l.take(o)
	text := l.text(l.request)
	l.sent()
	if len(text) > maxNonblocking {
		go l.write(text) // a server that does not read must not delay the other requests
		return
	}
	l.write(text)
}

// maxNonblocking is how many bytes a connection without a request under way accepts without blocking: a quarter of the
// kernel's usual send buffer.
const maxNonblocking = 4 << 10

func (l *line) write(text []byte) {
	if _, err := l.conn.Write(text); err != nil {
		l.failed(err)
	}
}

// failed records the request under way as failed, and gives up the connection.
func (l *line) failed(err error) {
	l.fail(failureOf(err))
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
			err = errMalformed // a response without a request
		}
		var a response
		if err == nil {
			a, err = r.response(l.request.Method)
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

// outcome returns the outcome of a request with this response.
func (l *line) outcome(a response) outcome {
	o := outcome{end: l.d.now(), status: a.status, good: l.request.good(a.status),
		bytes: a.bytes, retryAfter: a.retryAfter}
	if o.good && l.request.lacksContent(a.body) {
		o.good, o.failure = false, Mismatch
	}
	return o
}

func (l *line) overdue(before int64) int64 {
	sent, expired := l.expire(before)
	if expired {
		l.d.lost(l)
	}
	return sent
}

func (l *line) close() { _ = l.conn.Close() }
