package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// API servers restart, and connections to them break. A request that did not arrive is sent again once the server is
// ready, within outageLimit. A server that has never answered is not waited for.

const (
	outageLimit = 50 * time.Second // longest outage to wait for; a site may take a minute to open
	probePause  = 250 * time.Millisecond
	// answerLimit is the longest wait for the beginning of a response. API servers end requests after a minute themselves.
	answerLimit = 65 * time.Second
	maxTries    = 5 // attempts for a request whose connection breaks each time
)

// ProbeTime is the timeout of one readiness probe.
const ProbeTime = 2 * time.Second

// States of the connection to an API server. Unavailable relies on their order.
const (
	healthUnknown  int32 = iota // no answer yet
	healthOK                    // answered last time
	healthDoubtful              // a connection broke since
	healthOutage                // not ready within outageLimit
)

// markDoubtful makes the next request probe first whether the API server is ready.
func (c *Cluster) markDoubtful() { c.health.CompareAndSwap(healthOK, healthDoubtful) }

// RetryAfterOutage makes the next request wait again for an API server that was not ready within outageLimit.
func (c *Cluster) RetryAfterOutage() { c.health.CompareAndSwap(healthOutage, healthDoubtful) }

// Unavailable reports whether the last connection to the API server broke or the server was not ready.
func (c *Cluster) Unavailable() bool { return c.health.Load() >= healthDoubtful }

// Calls returns the number of requests so far.
func (c *Cluster) Calls() int64 { return c.calls.Load() }

// A retrier sends requests to an API server, counts them, and repeats those that were lost.
type retrier struct {
	next http.RoundTripper
	c    *Cluster
}

func (w retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	w.c.calls.Add(1)
	// An exec has its own connection, whose break its caller handles.
	if strings.HasSuffix(r.URL.Path, "/exec") {
		return w.next.RoundTrip(r)
	}
	for try := 1; ; try++ {
		if err := w.awaitReady(r); err != nil {
			return nil, err
		}
		answer, err := w.roundTrip(r)
		if err == nil {
			w.c.health.Store(healthOK)
			w.c.setClock(answer.Header.Get("Date"))
			return answer, nil
		}
		w.c.markDoubtful()
		if !w.c.Unavailable() || try == maxTries || r.Context().Err() != nil || !repeatable(r, err) {
			return nil, err
		}
		if r, err = withNewBody(r); err != nil {
			return nil, err
		}
	}
}

// errSilent is the error about an API server that accepts a request and does not respond.
var errSilent = fmt.Errorf("the API server accepted the connection and did not respond within %v; check its health, "+
	"and any proxy or load balancer in front of it, or set request-timeout=", answerLimit)

// roundTrip sends a request and waits for the beginning of the response for answerLimit. Reading its body has no limit,
// because watches have none.
func (w retrier) roundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silence := time.AfterFunc(answerLimit, func() { cancel(errSilent) })
	answer, err := w.next.RoundTrip(r.WithContext(ctx))
	silence.Stop()
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection, also to write to
		answer.Body = body{answer.Body, func() { cancel(nil) }}
	}
	return answer, nil
}

// A body is that of a response, and releases the context of its request when it is closed.
type body struct {
	io.ReadCloser
	release func()
}

func (b body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// setClock takes the API server's time from a Date header, so that all clients agree on the age of a timestamp.
func (c *Cluster) setClock(date string) {
	if there, err := http.ParseTime(date); err == nil {
		c.clockOffset.Store(int64(time.Until(there)))
	}
}

// Now returns the API server's time.
func (c *Cluster) Now() time.Time { return time.Now().Add(time.Duration(c.clockOffset.Load())) }

// repeatable reports whether a failed request can be sent again: it did not arrive, or repeating it changes nothing.
func repeatable(r *http.Request, err error) bool {
	if Unreached(err) {
		return r.Body == nil || r.GetBody != nil
	}
	return r.Method == http.MethodGet || r.Method == http.MethodDelete && (r.Body == nil || r.GetBody != nil)
}

// Unreached reports whether an error is a failure to connect.
func Unreached(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func withNewBody(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}
	body, err := r.GetBody()
	again := r.Clone(r.Context())
	again.Body = body
	return again, err
}

// awaitReady waits after an outage until the server is ready: right after its start it cannot authorize requests yet.
func (w retrier) awaitReady(r *http.Request) error {
	if !w.c.Unavailable() {
		return nil
	}
	deadline := time.Now()
	if w.c.health.Load() == healthDoubtful {
		deadline = deadline.Add(outageLimit)
	}
	for {
		err := w.ready(r)
		if err == nil {
			w.c.health.Store(healthOK)
			return nil
		}
		if time.Now().After(deadline) || Pause(r.Context(), probePause) != nil {
			w.c.health.Store(healthOutage)
			if errors.Is(r.Context().Err(), context.Canceled) {
				return context.Cause(r.Context())
			}
			return err
		}
	}
}

// ready probes /readyz with the credentials of r. A server that refuses to answer (4xx other than 429) counts as ready.
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
