// Package preflight checks two places before a run: each reports facts about itself, and the client connects to the
// server by the path that the run will use. A target whose places are pods has the agents in them do this.
//
// A connection that carries data is the only sign of readiness that counts, because addresses, endpoints and rules
// reach the nodes one after another.
package preflight

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Verb is the agent request that runs one place's preflight: its body is a [Spec], its result a [Report]. The request's
// token is Spec.Token.
const Verb = "preflight"

// A Role is the part that a place has in a preflight.
type Role string

// The roles. A Witness only reports facts.
const (
	Client  Role = "client"
	Server  Role = "server"
	Witness Role = "witness"
)

// A Spec describes the part of one place in a preflight.
type Spec struct {
	Role    Role           `json:"role"`
	Token   string         `json:"-"`                 // secret that the client proves to the server
	Address netip.AddrPort `json:"address,omitzero"`  // to listen on or to dial
	Timeout time.Duration  `json:"timeout"`           // ns, until the other place must have connected
	Ask     []string       `json:"ask,omitempty"`     // URLs on the node whose answers the report keeps
	Volume  string         `json:"volume,omitempty"`  // path of a directory or block device to report on
	Sockets bool           `json:"sockets,omitempty"` // report the sockets of the place during the connection
	Capture bool           `json:"capture,omitempty"` // capture what the place sends and receives meanwhile
}

// NewToken returns a random token for one preflight.
func NewToken() string { return rand.Text() }

// A Report is the result of one place.
type Report struct {
	Program    string              `json:"program"` // version of the agent's program
	Facts      []result.Fact       `json:"facts"`
	Interfaces []machine.Interface `json:"interfaces"`
	Answers    map[string]string   `json:"answers,omitempty"` // by URL
	// Throttled counts the periods in which the control group of the place used up its CPU quota, since it was made.
	Throttled int64 `json:"throttled,omitempty"`
	// Volume describes the path Spec.Volume; nil if that is empty.
	Volume *machine.VolumeState `json:"volume,omitempty"`
	// The rest describes the connection; a witness has none.
	Local      netip.AddrPort `json:"local,omitzero"`  // own end
	Remote     netip.AddrPort `json:"remote,omitzero"` // other end as this place sees it
	MTU        int            `json:"mtu,omitempty"`   // of the route, in bytes
	Congestion string         `json:"congestion,omitempty"`
	Device     machine.Device `json:"device,omitzero"`    // device with the place's own address of the connection
	Attempts   int            `json:"attempts,omitempty"` // of the client, the successful one included
	Error      string         `json:"error,omitempty"`    // why the connection failed; empty: it succeeded
	// NoPort reports that the connection failed because the server could not listen.
	NoPort bool `json:"noPort,omitempty"`
	// Sockets are the TCP sockets of the place's network namespace during the connection, those of other processes
	// included; nil unless Spec.Sockets is set and they can be read.
	Sockets []machine.Socket `json:"sockets,omitempty"`
	// Captured is what Spec.Capture asks for; nil if that is not set.
	Captured *Captured `json:"captured,omitempty"`
}

// Captured describes what the Ethernet devices of a place sent and received from before its connection until the
// client confirmed the answer.
type Captured struct {
	Segments int    `json:"segments"`        // TCP segments with data
	Readable bool   `json:"readable"`        // a frame had the token in plain text
	Error    string `json:"error,omitempty"` // why some or all frames are missing, such as that CAP_NET_RAW is
}

const (
	maxAnswer      = 1 << 10 // bytes kept of an answer to Spec.Ask
	askTimeout     = 500 * time.Millisecond
	attemptTimeout = 300 * time.Millisecond
	retryInterval  = 20 * time.Millisecond
	maxTimeout     = time.Minute
	answerText     = "knotmeter: here\n"
	confirmText    = "\n"
)

// Run carries out a specification. A failed connection is in the report; an error means that there is no report.
func Run(ctx context.Context, s Spec, program string) (Report, error) {
	if err := s.validate(); err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r := Report{Program: program, Facts: machine.PlaceFacts(), Interfaces: machine.Interfaces(),
		Throttled: machine.Throttled()}
	if s.Volume != "" {
		r.Volume = machine.InspectVolume(s.Volume)
	}
	if s.Capture {
		defer r.capture(s.Token)()
	}
	var err error
	switch s.Role {
	case Server:
		err = r.listen(ctx, s)
	case Client:
		err = r.dial(ctx, s)
	case Witness:
		r.ask(ctx, s.Ask)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r, nil
}

// capture starts a capture. The returned function ends it and reports what it recorded.
func (r *Report) capture(token string) (end func()) {
	r.Captured = &Captured{}
	c, err := machine.StartCapture(false)
	if err != nil {
		r.Captured.Error = err.Error()
		return func() {}
	}
	return func() {
		frames, err := c.Frames()
		go c.Close()
		if err != nil {
			r.Captured.Error = err.Error()
		}
		for _, f := range frames {
			if machine.IsTCPData(f) {
				r.Captured.Segments++
			}
			r.Captured.Readable = r.Captured.Readable || bytes.Contains(f, []byte(token))
		}
	}
}

// ErrSpec is wrapped by every error about a specification.
var ErrSpec = errors.New("invalid preflight specification")

func (s Spec) validate() error {
	meets := s.Role == Client || s.Role == Server
	switch {
	case !meets && s.Role != Witness:
		return fmt.Errorf("%w: its role is unknown", ErrSpec)
	case s.Timeout <= 0 || s.Timeout > maxTimeout:
		return fmt.Errorf("%w: the timeout is %v, not up to %v", ErrSpec, s.Timeout, maxTimeout)
	case meets && (s.Token == "" || !s.Address.IsValid() || s.Address.Port() == 0):
		return fmt.Errorf("%w: a %s needs a token and an address", ErrSpec, s.Role)
	}
	return nil
}

// portTimeout is how long a server waits for a port that is in use, perhaps by another preflight on the same node.
const portTimeout = 3 * time.Second

// listenWhenFree listens on an address, and retries for portTimeout while its port is in use.
func listenWhenFree(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	var config net.ListenConfig
	for began := time.Now(); ; {
		l, err := config.Listen(ctx, "tcp", at.String())
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > portTimeout {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryInterval):
		}
	}
}

