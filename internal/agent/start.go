package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// How long an agent may take before it is killed.
const (
	startTimeout  = 30 * time.Second // from its start until its hello event
	cancelTimeout = 5 * time.Second  // from a cancellation until the request ends, which may have to clean up
	closeTimeout  = 5 * time.Second  // from the end of its input until it ends
)

// A process is a running agent on a host.
type process struct {
	name       string
	lines      chan []byte // of its input
	firstEvent chan Event
	closeInput func() // ends its input
	kill       context.CancelCauseFunc
	ended      chan struct{} // closed when the agent has ended
	endErr     error         // why it ended; valid after ended is closed

	mu      sync.Mutex
	last    int   // ID of the last request
	request *call // in progress; nil: none

	partial []byte // incomplete last line of its output; used by Write only
}

// A call is a request in progress.
type call struct {
	id       int
	hear     func(Event)
	received int // bytes of events
	ended    chan struct{}
	last     Event // valid after the request or the agent has ended
}

// start starts an agent on h and waits for its hello event. The agent runs until close, even after ctx has ended.
func start(ctx context.Context, h host.Host) (*process, error) {
	life, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	inputCtx, closeInput := context.WithCancel(life)
	a := &process{
		name: h.Name(), lines: make(chan []byte), firstEvent: make(chan Event, 1),
		closeInput: closeInput, kill: kill, ended: make(chan struct{}),
	}
	input, feed := io.Pipe()
	go a.feed(inputCtx, feed)
	go func() {
		defer close(a.ended)
		a.endErr = h.Run(life, host.Cmd{Args: []string{host.Agent}, Stdin: input, Stdout: a, Stderr: io.Discard})
		if life.Err() != nil {
			a.endErr = context.Cause(life)
		}
		_ = input.CloseWithError(io.ErrClosedPipe)
	}()
	if err := a.awaitHello(ctx); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// feed writes lines to the agent's input until ctx ends or the input is closed.
func (a *process) feed(ctx context.Context, to *io.PipeWriter) {
	defer to.Close()
	for {
		select {
		case text := <-a.lines:
			if _, err := to.Write(text); err != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-a.ended:
			return
		}
	}
}

// awaitHello waits for the agent's hello event and checks the version of its protocol.
func (a *process) awaitHello(ctx context.Context) error {
	var first Event
	select {
	case first = <-a.firstEvent:
	case <-a.ended:
		return a.endError()
	case <-ctx.Done():
		return a.killAndWait(context.Cause(ctx))
	case <-time.After(startTimeout):
		return a.killAndWait(fmt.Errorf("agent on %s: it said nothing within %v", a.name, startTimeout))
	}
	var g greeting
	if err := json.Unmarshal(first.Body, &g); err != nil || g.Version != version {
		return a.killAndWait(fmt.Errorf("the agent on %s is another version than this program (%.80q): "+
			"it speaks version %d of the protocol, not %d", a.name, g.Program, g.Version, version))
	}
	return nil
}

// killAndWait kills the agent with the error why, waits until it has ended, and returns why.
func (a *process) killAndWait(why error) error {
	a.kill(why)
	<-a.ended
	return why
}

// endError returns the reason for which an agent ended while it was still needed.
func (a *process) endError() error {
	if a.endErr == nil {
		return fmt.Errorf("the agent on %s ended too early", a.name)
	}
	return a.endErr
}

// do has the agent carry out one request and returns the body of its result. hear receives the events of the request
// one after another, the last one before do returns; it must not block. When ctx ends, the request is cancelled, and an
// agent that does not cancel it in time is killed. The agent survives a request that failed.
func (a *process) do(ctx context.Context, r Request, hear func(Event)) (json.RawMessage, error) {
	c, text, err := a.begin(ctx, r, hear)
	if err != nil {
		return nil, err
	}
	defer a.release()
	a.write(text)
	select {
	case <-c.ended:
		return a.response(c.last)
	case <-a.ended:
		// The agent may have answered before it ended.
		if c.last.Event != "" {
			return a.response(c.last)
		}
		return nil, a.endError()
	case <-ctx.Done():
		a.cancel(c)
		return nil, context.Cause(ctx)
	}
}

// begin reserves the agent for a request and returns the line to send.
func (a *process) begin(ctx context.Context, r Request, hear func(Event)) (*call, []byte, error) {
	body, err := json.Marshal(r.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("request %s for the agent on %s: %w", r.Verb, a.name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.request != nil {
		return nil, nil, fmt.Errorf("the agent on %s is busy with another request", a.name)
	}
	a.last++
	l := line{ID: a.last, Verb: r.Verb, Token: r.Token, Body: body}
	if end, limited := ctx.Deadline(); limited {
		l.Limit = max(time.Until(end), 1)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, nil, fmt.Errorf("request %s for the agent on %s: %w", r.Verb, a.name, err)
	}
	if len(text) >= maxRequest {
		return nil, nil, fmt.Errorf("request %s for the agent on %s: %w", r.Verb, a.name, errTooLong)
	}
	a.request = &call{id: a.last, hear: hear, ended: make(chan struct{})}
	return a.request, append(text, '\n'), nil
}

func (a *process) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.request = nil
}

// write sends a line to the agent, unless it has ended.
func (a *process) write(text []byte) {
	select {
	case a.lines <- text:
	case <-a.ended:
	}
}

// response returns the result or the error of a request's last event.
func (a *process) response(last Event) (json.RawMessage, error) {
	if last.Event == Failed {
		return nil, fmt.Errorf("agent on %s: %s", a.name, last.Error)
	}
	return last.Body, nil
}

// cancel cancels a request, and kills the agent if the request does not end in time.
func (a *process) cancel(c *call) {
	text, _ := json.Marshal(line{ID: c.id, Verb: cancelVerb}) // such a line always marshals
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	select {
	case a.lines <- append(text, '\n'):
	case <-a.ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-c.ended:
	case <-a.ended:
	case <-ctx.Done():
		_ = a.killAndWait(fmt.Errorf("agent on %s: it did not cancel a request within %v", a.name, cancelTimeout))
	}
}

// hasEnded reports whether the agent has ended.
func (a *process) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// close closes the agent's input and returns when it has ended. A request in progress fails.
func (a *process) close() {
	a.closeInput()
	select {
	case <-a.ended:
	case <-time.After(closeTimeout):
		_ = a.killAndWait(fmt.Errorf("agent on %s: it did not end within %v", a.name, closeTimeout))
	}
}

// Write receives the agent's output and handles each complete line. An agent that violates the protocol is killed.
func (a *process) Write(b []byte) (int, error) {
	a.partial = append(a.partial, b...)
	for {
		end := bytes.IndexByte(a.partial, '\n')
		if end < 0 && len(a.partial) <= maxResponse {
			return len(b), nil
		}
		err := errTooMuch
		if end >= 0 {
			err = a.handle(a.partial[:end])
		}
		if err != nil {
			a.kill(fmt.Errorf("agent on %s: %w", a.name, err))
			a.partial = nil
			return len(b), nil
		}
		a.partial = a.partial[end+1:]
	}
}

var errTooMuch = fmt.Errorf("it says more than %d bytes", maxResponse)

// handle passes an event to the request or the start that waits for it.
func (a *process) handle(text []byte) error {
	e, err := parseEvent(text)
	if err != nil {
		return err
	}
	if e.Event == hello {
		select {
		case a.firstEvent <- e:
			return nil
		default:
			return errors.New("it says hello again")
		}
	}
	a.mu.Lock()
	c := a.request
	a.mu.Unlock()
	if c == nil || c.id != e.ID {
		return fmt.Errorf("its event %q is about no request (%s)", e.Event, e.Error)
	}
	if c.received += len(text); c.received > maxResponse {
		return errTooMuch
	}
	if c.hear != nil {
		c.hear(e)
	}
	if e.Event == Result || e.Event == Failed {
		c.last = e
		if !e.Bye { // after a bye, the request ends with the agent
			close(c.ended)
		}
	}
	return nil
}

// parseEvent parses one line of an agent's output.
func parseEvent(text []byte) (e Event, err error) {
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("its line %.80q is no event: %w", text, err)
	}
	return e, nil
}
