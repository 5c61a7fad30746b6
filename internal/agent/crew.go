package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A Crew is the agents of some hosts: at most one on each of them, each started when it is first needed and living
// until Close. It is safe for concurrent use.
type Crew struct {
	mu     sync.Mutex
	posts  map[string]*post // by the host's name, which no other host of the crew has
	closed bool
}

// A post is the place of one agent.
type post struct {
	mu    sync.Mutex // also while the agent starts
	agent *process
}

// NewCrew is a crew without agents.
func NewCrew() *Crew { return &Crew{posts: map[string]*post{}} }

// On is h, on which requests are carried out by the crew's agent. What wraps the host that On returns hides that:
// wrap h.
func (c *Crew) On(h host.Host) host.Host { return crewed{h, c} }

// A crewed host has an agent that lives on after a request.
type crewed struct {
	host.Host
	crew *Crew
}

// do has the agent on h carry out a request. One that has died is replaced; only the request in which it died fails.
func (c *Crew) do(ctx context.Context, h host.Host, r Request, hear func(Event)) (json.RawMessage, error) {
	a, err := c.agent(ctx, h)
	if err != nil {
		return nil, err
	}
	return a.do(ctx, r, hear)
}

func (c *Crew) agent(ctx context.Context, h host.Host) (*process, error) {
	p, err := c.post(h.Name())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agent != nil && !p.agent.dead() {
		return p.agent, nil
	}
	if p.agent, err = start(ctx, h); err != nil {
		p.agent = nil
	}
	return p.agent, err
}

func (c *Crew) post(name string) (*post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the agents of the site of %s have ended", name)
	}
	if c.posts[name] == nil {
		c.posts[name] = &post{}
	}
	return c.posts[name], nil
}

// Close ends all agents and returns when they are gone. Requests in progress fail.
func (c *Crew) Close() {
	c.mu.Lock()
	c.closed = true
	posts := c.posts
	c.posts = nil
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

// Do has an agent on h carry out r and returns its result: the agent of a [Crew] if h is of one, else an agent that
// is started for this request and ends with it. hear gets every event of the request, one after the other, the last one
// before Do returns; it must not block. When ctx ends, the request is cancelled.
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

// A Transcript keeps the events of one request as evidence. It is not safe for concurrent use, which the events of
// one request do not need.
type Transcript struct{ lines bytes.Buffer }

// Hear takes down an event.
func (t *Transcript) Hear(e Event) {
	_ = json.NewEncoder(&t.lines).Encode(e) // its body was read from JSON
}

// Bytes are the events, as lines of JSON.
func (t *Transcript) Bytes() []byte { return t.lines.Bytes() }
