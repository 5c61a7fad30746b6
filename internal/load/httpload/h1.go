package httpload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// errMalformed is wrapped by every error about a response that is not valid HTTP.
var errMalformed = errors.New("not valid HTTP")

// maxHead is the largest head of a response, and the longest line of a chunked body, in bytes.
const maxHead = 64 << 10

// encode appends the request in the format of HTTP/1.1 (RFC 9112) to b; closing adds Connection: close.
func (r *Request) encode(b []byte, host string, closing bool) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	for _, f := range r.Header {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	if closing {
		b = append(b, "Connection: close\r\n"...)
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, r.Body...)
}

// A response holds the parts of a response that matter to the load generator.
type response struct {
	status     int
	closing    bool // the server closes the connection after this response
	retryAfter bool
	length     int64 // of the body; -1: no Content-Length
	chunked    bool
	bytes      int    // of the body
	body       []byte // kept only if it has to be checked
}

// A reader reads responses from a connection. It allocates nothing per response.
type reader struct {
	from        io.Reader
	buf         []byte
	r, w        int         // unread bytes are buf[r:w]
	first       func()      // called when the first bytes of a response have arrived
	keep        func() bool // reports whether the body must be kept
	body        []byte      // the kept body
	firstCalled bool        // first was called for the current response
}

func newReader(from io.Reader) *reader { return &reader{from: from, buf: make([]byte, 16<<10)} }

// more reads more bytes into the buffer, which grows up to maxHead.
func (r *reader) more() error {
	if r.r > 0 {
		copy(r.buf, r.buf[r.r:r.w])
		r.w -= r.r
		r.r = 0
	}
	if r.w == len(r.buf) {
		if len(r.buf) >= maxHead {
			return fmt.Errorf("%w: a head or line of more than %d bytes", errMalformed, maxHead)
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.from.Read(r.buf[r.w:])
	if n > 0 && !r.firstCalled && r.first != nil {
		r.firstCalled = true
		r.first()
	}
	r.w += n
	if n > 0 {
		return nil
	}
	return err
}

// line reads a line and returns it without its end. It is valid until the next call.
func (r *reader) line() ([]byte, error) {
	from := 0
	for {
		if i := bytes.IndexByte(r.buf[r.r+from:r.w], '\n'); i >= 0 {
			line := r.buf[r.r : r.r+from+i]
			r.r += from + i + 1
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		from = r.w - r.r
		if err := r.more(); err != nil {
			return nil, err
		}
	}
}

// wait waits for the first bytes of a response.
func (r *reader) wait() error {
	r.firstCalled = false
	if r.r == r.w {
		return r.more()
	}
	r.firstCalled = true
	if r.first != nil {
		r.first()
	}
	return nil
}

// response reads the response to a request with that method, and skips interim responses (status 1xx). An error that Is
// not errMalformed comes from the connection; io.EOF means that it was closed before the first byte.
func (r *reader) response(method string) (response, error) {
	r.body = r.body[:0]
	for {
		a, err := r.head()
		if err != nil {
			return a, err
		}
		if a.status >= 100 && a.status < 200 {
			if a.status == 101 {
				return a, fmt.Errorf("%w: the server switched to another protocol", errMalformed)
			}
			continue // an interim response
		}
		err = r.readBody(&a, method)
		a.body = r.body
		return a, err
	}
}

// head reads the status line and the header fields.
func (r *reader) head() (a response, err error) {
	line, err := r.line()
	if err != nil {
		if errors.Is(err, io.EOF) && r.r < r.w {
			err = io.ErrUnexpectedEOF
		}
		return a, err
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return a, fmt.Errorf("%w: %.40q is no status line", errMalformed, line)
	}
	status, ok := digits(line[9:12])
	if !ok || status < 100 {
		return a, fmt.Errorf("%w: %.40q has no status", errMalformed, line)
	}
	a.status, a.closing, a.length = int(status), line[7] == '0', -1
	for {
		line, err := r.line()
		if err != nil {
			return a, unexpected(err)
		}
		if len(line) == 0 {
			return a, nil
		}
		if err := a.field(line); err != nil {
			return a, err
		}
	}
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field stores the header fields that matter to the load generator, and ignores others.
func (a *response) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return fmt.Errorf("%w: %.40q is no header field", errMalformed, line)
	}
	value = bytes.TrimSpace(value)
	switch {
	case equalFold(name, "content-length"):
		n, ok := digits(value)
		if !ok || a.length >= 0 && a.length != n {
			return fmt.Errorf("%w: Content-Length %.40q", errMalformed, value)
		}
		a.length = n
	case equalFold(name, "transfer-encoding"):
		if !equalFold(value, "chunked") {
			return fmt.Errorf("%w: Transfer-Encoding %.40q is not known", errMalformed, value)
		}
		a.chunked = true
	case equalFold(name, "connection"):
		a.closing = a.closing && !equalFold(value, "keep-alive") || equalFold(value, "close")
	case equalFold(name, "retry-after"):
		a.retryAfter = true
	}
	return nil
}

// equalFold reports whether text equals want, which is in lower case, without regard to case.
func equalFold(text []byte, want string) bool {
	if len(text) != len(want) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// digits parses a number of at most 18 digits.
func digits(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// readBody reads the body by its Content-Length, by its chunks, or to the end of the connection.
func (r *reader) readBody(a *response, method string) error {
	switch {
	case method == "HEAD" || a.status == 204 || a.status == 304:
		return nil
	case a.chunked:
		return r.chunks(a)
	case a.length >= 0:
		return r.skip(a, a.length)
	}
	// Without a length, the body ends with the connection.
	a.closing = true
	for {
		if r.r == r.w {
			if err := r.more(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
		r.use(a, r.w-r.r)
	}
}

// use takes the next n bytes of the buffer as part of the body.
func (r *reader) use(a *response, n int) {
	if r.keep != nil && r.keep() {
		r.body = append(r.body, r.buf[r.r:r.r+min(n, maxKept-len(r.body))]...)
	}
	r.r += n
	a.bytes += n
}

// maxKept is how many bytes of a body are kept for the check; the rest is not checked.
const maxKept = 1 << 20

// skip reads n bytes of the body.
func (r *reader) skip(a *response, n int64) error {
	for n > 0 {
		if r.r == r.w {
			if err := r.more(); err != nil {
				return unexpected(err)
			}
		}
		part := int(min(n, int64(r.w-r.r)))
		r.use(a, part)
		n -= int64(part)
	}
	return nil
}

// chunks reads a chunked body (RFC 9112, 7.1) and the trailer.
func (r *reader) chunks(a *response) error {
	for {
		line, err := r.line()
		if err != nil {
			return unexpected(err)
		}
		size, _, _ := bytes.Cut(line, []byte{';'})
		size = bytes.TrimSpace(size)
		n, err := strconv.ParseUint(string(size), 16, 60)
		if err != nil || len(size) > 15 {
			return fmt.Errorf("%w: %.40q is no size of a chunk", errMalformed, line)
		}
		if n == 0 {
			return r.trailer()
		}
		if err := r.skip(a, int64(n)); err != nil {
			return err
		}
		if end, err := r.line(); err != nil {
			return unexpected(err)
		} else if len(end) != 0 {
			return fmt.Errorf("%w: a chunk is longer than its size", errMalformed)
		}
	}
}

func (r *reader) trailer() error {
	for {
		line, err := r.line()
		if err != nil {
			return unexpected(err)
		}
		if len(line) == 0 {
			return nil
		}
	}
}
