package httpload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// A stream carries one request at a time on a connection of HTTP/2, which net/http implements.
type stream struct {
	activeRequest
	shared  *sharedConn
	work    chan scheduledRequest
	quit    chan struct{}
	closing atomic.Bool
	cancel  atomic.Pointer[context.CancelFunc]
}

// A sharedConn is a connection of HTTP/2 with the number of its open streams.
type sharedConn struct {
	conn    *http.ClientConn
	streams atomic.Int64
}

// openHTTP2 returns the streams of a new connection. It closes conn on errors.
func openHTTP2(d *driver, conn net.Conn) ([]lane, error) {
	client, err := newClientConn(d.Server, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	n := defaultStreams
	if d.Clients > 0 {
		n = 1 // each client of a closed loop has a connection
	}
	c := &sharedConn{conn: client}
	c.streams.Store(int64(n))
	var lanes []lane
	for range n {
		s := &stream{activeRequest: newActiveRequest(d), shared: c,
			work: make(chan scheduledRequest, 1), quit: make(chan struct{})}
		go s.serve()
		lanes = append(lanes, s)
	}
	return lanes, nil
}

// newClientConn returns an HTTP/2 client over conn.
func newClientConn(s Server, conn net.Conn) (*http.ClientConn, error) {
	var only http.Protocols
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
		only.SetHTTP2(true)
	} else {
		only.SetUnencryptedHTTP2(true)
	}
	given := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	t := &http.Transport{Protocols: &only, DialContext: given, DialTLSContext: given, DisableCompression: true}
	return t.NewClientConn(context.Background(), scheme, conn.RemoteAddr().String())
}

func (s *stream) begin(o scheduledRequest) {
	s.take(o)
	s.sent()
	select {
	case s.work <- s.taken:
	case <-s.quit:
		s.fail(Closed)
	}
}

// serve carries out the stream's requests until the stream is closed or its connection is unusable.
func (s *stream) serve() {
	for {
		select {
		case <-s.quit:
			s.fail(Closed)
			return
		case <-s.work:
		}
		sent := s.busy.Load()
		if !s.usable() {
			s.moveToNewConnection(sent)
			return
		}
		o, err := s.ask(s.request)
		if err != nil {
			o.failure = failureOf(err)
		}
		s.end(sent, o)
		if !s.usable() {
			s.d.lost(s)
			return
		}
		s.d.done(s)
	}
}

// usable reports whether the connection accepts another request.
func (s *stream) usable() bool { return s.shared.conn.Err() == nil }

// moveToNewConnection moves a request to a new connection, because the server closed this one while it was idle.
func (s *stream) moveToNewConnection(sent int64) {
	mine := s.busy.CompareAndSwap(sent, 0)
	s.d.lost(s)
	if !mine {
		return
	}
	p := s.taken
	go func() {
		if err := s.d.connect(context.Background(), &p); err != nil {
			s.d.fail(p, err)
		}
	}()
}

// ask sends a request and reads its response. The outcome has its times even with an error.
func (s *stream) ask(r *Request) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.d.Timeout)
	s.cancel.Store(&cancel)
	defer cancel()
	var first atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { first.Store(s.d.now()) }})
	var o outcome
	request, err := s.newRequest(ctx, r)
	if err == nil {
		var response *http.Response
		if response, err = s.shared.conn.RoundTrip(request); err == nil {
			o, err = s.readResponse(r, response)
		}
	}
	o.first, o.end = first.Load(), s.d.now()
	if _, is := errors.AsType[streamError](err); is {
		err = syscall.ECONNRESET // only this stream was reset
	}
	return o, err
}

// A streamError is the reset of a stream by the server. net/http's own type is not exported, but its As method accepts
// any struct with the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "the stream was reset" }

// newRequest converts a request for net/http.
func (s *stream) newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	scheme := "http"
	if s.d.Server.TLS != nil {
		scheme = "https"
	}
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, scheme+"://"+s.d.Server.Host+r.Path, body)
	if err != nil {
		return nil, err
	}
	for _, f := range r.Header {
		request.Header.Add(f.Name, f.Value)
	}
	return request, nil
}

// readResponse reads the body of a response.
func (s *stream) readResponse(r *Request, response *http.Response) (outcome, error) {
	defer response.Body.Close()
	o := outcome{status: response.StatusCode, good: r.good(response.StatusCode),
		retryAfter: response.Header.Get("Retry-After") != ""}
	var kept []byte
	var err error
	if r.Contains != nil {
		kept, err = io.ReadAll(io.LimitReader(response.Body, maxKept))
	}
	o.bytes = len(kept)
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, response.Body)
		o.bytes += int(rest)
	}
	if err == nil && o.good && r.lacksContent(kept) {
		o.good, o.failure = false, Mismatch
	}
	if err != nil {
		o.good = false
	}
	return o, err
}

func (s *stream) overdue(before int64) int64 {
	sent, expired := s.expire(before)
	if cancel := s.cancel.Load(); expired && cancel != nil {
		(*cancel)()
	}
	return sent
}

func (s *stream) close() {
	if s.closing.Swap(true) {
		return
	}
	close(s.quit)
	if s.shared.streams.Add(-1) == 0 {
		_ = s.shared.conn.Close()
	}
}
