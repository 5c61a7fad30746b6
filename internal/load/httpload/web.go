// Package httpload is the load generator for HTTP/1.1 and HTTP/2, with or without TLS: requests at scheduled times
// (open loop), or from clients that each wait for their last response (closed loop). The agent passes it a [Config] and
// forwards its [Report].
//
// The parts without connections are pure: [netload.Pacer] computes which requests are due, the codec of HTTP/1.1 parses
// responses, search looks for a rate. In an open loop no request waits for the response to another: one thread sends
// the requests that are due over free connections, a goroutine per connection reads the responses. If no connection is
// free, the wait counts, because latency counts from the scheduled time.
package httpload

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// A Field is a header field.
type Field struct{ Name, Value string }

// A Request is one request of a workload. A [Source] may return the same one repeatedly, which is then encoded only
// once.
type Request struct {
	Kind     int // index into the source's names
	Method   string
	Path     string // with the query
	Header   []Field
	Body     []byte
	Statuses []int  // successful ones; empty: 200 to 299
	Contains []byte // must be in the first MiB of the response's body; nil: no check

	encoded atomic.Pointer[[]byte] // as HTTP/1.1
}

// good reports whether a status is a success. A redirection is one only if Statuses lists it.
func (r *Request) good(status int) bool {
	if len(r.Statuses) == 0 {
		return status >= 200 && status < 300
	}
	return slices.Contains(r.Statuses, status)
}

// A Source returns the requests of a run. It is safe for concurrent use.
type Source interface {
	// Names returns the kinds of requests in the order of the report.
	Names() []string
	// Request returns the request of operation n, from 0. The request must not change after it was returned.
	Request(n uint64) *Request
}

// A Server is the server under load.
type Server struct {
	Addresses []string    // host:port, connected to in turn
	Host      string      // for the Host header, and without its port the name in the certificate
	TLS       *tls.Config // nil: none
	HTTP2     bool        // over TLS, or in clear text to a server with prior knowledge

	connect func(ctx context.Context, network, address string) (net.Conn, error) // nil: a net.Dialer
}

// Limits and defaults of a run.
const (
	MaxRate        = 100_000 // requests per second
	maxConnections = 10_000
	defaultMost    = 1024 // connections of an open loop
	defaultStreams = 100  // requests at once on a connection of HTTP/2
	defaultTimeout = 10 * time.Second
)

// A Config describes a run.
type Config struct {
	Server Server
	Source Source

	Rate    float64 // requests per second at scheduled times; 0: closed loop
	Clients int     // of a closed loop: each waits for its response before its next request
	// Knee and MostClients make [Do] search first: for the highest rate whose 99th percentile stays at or below Knee, or
	// for the number of clients, from Clients to MostClients, that saturates the server. Run ignores both.
	Knee        time.Duration
	MostClients int
	// Connections are opened before the run. An open loop opens up to Most of them if all are waiting for responses.
	Connections, Most int
	Reconnect         bool // use a new connection for every request

	Seed           uint64 // for a search's first rate or number of clients
	Warmup, Window time.Duration
	Timeout        time.Duration // of a request, from its sending

	// Distress is called once a second. If it returns a reason, the run stops. Nil never stops it.
	Distress func(ServerHealth) string

	sleep func(time.Duration) // blocks the sending thread for at most a duration; nil: as precisely as the kernel can
}

// A Load is the part of a [Config] that tells when requests are sent, as an agent is told it.
type Load struct {
	Rate        float64       `json:"rate,omitempty"`
	Clients     int           `json:"clients,omitempty"`
	MostClients int           `json:"most_clients,omitempty"`
	Knee        time.Duration `json:"knee,omitempty"` // ns
	Seed        uint64        `json:"seed,omitempty"`
	Warmup      time.Duration `json:"warmup"` // ns
	Window      time.Duration `json:"window"` // ns
}

// Config returns the configuration of a generator that stops when the server is in distress.
func (l Load) Config(s Server, from Source) Config {
	return Config{
		Server: s, Source: from, Rate: l.Rate, Clients: l.Clients, MostClients: l.MostClients, Knee: l.Knee,
		Seed: l.Seed, Warmup: l.Warmup, Window: l.Window, Distress: Distress,
	}
}

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("invalid run")

