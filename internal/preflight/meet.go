// Package preflight is what happens in two places before a run: each says what it is, and the client finds the
// server by the way that the run will take. A target that cannot look into its places itself, because
// they are pods somewhere, asks the agents in both of them to carry this out.
//
// That traffic passes is the only sign of readiness that counts: addresses, endpoints and rules are
// told to the nodes one after the other.
package preflight

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/knotmeter/knotmeter/internal/admission"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Verb is the agent's, with a [Spec] as its body and a [Report] as its result. The request's token is the meeting's.
const Verb = "preflight"

// A Role is what a place does.
type Role string

// The roles: a witness only says what it is.
const (
	Client  Role = "client"
	Server  Role = "server"
	Witness Role = "witness"
)

// A Spec is what one place has to do.
type Spec struct {
	Role     Role           `json:"role"`
	Token    string         `json:"-"`                // secret of this meeting
	Address  netip.AddrPort `json:"address,omitzero"` // to listen at or to dial
	Patience time.Duration  `json:"patience"`         // ns, for the other one to come
	Ask      []string       `json:"ask,omitempty"`    // URLs on the node whose answers are evidence
	Volume   string         `json:"volume,omitempty"` // a directory or device that is to be looked at
}

// NewToken draws the secret of a meeting.
func NewToken() string { return rand.Text() }

// A Report is what a place says.
type Report struct {
	Program    string            `json:"program"` // version of the agent's program
	Facts      []result.Fact     `json:"facts"`
	Interfaces []Interface       `json:"interfaces"`
	Answers    map[string]string `json:"answers,omitempty"` // by URL
	// Throttled counts the periods in which the place's own group of processes ran out of CPU time, since it began.
	Throttled int64 `json:"throttled,omitempty"`
	// Volume is what was found at the path that was asked for.
	Volume *Volume `json:"volume,omitempty"`
	// Of the connection; a witness has none.
	Peer       netip.Addr `json:"peer,omitzero"` // as the server sees the client
	MTU        int        `json:"mtu,omitempty"` // of the route, in bytes
	Congestion string     `json:"congestion,omitempty"`
	Device     Device     `json:"device,omitzero"`    // that the connection has its own address on
	Attempts   int        `json:"attempts,omitempty"` // of the client, until the server answered
	Error      string     `json:"error,omitempty"`    // why they did not meet
	// NoPort says that this is because the server could not listen.
	NoPort bool `json:"noPort,omitempty"`
}

