package httpload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// Failures of requests, as keys of [Report.Errors].
const (
	TimedOut  = "timeout"  // no complete response in time
	Unsent    = "unsent"   // scheduled, but no connection was free until the end
	Refused   = "refused"  // connection refused
	Reset     = "reset"    // connection reset
	Closed    = "closed"   // connection closed before the response was complete
	Insecure  = "tls"      // TLS handshake or certificate
	Lookup    = "lookup"   // name without an address
	Malformed = "protocol" // not valid HTTP
	Mismatch  = "check"    // the response lacks what it must contain
	Other     = "other"
)

// A Report holds the results of a run. Times are in seconds unless a comment says otherwise. Only requests that were
// scheduled, or in a closed loop begun, in the window count.
type Report struct {
	Window  float64 `json:"window"`
	Planned uint64  `json:"planned"` // requests
	Total   Tally   `json:"total"`
	Kinds   []Kind  `json:"kinds"` // in the order of the source's names

	Service   string `json:"service,omitempty"`    // histogram of the times from sending to the response's end, ns
	FirstByte string `json:"first_byte,omitempty"` // the same, to the response's first byte
	Connect   string `json:"connect,omitempty"`    // the same for opening TCP connections
	TLS       string `json:"tls,omitempty"`        // the same for TLS handshakes
	Late      string `json:"late,omitempty"`       // lateness of the generator itself, ns

	Steps       []uint64 `json:"steps"`       // successes per netload.Step of the window
	Connections int      `json:"connections"` // opened in total
	AtOnce      int      `json:"at_once"`     // largest number of open connections
	CPU         float64  `json:"cpu"`         // seconds that this process used in the window
	Elapsed     float64  `json:"elapsed"`     // seconds between the two readings of CPU
	Wake        float64  `json:"wake"`        // median time that goroutines of this process waited for a CPU, rounded down
	RetryAfter  uint64   `json:"retry_after"` // responses with Retry-After
	// Stopped is why the run ended early; empty: it did not.
	Stopped string `json:"stopped,omitempty"`
}

// The generator distorts a latency if its own delays, by lateness or by waiting for a CPU, exceed both limits.
const (
	LateShare   = 0.1    // of the latency
	LateAtLeast = 200e-6 // s
)

// Starved reports whether the generator waited so long for a CPU that it distorts a latency of the given seconds.
func (r Report) Starved(took float64) bool { return r.Wake >= LateAtLeast && r.Wake > LateShare*took }

// A Kind holds the results of one kind of request.
type Kind struct {
	Name string `json:"name"`
	Tally
}

// A Tally counts requests by their outcome. Latency is that of successes, from the scheduled time, or in a closed loop
// from sending, to the response's end. Waited has the times of the other requests, until their failure, their
// unsuccessful response, or the end of the run.
type Tally struct {
	OK       uint64            `json:"ok"`
	Statuses map[int]uint64    `json:"statuses,omitempty"` // of responses that are not successes
	Errors   map[string]uint64 `json:"errors,omitempty"`
	Bytes    uint64            `json:"bytes"` // of the bodies of successes
	Latency  string            `json:"latency,omitempty"`
	Waited   string            `json:"waited,omitempty"`
}

// Failed returns how many requests were not a success.
func (t Tally) Failed() uint64 {
	var n uint64
	for _, v := range t.Statuses {
		n += v
	}
	for _, v := range t.Errors {
		n += v
	}
	return n
}

// An outcome is the result of one request. Times are ns since the run began.
type outcome struct {
	kind                      int
	planned, sent, first, end int64
	status                    int    // 0: no response
	failure                   string // key of Report.Errors; "": the status decides
	good                      bool
	bytes                     int
	retryAfter                bool
}

// A shard counts the outcomes of some connections, so that connections seldom wait for a lock.
type shard struct {
	mu         sync.Mutex
	total      counts
	kinds      []counts
	service    *netload.Histogram
	first      *netload.Histogram
	meter      *netload.Meter
	retryAfter uint64
}

// counts accumulates the values of a [Tally].
type counts struct {
	ok, bytes uint64
	statuses  map[int]uint64
	errors    map[string]uint64
	latency   *netload.Histogram
	waited    *netload.Histogram // nil until something fails
}

func newCounts() counts {
	return counts{statuses: map[int]uint64{}, errors: map[string]uint64{}, latency: netload.NewHistogram()}
}

// waitedHistogram returns the histogram waited, and makes it at the first call.
func (c *counts) waitedHistogram() *netload.Histogram {
	if c.waited == nil {
		c.waited = netload.NewHistogram()
	}
	return c.waited
}

func newShard(kinds int, line netload.Timeline) *shard {
	s := &shard{total: newCounts(), service: netload.NewHistogram(),
		first: netload.NewHistogram(), meter: netload.NewMeter(line)}
	for range kinds {
		s.kinds = append(s.kinds, newCounts())
	}
	return s
}

// add counts an outcome that belongs to the window.
func (s *shard) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.add(o)
	if len(s.kinds) > 1 {
		s.kinds[o.kind].add(o)
	}
	if o.retryAfter {
		s.retryAfter++
	}
	if o.good {
		s.service.Record(o.end - o.sent)
		s.first.Record(o.first - o.sent)
		s.meter.Add(o.end, 1)
	}
}

func (c *counts) add(o outcome) {
	if o.good {
		c.ok++
		c.bytes += uint64(o.bytes)
		c.latency.Record(o.end - o.planned)
		return
	}
	c.waitedHistogram().Record(o.end - o.planned)
	if o.failure != "" {
		c.errors[o.failure]++
		return
	}
	c.statuses[o.status]++
}

func (c *counts) merge(o counts) {
	c.ok += o.ok
	c.bytes += o.bytes
	for k, v := range o.statuses {
		c.statuses[k] += v
	}
	for k, v := range o.errors {
		c.errors[k] += v
	}
	c.latency.Merge(o.latency)
	if o.waited != nil {
		c.waitedHistogram().Merge(o.waited)
	}
}

func (c counts) tally() Tally {
	return Tally{
		OK: c.ok, Bytes: c.bytes, Statuses: maps.Clone(c.statuses), Errors: maps.Clone(c.errors),
		Latency: c.latency.Encode(), Waited: c.waited.Encode(),
	}
}

// failureOf returns the key of [Report.Errors] for a connection's error.
func failureOf(err error) string {
	var lookup *net.DNSError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT):
		return TimedOut
	case errors.Is(err, errMalformed):
		return Malformed
	case errors.Is(err, errTLS), errors.As(err, &authority), errors.As(err, &record):
		return Insecure
	case errors.As(err, &lookup):
		return Lookup
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return Closed
	}
	return Other
}

// Histogram returns the latencies of all requests. Failed ones count as at least as slow as the slowest success.
func (t Tally) Histogram() (*netload.Histogram, error) {
	all, err := netload.DecodeHistogram(t.Latency)
	if err != nil {
		return nil, err
	}
	waited, err := netload.DecodeHistogram(t.Waited)
	if err != nil {
		return nil, err
	}
	all.AddFailed(waited)
	return all, nil
}
