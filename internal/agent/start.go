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

// How long an agent is waited for before it is killed.
const (
	startTime      = 30 * time.Second // until it says hello
	cancelPatience = 5 * time.Second  // until a request that was cancelled ends, which may have to clean up
	closePatience  = 5 * time.Second  // until it ends after its input has
)

// A process is a running agent on a host.
type process struct {
	name  string
	lines chan []byte // for its input
	greet chan Event
	over  func() // ends its input
	kill  context.CancelCauseFunc
	ended chan struct{} // closed when it has
	how   error         // it ended; read after ended is closed

	mu      sync.Mutex
	last    int   // the last request's ID
	request *call // in progress, or nil

	partial []byte // of its output, a line that is not whole; touched by Write alone
}

// A call is a request in progress.
type call struct {
	id    int
	hear  func(Event)
	said  int // bytes
	ended chan struct{}
	last  Event // read after the request or the agent has ended
}

// start starts an agent on h and waits until it is there. It lives until close, also when ctx has ended.
func start(ctx context.Context, h host.Host) (*process, error) {
	life, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	fed, over := context.WithCancel(life)
	a := &process{
		name: h.Name(), lines: make(chan []byte), greet: make(chan Event, 1),
		over: over, kill: kill, ended: make(chan struct{}),
	}
	input, feed := io.Pipe()
	go a.feed(fed, feed)
	go func() {
		defer close(a.ended)
		a.how = h.Run(life, host.Cmd{Args: []string{host.Agent}, Stdin: input, Stdout: a, Stderr: io.Discard})
		if life.Err() != nil {
			a.how = context.Cause(life)
		}
		_ = input.CloseWithError(io.ErrClosedPipe)
	}()
	if err := a.greeted(ctx); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// feed writes lines until ctx ends, or nobody reads them.
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

// greeted waits until the agent says what it is. The version is checked here and nowhere else.
func (a *process) greeted(ctx context.Context) error {
	var first Event
	select {
	case first = <-a.greet:
	case <-a.ended:
		return a.lost()
	case <-ctx.Done():
		return a.killed(context.Cause(ctx))
	case <-time.After(startTime):
		return a.killed(fmt.Errorf("agent on %s: it said nothing within %v", a.name, startTime))
	}
	var g greeting
	if err := json.Unmarshal(first.Body, &g); err != nil || g.Version != version {
		return a.killed(fmt.Errorf("the agent on %s is another version than this program (%.80q): "+
			"it speaks version %d of the protocol, not %d", a.name, g.Program, g.Version, version))
	}
	return nil
}

// killed kills the agent, waits for its end and returns why.
func (a *process) killed(why error) error {
	a.kill(why)
	<-a.ended
	return why
}

// lost is why an agent ended that was still needed.
func (a *process) lost() error {
	if a.how == nil {
		return fmt.Errorf("the agent on %s ended too early", a.name)
	}
	return a.how
}

// do has the agent carry out one request and returns the body of its result. hear gets every event of the request,
// one after the other, the last one before Do returns; it must not block. When ctx ends, the request is cancelled,
// and an agent that does not obey is killed. The agent lives on after a request that failed.
func (a *process) do(ctx context.Context, r Request, hear func(Event)) (json.RawMessage, error) {
	c, text, err := a.begin(ctx, r, hear)
	if err != nil {
		return nil, err
	}
	defer a.done()
	a.write(text)
	select {
	case <-c.ended:
		return a.answer(c.last)
	case <-a.ended:
		// Its last words may have been the answer.
		if c.last.Event != "" {
			return a.answer(c.last)
		}
		return nil, a.lost()
	case <-ctx.Done():
		a.cancel(c)
		return nil, context.Cause(ctx)
	}
}

// begin takes the agent for a request.
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

func (a *process) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.request = nil
}

// write hands a line to the agent, if it lives.
func (a *process) write(text []byte) {
	select {
	case a.lines <- text:
	case <-a.ended:
	}
}

// answer is what the last event says.
func (a *process) answer(last Event) (json.RawMessage, error) {
	if last.Event == Failed {
		return nil, fmt.Errorf("agent on %s: %s", a.name, last.Error)
	}
	return last.Body, nil
}

// cancel ends a request, and the agent if the request does not end.
func (a *process) cancel(c *call) {
	text, _ := json.Marshal(line{ID: c.id, Verb: cancelVerb}) // numbers and a word
	ctx, stop := context.WithTimeout(context.Background(), cancelPatience)
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
		_ = a.killed(fmt.Errorf("agent on %s: it did not cancel a request within %v", a.name, cancelPatience))
	}
}

// dead says whether the agent has ended, and why.
func (a *process) dead() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// close ends the agent and returns when it is gone. A request in progress fails.
func (a *process) close() {
	a.over()
	select {
	case <-a.ended:
	case <-time.After(closePatience):
		_ = a.killed(fmt.Errorf("agent on %s: it did not end within %v", a.name, closePatience))
	}
}

// Write takes in what the agent says; an event counts once its line is whole. An agent that breaks the protocol is
// killed.
func (a *process) Write(b []byte) (int, error) {
	a.partial = append(a.partial, b...)
	for {
		end := bytes.IndexByte(a.partial, '\n')
		if end < 0 && len(a.partial) <= maxAnswer {
			return len(b), nil
		}
		err := errTooMuch
		if end >= 0 {
			err = a.take(a.partial[:end])
		}
		if err != nil {
			a.kill(fmt.Errorf("agent on %s: %w", a.name, err))
			a.partial = nil
			return len(b), nil
		}
		a.partial = a.partial[end+1:]
	}
}

var errTooMuch = fmt.Errorf("it says more than %d bytes", maxAnswer)

// take hands an event to who waits for it.
func (a *process) take(text []byte) error {
	e, err := parseEvent(text)
	if err != nil {
		return err
	}
	if e.Event == hello {
		select {
		case a.greet <- e:
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
	if c.said += len(text); c.said > maxAnswer {
		return errTooMuch
	}
	if c.hear != nil {
		c.hear(e)
	}
	if e.Event == Result || e.Event == Failed {
		c.last = e
		if !e.Bye { // else the request has ended when the agent has
			close(c.ended)
		}
	}
	return nil
}

// parseEvent reads one line of an agent.
func parseEvent(text []byte) (e Event, err error) {
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("its line %.80q is no event: %w", text, err)
	}
	return e, nil
}
