// Package agents starts agents on hosts and collects what they say. It stands between the tools that
// measure with this program's own generators and the hosts; it knows an agent as a command line, a
// specification and lines of JSON.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
)

// Run runs one agent to its end. What the agent itself says went wrong comes before how it ended.
func Run(ctx context.Context, h host.Host, spec agent.Spec, out *Output) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write the agent's specification: %w", err)
	}
	err = h.Run(ctx, host.Cmd{Args: []string{host.Agent}, Stdin: bytes.NewReader(text), Stdout: out, Stderr: io.Discard})
	switch said := out.failure(); {
	case said != "":
		return fmt.Errorf("agent on %s: %s", h.Name(), said)
	case err != nil:
		return err
	case out.Result() == nil:
		return fmt.Errorf("agent on %s ended without a result", h.Name())
	}
	return nil
}

// maxOutput bounds what is kept of an agent's output, in bytes.
const maxOutput = 16 << 20

// An Output takes an agent's lines as they come.
type Output struct {
	Ready chan string // the server's address, once

	mu     sync.Mutex
	all    bytes.Buffer
	parsed int // bytes of all that were read as events
	result *agent.Event
	failed string
}

// NewOutput returns an empty one.
func NewOutput() *Output { return &Output{Ready: make(chan string, 1)} }

// Write takes in text; an event counts once its line is whole.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all.Len()+len(b) > maxOutput {
		return 0, errors.New("the agent says too much")
	}
	o.all.Write(b)
	for {
		rest := o.all.Bytes()[o.parsed:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		o.parsed += end + 1
		if err := o.take(rest[:end]); err != nil {
			return 0, err
		}
	}
}

func (o *Output) take(line []byte) error {
	ev, err := parseEvent(line)
	if err != nil {
		return err
	}
	switch ev.Event {
	case agent.Ready:
		select {
		case o.Ready <- ev.Address:
		default:
		}
	case agent.Result:
		o.result = &ev
	case agent.Failed:
		o.failed = ev.Error
	}
	return nil
}

// parseEvent reads one line of an agent.
func parseEvent(line []byte) (agent.Event, error) {
	var ev agent.Event
	if err := json.Unmarshal(line, &ev); err != nil {
		return ev, fmt.Errorf("an agent's line %.80q is no event: %w", line, err)
	}
	return ev, nil
}

// Result is the event with the agent's result, nil as long as there is none.
func (o *Output) Result() *agent.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.result
}

func (o *Output) failure() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// Bytes is all that the agent said.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.all.Bytes())
}
