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
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A scriptedServer answers requests with the given statuses or errors in turn, and records them.
type scriptedServer struct {
	answers  []any
	requests []string // method, path and body of each request
}

func (s *scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(text)
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.Path+body)
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

// TestRetry checks that a request that was lost is sent again when the server is ready, if the server answered before,
// unless repeating the request could have an effect.
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
		{"a server that never answered is not waited for", "GET", "/api", "", healthUnknown, []any{away}, "GET /api", true,
			healthUnknown},
		{"an answer", "GET", "/api", "", healthUnknown, []any{200}, "GET /api", false, healthOK},
		{"away for a moment", "POST", "/api", "pod", healthOK, []any{away, away, 500, 200, 201},
			"POST /api pod, GET /p/readyz, GET /p/readyz, GET /p/readyz, POST /api pod", false, healthOK},
		{"cut, and harmless", "DELETE", "/api", "", healthOK, []any{cut, 200, 200}, "DELETE /api, GET /p/readyz, DELETE /api",
			false, healthOK},
		{"cut, and it may have arrived", "POST", "/api", "pod", healthOK, []any{cut}, "POST /api pod", true, healthDoubtful},
		{"asked first", "POST", "/api", "pod", healthDoubtful, []any{403, 201}, "GET /p/readyz, POST /api pod", false,
			healthOK},
		{"given up, asked once", "GET", "/api", "", healthOutage, []any{away}, "GET /p/readyz", true, healthOutage},
		{"given up, and back", "GET", "/api", "", healthOutage, []any{200, 200}, "GET /p/readyz, GET /api", false, healthOK},
		{"exec has its own connection", "GET", "/pods/a/exec", "", healthDoubtful, []any{away}, "GET /pods/a/exec", true,
			healthDoubtful},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scriptedServer{answers: test.answers}
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
			if (err != nil) != test.fails || strings.Join(s.requests, ", ") != test.seen || c.health.Load() != test.after {
				t.Errorf("%v; %q; %d", err, s.requests, c.health.Load())
			}
		})
	}
}

// TestReadyPath checks that readiness is probed below the path of the API server's URL.
func TestReadyPath(t *testing.T) {
	for host, want := range map[string]string{"https://a": "/readyz", "https://a/": "/readyz", "https://a/p": "/p/readyz",
		"https://a/p/": "/p/readyz", "a:6443": "/readyz"} {
		s := &scriptedServer{answers: []any{200}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = retrier{s, &Cluster{Config: &rest.Config{Host: host}}}.ready(r)
		if err != nil || strings.Join(s.requests, ", ") != "GET "+want {
			t.Errorf("%s: %v, %q", host, err, s.requests)
		}
	}
}

// TestRetryCancelled checks that a cancelled request ends the wait for the server.
func TestRetryCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &scriptedServer{answers: []any{&net.OpError{Op: "dial", Err: errors.New("refused")}}}
	c := &Cluster{Config: &rest.Config{}}
	c.health.Store(healthDoubtful)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://somewhere/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (retrier{s, c}).RoundTrip(r); !errors.Is(err, context.Canceled) || c.health.Load() != healthOutage {
		t.Errorf("%v, %d", err, c.health.Load())
	}
}

// TestSilent checks how long a request waits for a server that accepts it and does not respond, and that a response
// whose body comes later has no limit.
func TestSilent(t *testing.T) {
	for _, test := range []struct {
		name           string
		before, after  int32
		takes          time.Duration
		first          string
		probes, silent bool
	}{
		{"never answered", healthUnknown, healthUnknown, answerLimit, "GET /api", false, true},
		{"fell silent", healthOK, healthOutage, answerLimit + outageLimit, "GET /api", true, false},
		{"given up", healthOutage, healthOutage, ProbeTime, "GET /readyz", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests []string
				silent := roundTripper(func(r *http.Request) (*http.Response, error) {
					requests = append(requests, r.Method+" "+r.URL.Path)
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				c := &Cluster{Config: &rest.Config{Host: "https://somewhere"}}
				c.health.Store(test.before)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://somewhere/api", nil)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = retrier{silent, c}.RoundTrip(r)
				late := time.Since(start) - test.takes
				if err == nil || errors.Is(err, errSilent) != test.silent || late < 0 || late > ProbeTime+probePause {
					t.Errorf("%v after %v, want %v", err, time.Since(start), test.takes)
				}
				if requests[0] != test.first || (len(requests) > 1) != test.probes || c.health.Load() != test.after {
					t.Errorf("%q; %d", requests, c.health.Load())
				}
			})
		})
	}
	t.Run("slow body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &Cluster{Config: &rest.Config{}}
			var of context.Context
			answers := roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(answerLimit - time.Second)
				of = r.Context()
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://somewhere/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := retrier{answers, c}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * answerLimit)
			if of.Err() != nil {
				t.Errorf("the body is cut off: %v", context.Cause(of))
			}
			if err := answer.Body.Close(); err != nil || of.Err() == nil {
				t.Errorf("closed: %v; the request is not released", err)
			}
		})
	})
}

// A roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
