package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Pool holds the agents of several hosts: at most one on each host, started when it is first needed and kept until
// Close. It is safe for concurrent use.
type Pool struct {
	mu     sync.Mutex
	slots  map[string]*slot // by host name, which is unique within the pool
	closed bool
}

// A slot holds the agent of one host.
type slot struct {
	mu    sync.Mutex // held while the agent starts
	agent *process   // nil before the first request
}

// NewPool returns a pool without agents.
func NewPool() *Pool { return &Pool{slots: map[string]*slot{}} }

// On returns a host like h, on which [Do] uses the pool's agent. Do recognises only the returned host itself, so a
// wrapper must wrap h and not the returned host.
func (p *Pool) On(h host.Host) host.Host { return pooled{h, p} }

// A pooled host keeps its agent after a request.
type pooled struct {
	host.Host
	pool *Pool
}

// do has the agent on h carry out a request. An agent that has died is replaced; only the request in which it died
// fails.
func (p *Pool) do(ctx context.Context, h host.Host, r Request, hear func(Event)) (json.RawMessage, error) {
	a, err := p.agent(ctx, h)
	if err != nil {
		return nil, err
	}
	return a.do(ctx, r, hear)
}

func (p *Pool) agent(ctx context.Context, h host.Host) (*process, error) {
	s, err := p.slot(h.Name())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != nil && !s.agent.hasEnded() {
		return s.agent, nil
	}
	if s.agent, err = start(ctx, h); err != nil {
		s.agent = nil
	}
	return s.agent, err
}

func (p *Pool) slot(name string) (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("the agents of the site of %s have ended", name)
	}
	if p.slots[name] == nil {
		p.slots[name] = &slot{}
	}
	return p.slots[name], nil
}

// Close stops all agents and returns when they have ended. Requests in progress fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	slots := p.slots
	p.slots = nil
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range slots {
		all.Go(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.agent != nil {
				s.agent.close()
			}
		})
	}
	all.Wait()
}

// Do has an agent on h carry out r and returns its result: the agent of a [Pool] if h is from [Pool.On], else an agent
// that is started for this request and stopped after it. hear receives the events of the request one after another, the
// last one before Do returns; it must not block, and may be nil. When ctx ends, the request is cancelled.
func Do[R any](ctx context.Context, h host.Host, r Request, hear func(Event)) (result R, err error) {
	body, err := do(ctx, h, r, hear)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return result, fmt.Errorf("the result of the agent on %s cannot be read: %w", h.Name(), err)
	}
	return result, nil
}

func do(ctx context.Context, h host.Host, r Request, hear func(Event)) (json.RawMessage, error) {
	if of, ok := h.(pooled); ok {
		return of.pool.do(ctx, of.Host, r, hear)
	}
	alone := NewPool()
	defer alone.Close()
	return alone.do(ctx, h, r, hear)
}

// DoOnClient does as [Do] on the client of a run, and returns the evidence of the request as files, also with an error.
func DoOnClient[R any](ctx context.Context, client host.Host, r Request) (got R, raw []result.File, err error) {
	var said Transcript
	got, err = Do[R](ctx, client, r, said.Add)
	return got, []result.File{
		{Name: "commands.txt", Data: fmt.Appendf(nil, "%s: %s < client.request.json\n", client.Name(), host.Agent)},
		{Name: "client.request.json", Data: r.Record()},
		{Name: "client.events.ndjson", Data: said.Bytes()},
	}, err
}

// A Transcript records the events of one request as evidence. It is not safe for concurrent use.
type Transcript struct{ lines bytes.Buffer }

// Add records an event.
func (t *Transcript) Add(e Event) {
	_ = json.NewEncoder(&t.lines).Encode(e) // its body was read from JSON
}

// Bytes returns the events as lines of JSON.
func (t *Transcript) Bytes() []byte { return t.lines.Bytes() }