// Validate returns an error that Is ErrConfig if a field is out of range.
func (c Config) Validate() error {
	switch {
	case len(c.Server.Addresses) == 0 || c.Source == nil:
		return fmt.Errorf("%w: it has no server or nothing to ask", ErrConfig)
	case (c.Rate > 0) == (c.Clients > 0):
		return fmt.Errorf("%w: it has either a rate or clients", ErrConfig)
	case !(c.Rate >= 0 && c.Rate <= MaxRate):
		return fmt.Errorf("%w: a rate of %g per second is not up to %d", ErrConfig, c.Rate, MaxRate)
	case c.Clients < 0 || c.Clients > maxConnections || c.Connections < 0 ||
		c.Connections > maxConnections || c.Most < 0 || c.Most > maxConnections || c.MostClients > maxConnections:
		return fmt.Errorf("%w: connections and clients are up to %d", ErrConfig, maxConnections)
	case c.Reconnect && c.Server.HTTP2:
		return fmt.Errorf("%w: HTTP/2 has its requests on one connection; a new one for each is for HTTP/1.1", ErrConfig)
	case c.Window <= 0 || c.Warmup < 0 || c.Timeout < 0:
		return fmt.Errorf("%w: a time is negative, or there is no window", ErrConfig)
	}
	return nil
}

// fill sets the defaults.
func (c *Config) fill() {
	c.Server.fill()
	if c.sleep == nil {
		c.sleep = sleep
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Clients > 0 {
		c.Connections, c.Most = c.Clients, c.Clients
		return
	}
	c.Connections = cmp.Or(c.Connections, 1)
	c.Most = max(cmp.Or(c.Most, defaultMost), c.Connections)
}

// fill sets the defaults of the connection and of TLS.
func (s *Server) fill() {
	if s.connect == nil {
		s.connect = new(net.Dialer).DialContext
	}
	if s.TLS == nil {
		return
	}
	s.TLS = s.TLS.Clone()
	if s.TLS.ServerName == "" {
		name, _, err := net.SplitHostPort(s.Host)
		if err != nil {
			name = s.Host
		}
		s.TLS.ServerName = name
	}
	s.TLS.NextProtos = []string{"http/1.1"}
	if s.HTTP2 {
		s.TLS.NextProtos = []string{"h2"}
	}
}

// Run carries out a run. Failed requests are in the report; an error means that c is invalid, that no connection could
// be opened, or that ctx ended, and is then its cause.
func Run(ctx context.Context, c Config) (Report, error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	c.fill()
	d := newDriver(c)
	defer d.closeAll()
	if err := d.connectFirst(ctx); err != nil {
		return Report{}, err
	}
	stop := context.AfterFunc(ctx, d.closeAll)
	defer stop()
	if c.Rate > 0 {
		d.pace(ctx)
	} else {
		d.runClosedLoop(ctx)
	}
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	d.drain(ctx)
	return d.report(), nil
}

// dial opens a connection and returns how long its parts took.
func (s Server) dial(ctx context.Context, turn int) (net.Conn, opening, error) {
	var o opening
	began := time.Now()
	conn, err := s.connect(ctx, "tcp", s.Addresses[turn%len(s.Addresses)])
	if err != nil {
		return nil, o, err
	}
	o.connect = time.Since(began)
	if s.TLS == nil {
		return conn, o, nil
	}
	began = time.Now()
	secure := tls.Client(conn, s.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, o, fmt.Errorf("%w: %w", errTLS, err)
	}
	o.tls = time.Since(began)
	if got := secure.ConnectionState().NegotiatedProtocol; s.HTTP2 && got != "h2" {
		conn.Close()
		return nil, o, fmt.Errorf("%w: the server does not speak HTTP/2 (it chose %q)", errTLS, got)
	}
	return secure, o, nil
}

// An opening holds how long it took to open a connection.
type opening struct{ connect, tls time.Duration }

// errTLS is wrapped by errors of the TLS handshake.
var errTLS = errors.New("TLS")