// listen accepts connections until one has the token, and answers that one.
func (r *Report) listen(ctx context.Context, s Spec) error {
	l, err := listenWhenFree(ctx, s.Address)
	if err != nil {
		r.NoPort = true
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	auth := authenticator{token: s.Token, accepted: make(chan net.Conn)}
	defer auth.pending.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); auth.accept(ctx, l) }()
	defer func() { cancel(); <-ended }()
	for {
		select {
		case c := <-auth.accepted:
			if r.answer(c, s.Sockets) {
				return nil
			}
		case <-ended:
			return fmt.Errorf("no peer connected to %v within %v", s.Address, s.Timeout)
		}
	}
}

// An authenticator accepts connections that begin with the token. Other connections may send anything or nothing.
type authenticator struct {
	pending  agent.Admission
	token    string
	accepted chan net.Conn
}

// accept checks connections, several at a time, until the listener is closed, and sends those with the token to
// accepted.
func (a *authenticator) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(agent.AdmissionTime))
		got := make([]byte, len(a.token))
		a.pending.Add(
			func() { _, err = io.ReadFull(c, got) },
			func() { c.Close() },
			func() {
				if err != nil || subtle.ConstantTimeCompare(got, []byte(a.token)) != 1 {
					c.Close()
					return
				}
				select {
				case a.accepted <- c:
				case <-ctx.Done():
					c.Close()
				}
			})
	}
}

// answer sends the server's answer to a client, and reports whether the client confirmed it. A proxy may deliver an
// attempt that the client has given up. While the client waits for the answer, all sockets between the two are
// connected.
func (r *Report) answer(c net.Conn, sockets bool) bool {
	defer c.Close()
	r.addEnds(c, sockets)
	if _, err := io.WriteString(c, answerText); err != nil {
		return false
	}
	r.addRoute(c)
	if _, err := io.ReadFull(c, make([]byte, len(confirmText))); err != nil {
		return false
	}
	// Let the client close first, so that no port of the server is left in TIME_WAIT.
	_, _ = c.Read(make([]byte, 1))
	return true
}

// dial connects to the server and retries until it answers.
func (r *Report) dial(ctx context.Context, s Spec) error {
	for last := errors.New("no attempt"); ; {
		r.Attempts++
		err := r.tryOnce(ctx, s)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %v within %v: %w", s.Address, s.Timeout, last)
		case <-time.After(retryInterval):
		}
	}
}

// tryOnce connects, sends the token and expects the agent's answer.
func (r *Report) tryOnce(ctx context.Context, s Spec) error {
	d := net.Dialer{Timeout: attemptTimeout}
	c, err := d.DialContext(ctx, "tcp", s.Address.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(attemptTimeout))
	if _, err := io.WriteString(c, s.Token); err != nil {
		return err
	}
	got := make([]byte, len(answerText))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != answerText {
		return errors.New("something else than the agent answered")
	}
	r.addEnds(c, s.Sockets)
	if _, err := io.WriteString(c, confirmText); err != nil {
		return err
	}
	r.addRoute(c)
	return nil
}

// addEnds adds the two ends of a connection, and if wanted the sockets of the network namespace.
func (r *Report) addEnds(c net.Conn, sockets bool) {
	r.Local, r.Remote = endOf(c.LocalAddr()), endOf(c.RemoteAddr())
	if sockets {
		r.Sockets, _ = machine.Sockets() // nil on an error
	}
}

// endOf returns an end of a TCP connection, without the mapping of IPv4 into IPv6.
func endOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	end := tcp.AddrPort()
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port())
}

// addRoute adds what the kernel reports of a connection's route and of its local device. It needs the ends.
func (r *Report) addRoute(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		r.MTU, r.Congestion = socketOptions(tcp)
	}
	r.Device = machine.InspectDevice(machine.DeviceOf(r.Interfaces, r.Local.Addr()))
}

// ask records the answers of the URLs that respond with status 200.
func (r *Report) ask(ctx context.Context, urls []string) {
	client := &http.Client{Timeout: askTimeout}
	for _, url := range urls {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			continue
		}
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			continue
		}
		if r.Answers == nil {
			r.Answers = map[string]string{}
		}
		r.Answers[url] = string(text)
	}
}
