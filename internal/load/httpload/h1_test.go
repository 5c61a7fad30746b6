package httpload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		text, method string
		status, size int
		closing      bool
		fails        error
	}{
		"length":     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "GET", 200, 5, false, nil},
		"no reason":  {"HTTP/1.1 204\r\n\r\n", "GET", 204, 0, false, nil},
		"lone feeds": {"HTTP/1.1 200 OK\ncontent-length:2\n\nhi", "GET", 200, 2, false, nil},
		"chunked": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: 1\r\n\r\n",
			"GET", 200, 6, false, nil},
		"interim": {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
			"PUT", 201, 0, false, nil},
		"until close": {"HTTP/1.1 200 OK\r\n\r\nall the rest", "GET", 200, 12, true, nil},
		"close":       {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", "GET", 200, 1, true, nil},
		"old":         {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "GET", 200, 1, true, nil},
		"old, kept":   {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", "GET", 200, 1, false, nil},
		"head":        {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "HEAD", 200, 0, false, nil},
		"not changed": {"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", "GET", 304, 0, false, nil},

		"nothing":     {"", "GET", 0, 0, false, io.EOF},
		"half a line": {"HTTP/1.1 20", "GET", 0, 0, false, io.ErrUnexpectedEOF},
		"half a head": {"HTTP/1.1 200 OK\r\nContent-", "GET", 0, 0, false, io.ErrUnexpectedEOF},
		"half a body": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", "GET", 0, 0, false, io.ErrUnexpectedEOF},
		"half a chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
			"GET", 0, 0, false, io.ErrUnexpectedEOF},
		"other":      {"SSH-2.0-OpenSSH_9.2\r\n", "GET", 0, 0, false, errMalformed},
		"bad status": {"HTTP/1.1 2x0 OK\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"low status": {"HTTP/1.1 099 OK\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"bad length": {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"two lengths": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
			"GET", 0, 0, false, errMalformed},
		"bad chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "GET", 0, 0, false, errMalformed},
		"long chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
			"GET", 0, 0, false, errMalformed},
		"bad encoding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"no field":     {"HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"switched":     {"HTTP/1.1 101 Switching\r\n\r\n", "GET", 0, 0, false, errMalformed},
		"endless head": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead), "GET", 0, 0, false, errMalformed},
		"endless chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", maxHead),
			"GET", 0, 0, false, errMalformed},
	} {
		for pace, from := range map[string]io.Reader{"at once": strings.NewReader(test.text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.text))} {
			a, err := newReader(from).response(test.method)
			if test.fails != nil {
				if !errors.Is(err, test.fails) {
					t.Errorf("%s %s: %+v, %v; wanted %v", name, pace, a, err, test.fails)
				}
				continue
			}
			if err != nil || a.status != test.status || a.bytes != test.size || a.closing != test.closing {
				t.Errorf("%s %s: %+v, %v", name, pace, a, err)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	r := &Request{Method: "POST", Path: "/a?b=c", Header: []Field{{"X-A", "1"}}, Body: []byte("hello")}
	got := string(r.encode(nil, "h:1", true))
	want := "POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
	if got != want {
		t.Errorf("%q", got)
	}
	read, err := http.ReadRequest(bufio.NewReader(strings.NewReader(got)))
	if err != nil || read.Host != "h:1" || read.ContentLength != 5 {
		t.Errorf("%+v, %v", read, err)
	}
}

// FuzzAnswer checks that responses that this reader and the standard library both accept are read alike, and that no
// input causes a panic.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nrest", "HTTP/1.1 200 OK\nConnection: close\n\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := newReader(bytes.NewReader(text)).response("GET")
		if err != nil {
			return
		}
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), &http.Request{Method: "GET"})
		if err != nil || want.StatusCode < 200 {
			return // the library is stricter, and shows interim responses
		}
		n, err := io.Copy(io.Discard, want.Body)
		if err == nil && (want.StatusCode != a.status || int(n) != a.bytes) {
			t.Errorf("%q: status %d and %d bytes, the library %d and %d", text, a.status, a.bytes, want.StatusCode, n)
		}
	})
}
