// Package httpload is the load generator for HTTP: requests at planned times over HTTP/1.1 or 2, with or
// without TLS, over as many connections as wanted, or as fast as a number of clients gets answers. It
// stands between the agent, which gives it a [Config] and passes its [Report] on, and the network.
//
// What can be pure is: [netload.Pacer] turns time into what is due, the codec of HTTP/1.1 turns bytes into answers,
// search looks for a rate. Connections are at the edge. In an open loop nothing waits for an answer before the next
// request is sent: one thread sends what is due over connections that are free, a goroutine per connection reads the
// answers, and where no connection is free the wait counts, because latency counts from the planned time.
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

// A Request is one request of a workload. A [Source] may hand out the same one again and again; it is
// encoded only once then.
type Request struct {
	Kind     int // an index into the source's names
	Method   string
	Path     string // with the query
	Header   []Field
	Body     []byte
	Statuses []int  // that are successes; empty: 200 to 299
	Contains []byte // that the first MiB of the answer's body must contain; nil: anything

	encoded atomic.Pointer[[]byte] // for HTTP/1.1
}

// good says whether a status is a success. Redirections are not, unless they are wanted.
func (r *Request) good(status int) bool {
	if len(r.Statuses) == 0 {
		return status >= 200 && status < 300
	}
	return slices.Contains(r.Statuses, status)
}

// A Source says what is asked. It is safe for concurrent use.
type Source interface {
	// Names of the kinds of requests, in the order of the report.
	Names() []string
	// Request is the request of operation n, from 0. It must not be changed after it was returned.
	Request(n uint64) *Request
}

// A Server is who is asked.
type Server struct {
	Addresses []string    // host:port, connected to in turn
	Host      string      // of the requests
	TLS       *tls.Config // nil: none
	HTTP2     bool        // over TLS, or in the clear to a server that is known to speak it

	connect func(ctx context.Context, network, address string) (net.Conn, error) // nil: by the kernel
}

// Limits of a run.
const (
	MaxRate        = 100_000 // requests per second
	maxConnections = 10_000
	defaultMost    = 1024 // connections of an open loop
	defaultStreams = 100  // requests at once on a connection of HTTP/2
	defaultTimeout = 10 * time.Second
)

// A Config is a run.
type Config struct {
	Server Server
	Source Source

	Rate    float64 // requests per second, at planned times; 0: closed loop
	Clients int     // of the closed loop: each waits for its answer before it asks again
	// What [Do] searches before: the highest rate whose 99th percentile stays at or below Knee, or the number of clients,
	// from Clients to MostClients, that saturates the server. Run uses neither.
	Knee        time.Duration
	MostClients int
	// Connections that are opened before the run; in an open loop there are up to Most of them if all are
	// waiting for answers.
	Connections, Most int
	Reconnect         bool // a new connection for every request

	Seed           uint64 // of a search's first rate or number of clients
	Warmup, Window time.Duration
	Timeout        time.Duration // of a request, from when it was sent

	// Distress is asked once a second whether the server has had enough, and why: the run ends then. Nil never ends it.
	Distress func(Pulse) string

	sleep func(time.Duration) // of the thread that sends, at most so long; nil: as exactly as the kernel can
}

// ErrConfig is what every error about a Config is.
var ErrConfig = errors.New("invalid run")

// Validate returns an error that Is ErrConfig, or nil.
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

// fill names the server and the protocol where the handshake does not say otherwise.
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

// Run carries out a run. Whatever becomes of requests is in the report; an error means that no
// connection could be opened, that c is invalid, or that ctx ended, whose cause it is then.
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
		d.let(ctx)
	}
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	d.drain(ctx)
	return d.report(), nil
}

// dial opens a connection, and says how long its parts took.
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

// An opening is what a connection took before its first request.
type opening struct{ connect, tls time.Duration }

var errTLS = errors.New("TLS")
