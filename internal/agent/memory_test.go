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

// A memory is a host without processes: its agents are goroutines.
type memory struct {
	name    string
	verbs   map[string]Handler
	spoil   func(*host.Cmd) // of each agent's streams; nil: nothing
	started atomic.Int32
	living  atomic.Int32

	mu   sync.Mutex
	stop context.CancelCauseFunc
}

var errCrash = errors.New("it crashed")

func newMemory() *memory { return &memory{name: "here", verbs: toys()} }

// crash ends the agent that was started last, without a word.
func (m *memory) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(errCrash)
}

func (m *memory) Name() string   { return m.name }
func (*memory) Addr() netip.Addr { return netip.Addr{} }
func (*memory) CPUs() []int      { return nil }

func (m *memory) Run(ctx context.Context, c host.Cmd) error {
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
	out := &mouth{to: c.Stdout}
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), c.Stdin, out, Program{Version: "toy", Verbs: m.verbs}) }()
	select {
	case err := <-served:
		return err
	case <-life.Done():
		out.shut()
		return context.Cause(life)
	}
}

// A mouth can be shut, as that of a process that is killed.
type mouth struct {
	mu sync.Mutex
	to io.Writer
}

func (m *mouth) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.to == nil {
		return len(b), nil
	}
	return m.to.Write(b)
}

func (m *mouth) shut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = nil
}

// An order is the body of toys.
type order struct {
	Text string `json:"text"`
}

// toys are verbs without a network.
func toys() map[string]Handler {
	return map[string]Handler{
		"echo": Handle(func(_ context.Context, c Call, o order) (order, error) { return order{o.Text + c.Token}, nil }),
		"fail": Handle(func(_ context.Context, _ Call, o order) (order, error) { return order{}, errors.New(o.Text) }),
		"wait": Handle(func(ctx context.Context, c Call, o order) (order, error) {
			c.Say(Ready, o.Text)
			<-ctx.Done()
			return order{}, context.Cause(ctx)
		}),
		"deaf": Handle(func(_ context.Context, c Call, o order) (order, error) {
			c.Say(Ready, o.Text)
			time.Sleep(time.Minute)
			return order{}, nil
		}),
		"talk": Handle(func(ctx context.Context, c Call, o order) (order, error) {
			for ctx.Err() == nil {
				c.Say(Ready, o.Text)
			}
			return order{}, nil
		}),
	}
}
