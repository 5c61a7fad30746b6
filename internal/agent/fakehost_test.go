package agent

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A fakeHost runs agents as goroutines.
type fakeHost struct {
	name    string
	verbs   map[string]Handler
	spoil   func(*host.Cmd) // changes each agent's streams; nil: no change
	started atomic.Int32
	living  atomic.Int32

	mu   sync.Mutex
	stop context.CancelCauseFunc
}

var errCrash = errors.New("it crashed")

func newFakeHost() *fakeHost { return &fakeHost{name: "here", verbs: testVerbs()} }

// crash ends the agent that was started last, without a last event.
func (m *fakeHost) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(errCrash)
}

func (m *fakeHost) Name() string   { return m.name }
func (*fakeHost) Addr() netip.Addr { return netip.Addr{} }
func (*fakeHost) CPUs() []int      { return nil }

func (m *fakeHost) Run(ctx context.Context, c host.Cmd) error {
	if c.Args[0] != host.Agent {
		return host.ErrNoCommand
	}
	m.started.Add(1)
	m.living.Add(1)
	defer m.living.Add(-1)
	if m.spoil != nil {
		m.spoil(&c)
	}
	life, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m.mu.Lock()
	m.stop = stop
	m.mu.Unlock()
	out := &output{to: c.Stdout}
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), c.Stdin, out, Program{Version: "toy", Verbs: m.verbs}) }()
	select {
	case err := <-served:
		return err
	case <-life.Done():
		out.discard()
		return context.Cause(life)
	}
}

// An output can be discarded from some moment on, like that of a process that is killed.
type output struct {
	mu sync.Mutex
	to io.Writer
}

func (m *output) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.to == nil {
		return len(b), nil
	}
	return m.to.Write(b)
}

func (m *output) discard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = nil
}

// A textBody is the request and the result of the test verbs.
type textBody struct {
	Text string `json:"text"`
}

// testVerbs returns verbs that need no network.
func testVerbs() map[string]Handler {
	return map[string]Handler{
		"echo": Handle(func(_ context.Context, c Call, o textBody) (textBody, error) {
			return textBody{o.Text + c.Token}, nil
		}),
		"fail": Handle(func(_ context.Context, _ Call, o textBody) (textBody, error) {
			return textBody{}, errors.New(o.Text)
		}),
		"wait": Handle(func(ctx context.Context, c Call, o textBody) (textBody, error) {
			c.Say(Ready, o.Text)
			<-ctx.Done()
			return textBody{}, context.Cause(ctx)
		}),
		"deaf": Handle(func(_ context.Context, c Call, o textBody) (textBody, error) {
			c.Say(Ready, o.Text)
			time.Sleep(time.Minute)
			return textBody{}, nil
		}),
		"talk": Handle(func(ctx context.Context, c Call, o textBody) (textBody, error) {
			for ctx.Err() == nil {
				c.Say(Ready, o.Text)
			}
			return textBody{}, nil
		}),
	}
}
