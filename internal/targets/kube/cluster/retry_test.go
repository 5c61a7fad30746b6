package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// A script is what a server answers to one request after the other: a status, or an error.
type script struct {
	answers []any
	seen    []string // method, path and body of each request
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(text)
	}
	s.seen = append(s.seen, r.Method+" "+r.URL.Path+body)
	if len(s.answers) == 0 {
		return nil, errors.New("nothing more was expected")
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if err, is := next.(error); is {
		return nil, err
	}
	return &http.Response{StatusCode: next.(int), Status: fmt.Sprint(next), Body: io.NopCloser(strings.NewReader(""))}, nil
}

// What a server that has answered before did not get is sent again when it is ready; nothing is sent twice that could
// do something twice.
func TestRetry(t *testing.T) {
	away, cut := &net.OpError{Op: "dial", Err: errors.New("refused")}, errors.New("EOF")
	for _, test := range []struct {
		name, method, path, body string
		state                    int32
		answers                  []any
		seen                     string
		fails                    bool
		after                    int32
	}{
		{"a unknownr is not waited for", "GET", "/api", "", unknown, []any{away}, "GET /api", true, unknown},
		{"an answer", "GET", "/api", "", unknown, []any{200}, "GET /api", false, sound},
		{"away for a moment", "POST", "/api", "pod", sound, []any{away, away, 500, 200, 201},
			"POST /api pod, GET /p/readyz, GET /p/readyz, GET /p/readyz, POST /api pod", false, sound},
		{"cut, and harmless", "DELETE", "/api", "", sound, []any{cut, 200, 200}, "DELETE /api, GET /p/readyz, DELETE /api",
			false, sound},
		{"cut, and it may have arrived", "POST", "/api", "pod", sound, []any{cut}, "POST /api pod", true, doubtful},
		{"asked first", "POST", "/api", "pod", doubtful, []any{403, 201}, "GET /p/readyz, POST /api pod", false, sound},
		{"given up, asked once", "GET", "/api", "", broken, []any{away}, "GET /p/readyz", true, broken},
		{"given up, and back", "GET", "/api", "", broken, []any{200, 200}, "GET /p/readyz, GET /api", false, sound},
		{"exec has its own connection", "GET", "/pods/a/exec", "", doubtful, []any{away}, "GET /pods/a/exec", true, doubtful},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &script{answers: test.answers}
			c := &Cluster{Config: &rest.Config{Host: "https://somewhere/p/"}}
			c.health.Store(test.state)
			var body io.Reader
			if test.body != "" {
				body = strings.NewReader(test.body)
			}
			r, err := http.NewRequestWithContext(t.Context(), test.method, "https://somewhere"+test.path, body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = retrier{s, c}.RoundTrip(r)
			if (err != nil) != test.fails || strings.Join(s.seen, ", ") != test.seen || c.health.Load() != test.after {
				t.Errorf("%v; %q; %d", err, s.seen, c.health.Load())
			}
		})
	}
}

// An API server is asked whether it is ready below its own path, if it has one.
func TestReadyPath(t *testing.T) {
	for host, want := range map[string]string{"https://a": "/readyz", "https://a/": "/readyz", "https://a/p": "/p/readyz",
		"https://a/p/": "/p/readyz", "a:6443": "/readyz"} {
		s := &script{answers: []any{200}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = retrier{s, &Cluster{Config: &rest.Config{Host: host}}}.ready(r)
		if err != nil || strings.Join(s.seen, ", ") != "GET "+want {
			t.Errorf("%s: %v, %q", host, err, s.seen)
		}
	}
}

// Whoever does not want to wait any longer need not.
func TestRetryCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{answers: []any{&net.OpError{Op: "dial", Err: errors.New("refused")}}}
	c := &Cluster{Config: &rest.Config{}}
	c.health.Store(doubtful)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://somewhere/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (retrier{s, c}).RoundTrip(r); !errors.Is(err, context.Canceled) || c.health.Load() != broken {
		t.Errorf("%v, %d", err, c.health.Load())
	}
}
