package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A Crew holds the agents of several hosts: at most one on each host, started when it is first needed and kept until
// Close. It is safe for concurrent use.
type Crew struct {
	mu     sync.Mutex
	slots  map[string]*slot // by host name, which is unique within the crew
	closed bool
}

// A slot holds the agent of one host.
type slot struct {
	mu    sync.Mutex // held while the agent starts
	agent *process   // nil before the first request
}

// NewCrew returns a crew without agents.
func NewCrew() *Crew { return &Crew{slots: map[string]*slot{}} }

// On returns h with requests carried out by the crew's agent. Do recognises only the returned host itself, so a wrapper
// must wrap h and not the returned host.
func (c *Crew) On(h host.Host) host.Host { return crewed{h, c} }

// A crewed host keeps its agent after a request.
type crewed struct {
	host.Host
	crew *Crew
}

// do has the agent on h carry out a request. An agent that has died is replaced; only the request in which it died
// fails.
func (c *Crew) do(ctx context.Context, h host.Host, r Request, hear func(Event)) (json.RawMessage, error) {
	a, err := c.agent(ctx, h)
	if err != nil {
		return nil, err
	}
	return a.do(ctx, r, hear)
}

func (c *Crew) agent(ctx context.Context, h host.Host) (*process, error) {
	p, err := c.slot(h.Name())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agent != nil && !p.agent.hasEnded() {
		return p.agent, nil
	}
	if p.agent, err = start(ctx, h); err != nil {
		p.agent = nil
	}
	return p.agent, err
}

func (c *Crew) slot(name string) (*slot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the agents of the site of %s have ended", name)
	}
	if c.slots[name] == nil {
		c.slots[name] = &slot{}
	}
	return c.slots[name], nil
}

// Close stops all agents and returns when they have ended. Requests in progress fail.
func (c *Crew) Close() {
	c.mu.Lock()
	c.closed = true
	posts := c.slots
	c.slots = nil
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range posts {
		all.Go(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.agent != nil {
				p.agent.close()
			}
		})
	}
	all.Wait()
}

// Do has an agent on h carry out r and returns its result: the agent of a [Crew] if h is from [Crew.On], else an agent
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
	if of, ok := h.(crewed); ok {
		return of.crew.do(ctx, of.Host, r, hear)
	}
	alone := NewCrew()
	defer alone.Close()
	return alone.do(ctx, h, r, hear)
}

// A Transcript records the events of one request as evidence. It is not safe for concurrent use.
type Transcript struct{ lines bytes.Buffer }

// Hear records an event.
func (t *Transcript) Hear(e Event) {
	_ = json.NewEncoder(&t.lines).Encode(e) // its body was read from JSON
}

// Bytes returns the events as lines of JSON.
func (t *Transcript) Bytes() []byte { return t.lines.Bytes() }
