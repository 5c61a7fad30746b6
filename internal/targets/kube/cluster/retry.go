package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// API servers restart, and connections to them break. What one did not get is sent again when it is ready, as long as
// that may take; one that never answered is not waited for.

const (
	absence    = 50 * time.Second // that an API server may have, within the minute that places may take
	ProbeTime  = 2 * time.Second  // for one question whether it is ready
	probePause = 250 * time.Millisecond
	repeats    = 5 // of a request whose connection breaks each time
)

// What is known of the way to an API server.
const (
	unknown  int32 = iota // it never answered
	sound                 // it answered last time
	doubtful              // a connection broke
	broken                // it was waited for in vain
)

// doubt makes the next request ask first whether the API server is ready.
func (c *Cluster) doubt() { c.health.CompareAndSwap(sound, doubtful) }

// Hope has the next request wait again for an API server that was waited for in vain.
func (c *Cluster) Hope() { c.health.CompareAndSwap(broken, doubtful) }

// Lost says whether the API server was away last time.
func (c *Cluster) Lost() bool { return c.health.Load() >= doubtful }

// Calls are the requests so far.
func (c *Cluster) Calls() int64 { return c.calls.Load() }

// A retrier carries requests to an API server, counts them, and sends those again that got lost.
type retrier struct {
	next http.RoundTripper
	c    *Cluster
}

func (w retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	w.c.calls.Add(1)
	// Who executes something learns of the break from its own connection.
	if strings.HasSuffix(r.URL.Path, "/exec") {
		return w.next.RoundTrip(r)
	}
	for try := 1; ; try++ {
		if err := w.await(r); err != nil {
			return nil, err
		}
		answer, err := w.next.RoundTrip(r)
		if err == nil {
			w.c.health.Store(sound)
			w.c.setClock(answer.Header.Get("Date"))
			return answer, nil
		}
		w.c.doubt()
		if !w.c.Lost() || try == repeats || r.Context().Err() != nil || !repeatable(r, err) {
			return nil, err
		}
		if r, err = rewound(r); err != nil {
			return nil, err
		}
	}
}

// setClock takes the time of the API server from an answer, so that all who ask it agree on how long ago something was.
func (c *Cluster) setClock(date string) {
	if there, err := http.ParseTime(date); err == nil {
		c.ahead.Store(int64(time.Until(there)))
	}
}

// Now is the API server's time.
func (c *Cluster) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// repeatable says whether a request can be sent again: it never arrived, or a second time changes nothing.
func repeatable(r *http.Request, err error) bool {
	if Unreached(err) {
		return r.Body == nil || r.GetBody != nil
	}
	return r.Method == http.MethodGet || r.Method == http.MethodDelete && (r.Body == nil || r.GetBody != nil)
}

// Unreached says whether there was nobody to connect to.
func Unreached(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func rewound(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}
	body, err := r.GetBody()
	again := r.Clone(r.Context())
	again.Body = body
	return again, err
}

// await waits until a server that was away is ready: right after its start it does not know yet who may do what.
func (w retrier) await(r *http.Request) error {
	if !w.c.Lost() {
		return nil
	}
	deadline := time.Now()
	if w.c.health.Load() == doubtful {
		deadline = deadline.Add(absence)
	}
	for {
		err := w.ready(r)
		if err == nil {
			w.c.health.Store(sound)
			return nil
		}
		if time.Now().After(deadline) || Pause(r.Context(), probePause) != nil {
			w.c.health.Store(broken)
			if errors.Is(r.Context().Err(), context.Canceled) {
				return context.Cause(r.Context())
			}
			return err
		}
	}
}

// ready asks the server whether it is, as who asks for r. Servers that do not tell are taken for ready.
func (w retrier) ready(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), ProbeTime)
	defer cancel()
	probe := r.Clone(ctx)
	probe.Method, probe.Body, probe.GetBody, probe.ContentLength = http.MethodGet, nil, nil, 0
	base, _, err := rest.DefaultServerUrlFor(w.c.Config)
	if err != nil {
		return err
	}
	base.Path = path.Join("/", base.Path, "readyz")
	probe.URL = base
	answer, err := w.next.RoundTrip(probe)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		return &url.Error{Op: "Get", URL: probe.URL.String(), Err: errors.New(answer.Status)}
	}
	return nil
}