// An Interface is a network device of a place.
type Interface struct {
	Name      string       `json:"name"`
	MTU       int          `json:"mtu"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// A Volume is a directory or a block device of a place.
type Volume struct {
	Facts  []result.Fact `json:"facts"` // of machine.Volume
	Device bool          `json:"device,omitempty"`
	// Mounted reports that a directory is on another file system than the root directory of the place.
	Mounted bool  `json:"mounted,omitempty"`
	Size    int64 `json:"size,omitempty"` // bytes
	Free    int64 `json:"free,omitempty"` // bytes that this user may use
	// Content is what is on it already; nil where nobody has looked.
	Content []string `json:"content"`
	Error   string   `json:"error,omitempty"` // why it cannot be measured
	// Denied says that this is because the device is not this user's.
	Denied bool `json:"denied,omitempty"`
}

// A Device is what the kernel says of a network device; result.Unknown of what it does not.
type Device struct {
	Name     string `json:"name"`
	Offloads string `json:"offloads"` // those that are on: "tso gso gro", or "none"
	Qdisc    string `json:"qdisc"`    // "fq_codel"; with several queues "mq (fq_codel)"
	Driver   string `json:"driver"`   // "virtio_net"
	Speed    string `json:"speed"`    // "10000 Mbit/s"; few virtual devices have one
}

// unknownDevice is a device of which nothing else is known.
func unknownDevice(name string) Device {
	const unknown = result.Unknown
	return Device{Name: name, Offloads: unknown, Qdisc: unknown, Driver: unknown, Speed: unknown}
}

const (
	maxAnswer  = 1 << 10
	askTime    = 500 * time.Millisecond
	attempt    = 300 * time.Millisecond
	pause      = 20 * time.Millisecond
	maxPause   = time.Minute
	answerText = "knotmeter: here\n"
)

// Run carries out one specification. That they did not meet is in the report; an error means that there is none.
func Run(ctx context.Context, s Spec, program string) (Report, error) {
	if err := s.validate(); err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	r := Report{Program: program, Facts: facts(), Interfaces: interfaces(), Throttled: machine.Throttled()}
	if s.Volume != "" {
		r.Volume = volume(s.Volume)
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

// ErrSpec is what every error about a specification is.
var ErrSpec = errors.New("invalid specification of a meeting")

func (s Spec) validate() error {
	meets := s.Role == Client || s.Role == Server
	switch {
	case !meets && s.Role != Witness:
		return fmt.Errorf("%w: its role is unknown", ErrSpec)
	case s.Patience <= 0 || s.Patience > maxPause:
		return fmt.Errorf("%w: the patience is %v, not up to %v", ErrSpec, s.Patience, maxPause)
	case meets && (s.Token == "" || !s.Address.IsValid() || s.Address.Port() == 0):
		return fmt.Errorf("%w: a %s needs a token and an address", ErrSpec, s.Role)
	}
	return nil
}

// turn is how long a server waits for a port that is in use: by another meeting, perhaps, on the same node.
const turn = 3 * time.Second

// listenInTurn listens as soon as nobody else does.
func listenInTurn(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	var config net.ListenConfig
	for began := time.Now(); ; {
		l, err := config.Listen(ctx, "tcp", at.String())
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > turn {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// listen serves whoever has the token, once.
func (r *Report) listen(ctx context.Context, s Spec) error {
	l, err := listenInTurn(ctx, s.Address)
	if err != nil {
		r.NoPort = true
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	in := entrance{token: s.Token, opened: make(chan net.Conn)}
	defer in.pending.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); in.accept(ctx, l) }()
	defer func() { cancel(); <-ended }()
	for {
		select {
		case c := <-in.opened:
			if r.welcome(c) {
				return nil
			}
		case <-ended:
			return fmt.Errorf("no peer connected to %v within %v", s.Address, s.Patience)
		}
	}
}

// An entrance lets in who has the token. Others may come too, and say what they like or nothing.
type entrance struct {
	pending admission.Queue
	token   string
	opened  chan net.Conn
}

// accept lets connections in until the listener is closed.
func (e *entrance) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(admission.Timeout))
		said := make([]byte, len(e.token))
		e.pending.Add(
			func() { _, err = io.ReadFull(c, said) },
			func() { c.Close() },
			func() {
				if err != nil || subtle.ConstantTimeCompare(said, []byte(e.token)) != 1 {
					c.Close()
					return
				}
				select {
				case e.opened <- c:
				case <-ctx.Done():
					c.Close()
				}
			})
	}
}

func (r *Report) welcome(c net.Conn) bool {
	defer c.Close()
	if _, err := io.WriteString(c, answerText); err != nil {
		return false
	}
	r.look(c)
	if peer, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		r.Peer = peer.Addr().Unmap()
	}
	// The client closes first, so that no port of the server is left waiting.
	_, _ = c.Read(make([]byte, 1))
	return true
}

// dial tries until the server answers.
func (r *Report) dial(ctx context.Context, s Spec) error {
	for last := errors.New("no attempt"); ; {
		r.Attempts++
		err := r.try(ctx, s)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %v within %v: %w", s.Address, s.Patience, last)
		case <-time.After(pause):
		}
	}
}

func (r *Report) try(ctx context.Context, s Spec) error {
	d := net.Dialer{Timeout: attempt}
	c, err := d.DialContext(ctx, "tcp", s.Address.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(attempt))
	if _, err := io.WriteString(c, s.Token); err != nil {
		return err
	}
	said := make([]byte, len(answerText))
	if _, err := io.ReadFull(c, said); err != nil || string(said) != answerText {
		return errors.New("something else than the agent answered")
	}
	r.look(c)
	return nil
}

// look says of a connection what the kernel knows.
func (r *Report) look(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	r.MTU, r.Congestion = socket(tcp)
	if local, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
		r.Device = lookAt(r.deviceOf(local.Addr().Unmap()))
	}
}

// Offloads names the features that are on of the device that has an address: "tso gso gro", or "none".
func Offloads(local netip.Addr) string {
	here := Report{Interfaces: interfaces()}
	return lookAt(here.deviceOf(local.Unmap())).Offloads
}

func (r *Report) deviceOf(a netip.Addr) string {
	for _, i := range r.Interfaces {
		if slices.Contains(i.Addresses, a) {
			return i.Name
		}
	}
	return ""
}

func interfaces() []Interface {
	found, _ := net.Interfaces()
	list := []Interface{}
	for _, i := range found {
		item := Interface{Name: i.Name, MTU: i.MTU}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				item.Addresses = append(item.Addresses, p.Addr())
			}
		}
		list = append(list, item)
	}
	return list
}

// ask gets each URL; one that does not answer is left out.
func (r *Report) ask(ctx context.Context, urls []string) {
	client := &http.Client{Timeout: askTime}
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
