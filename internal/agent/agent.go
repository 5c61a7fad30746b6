// Package agent is the program that runs on the hosts of a run: it reads one specification from its
// standard input, lets the engine carry out one side of the workload, and writes what happens as
// lines of JSON. It stands between the native tool, which starts it through a host, and the engine.
//
// An agent keeps nothing and outlives nothing: it ends with its run, with a bound that its
// specification implies, and with its parent.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/kubeapi"
	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/vault"
	"github.com/knotmeter/knotmeter/internal/webapp"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// SpecVersion is the version of the specification that this agent understands, and of the report that it gives back. The
// agents of a run are always this program's own, so a difference means that a stale one was started.
const SpecVersion = 2

// maxSpec bounds what is read from standard input, in bytes.
const maxSpec = 256 << 10

// A Spec is what one agent has to do. Its JSON form is what standard input carries.
type Spec struct {
	Version  int            `json:"version"`
	Role     netload.Role   `json:"role"`
	Token    netload.Token  `json:"token"`
	Address  netip.AddrPort `json:"address"` // to listen at or to dial
	CPUs     []int          `json:"cpus,omitempty"`
	Workload workload.Spec  `json:"workload"`
	Idle     time.Duration  `json:"idle,omitempty"` // ns, to learn the machine's idle level before the run
	// Ask is what an agent has to ask that has no other one for its server; role, token and address are not used then.
	Ask *Ask `json:"ask,omitempty"`
}

// An Ask is what is asked over HTTP, and of whom.
type Ask struct {
	Endpoint host.Endpoint                `json:"endpoint,omitzero"`
	App      *webapp.Description          `json:"app,omitempty"` // of kind http
	CA       []byte                       `json:"ca,omitempty"`  // what App names
	Secrets  map[string]map[string]string `json:"secrets,omitempty"`
	Seed     uint64                       `json:"seed"`
}

// ErrSpec is what every error about a specification's text is.
var ErrSpec = errors.New("invalid specification for the agent")

// ParseSpec reads a specification; what it does not know is an error. No error quotes the text, since
// it has the token in it.
func ParseSpec(r io.Reader) (Spec, error) {
	var s Spec
	limited := &io.LimitedReader{R: r, N: maxSpec + 1}
	in := json.NewDecoder(limited)
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		if limited.N <= 0 {
			return Spec{}, fmt.Errorf("%w: longer than %d bytes", ErrSpec, maxSpec)
		}
		return Spec{}, fmt.Errorf("%w: %w", ErrSpec, cause(err))
	}
	if s.Version != SpecVersion {
		return Spec{}, fmt.Errorf("%w: it has version %d, this agent understands %d", ErrSpec, s.Version, SpecVersion)
	}
	if err := s.validate(); err != nil {
		return Spec{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return s, nil
}

func (s Spec) validate() error {
	if s.Ask == nil {
		return s.config().Validate()
	}
	if !s.Workload.Kind.Web() {
		return fmt.Errorf("nobody can be asked for %q", s.Workload.Kind)
	}
	_, err := s.Workload.Resolved()
	return err
}

// cause is err without any part of the text that was read.
func cause(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("field %s has the wrong type", kind.Field)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	}
	return errors.New("a field is unknown or has a value that can't be")
}

func (s Spec) config() netload.Config {
	return netload.Config{Role: s.Role, Token: s.Token, Addr: s.Address, CPUs: s.CPUs, Workload: s.Workload, Idle: s.Idle}
}

// Without is the specification without its secrets, to be kept.
func (s Spec) Without() any {
	type open Spec // without methods, with the same fields
	if s.Ask != nil {
		ask := *s.Ask
		ask.Endpoint, ask.Secrets = ask.Endpoint.Open(), nil
		s.Ask = &ask
		return open(s) // its token is all zeros
	}
	return struct {
		open
		Token string `json:"token"`
	}{open(s), "(left out)"}
}

// An Event is one line of an agent's output.
type Event struct {
	Event   string           `json:"event"` // ready, result, error
	Address string           `json:"address,omitempty"`
	Report  *netload.Report  `json:"report,omitempty"`
	Asked   *httpload.Result `json:"asked,omitempty"` // in place of the report, of an agent that asked
	Error   string           `json:"error,omitempty"`
}

// The events. A server is ready once it listens; a client is not announced. Every agent ends with
// one result or one error.
const (
	Ready  = "ready"
	Result = "result"
	Failed = "error"
)

// parentInterval is how often an agent looks whether its parent still lives.
const parentInterval = 250 * time.Millisecond

// Main is the agent: one specification in, events out. Its error has been written as an event already.
// stderr is for what is not foreseen.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go followParent(ctx, cancel)
	out := &events{encoder: json.NewEncoder(stdout)}
	done, err := run(ctx, stdin, out)
	if err != nil {
		if werr := out.write(Event{Event: Failed, Error: err.Error()}); werr != nil {
			fmt.Fprintln(stderr, "knotmeter-agent:", err)
		}
		return err
	}
	return out.write(done)
}

func run(ctx context.Context, stdin io.Reader, out *events) (Event, error) {
	spec, err := ParseSpec(stdin)
	if err != nil {
		return Event{}, err
	}
	if spec.Ask != nil {
		r, err := spec.ask(ctx)
		return Event{Event: Result, Asked: &r}, err
	}
	r, err := netload.Run(ctx, spec.config(), func(a netip.AddrPort) {
		// If nobody reads any more, the final event will say so.
		_ = out.write(Event{Event: Ready, Address: a.String()})
	})
	return Event{Event: Result, Report: &r}, err
}

// ask asks what the workload is about.
func (s Spec) ask(ctx context.Context) (httpload.Result, error) {
	a := s.Ask
	switch {
	case s.Workload.Kind == workload.HTTP && a.App != nil:
		return webapp.Run(ctx, webapp.Config{Description: *a.App, CA: a.CA, Secrets: a.Secrets, Seed: a.Seed, Workload: s.Workload})
	case s.Workload.Kind == workload.Vault:
		return vault.Run(ctx, vault.Config{Endpoint: a.Endpoint, Workload: s.Workload, Seed: a.Seed})
	case s.Workload.Kind == workload.API:
		return kubeapi.Run(ctx, kubeapi.Config{Endpoint: a.Endpoint, Workload: s.Workload})
	}
	return httpload.Result{}, fmt.Errorf("this agent can't ask for %s", s.Workload)
}

// events writes whole lines.
type events struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (e *events) write(ev Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.encoder.Encode(ev); err != nil {
		return fmt.Errorf("write the %s event: %w", ev.Event, err)
	}
	return nil
}

// followParent cancels when the parent is gone, which shows in another process having taken its place.
// The kernel's own signal for that (PR_SET_PDEATHSIG) is sent when the thread that started the agent
// ends, and the threads of a Go program come and go; so the agent looks.
func followParent(ctx context.Context, cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				cancel(errors.New("the agent's parent is gone"))
				return
			}
		}
	}
}
