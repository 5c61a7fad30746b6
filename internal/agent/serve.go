package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Program describes an agent's program.
type Program struct {
	Version string // of the program, for evidence
	Verbs   map[string]Handler
}

// A Handler carries out requests of one verb, and returns the body of the result. It returns soon after ctx ends, and
// leaves nothing running or listening. Calls do not overlap.
type Handler func(ctx context.Context, c Call) (any, error)

// A Call is one request as its handler receives it.
type Call struct {
	Token string
	// Say writes an event before the last one, such as Ready. It ignores errors: if the output is closed, writing the
	// last event fails too.
	Say  func(event string, body any)
	body json.RawMessage
}

// Handle returns a handler that unmarshals the body strictly into a B before it calls do.
func Handle[B, R any](do func(context.Context, Call, B) (R, error)) Handler {
	return func(ctx context.Context, c Call) (any, error) {
		var body B
		if err := decode(c.body, &body); err != nil {
			return nil, err
		}
		return do(ctx, c, body)
	}
}

// ErrFailed is returned by Serve when a request failed. The reason is in the request's last event.
var ErrFailed = errors.New("a request failed")

// Reasons for the cancellation of a request.
var (
	errInput  = errors.New("the agent's input has ended")
	errCancel = errors.New("the request was cancelled")
)

// endTimeout is how long a request may take to return after it was cancelled because the agent ends.
const endTimeout = 10 * time.Second

// Serve runs an agent: it carries out requests until its input or ctx ends. It should be alone in its process, because
// it resets the Go runtime's settings after each request.
func Serve(ctx context.Context, in io.Reader, out io.Writer, p Program) error {
	s := &server{program: p, out: json.NewEncoder(out), initial: currentRuntime()}
	greeting, err := json.Marshal(greeting{Version: version, Program: p.Version})
	if err == nil {
		err = s.write(Event{Event: hello, Body: greeting})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make(chan input)
	go read(ctx, in, lines)
	return s.loop(ctx, lines)
}

// An input is a line, or the error of reading it.
type input struct {
	line line
	err  error
}

// read sends the lines of in until in or ctx ends.
func read(ctx context.Context, in io.Reader, lines chan<- input) {
	defer close(lines)
	for from := bufio.NewReader(in); ; {
		text, err := readLine(from)
		if err != nil && !errors.Is(err, errTooLong) {
			return
		}
		i := input{err: err}
		if err == nil {
			i.line, i.err = parseLine(text)
		}
		select {
		case lines <- i:
		case <-ctx.Done():
			return
		}
	}
}

// A server is a running agent.
type server struct {
	program Program
	initial runtimeState
	current *task // nil between requests
	failed  bool

	mu  sync.Mutex // guards out, so that lines are whole
	out *json.Encoder
}

// A task is a request in progress.
type task struct {
	id     int
	cancel context.CancelCauseFunc
	ended  chan Event
}

// ended returns the channel of the last event of the request in progress; nil if there is no request.
func (s *server) ended() <-chan Event {
	if s.current == nil {
		return nil
	}
	return s.current.ended
}

func (s *server) loop(ctx context.Context, lines <-chan input) error {
	for {
		var err error
		select {
		case last := <-s.ended():
			err = s.finish(last)
		case i, more := <-lines:
			if !more {
				return s.end(errInput)
			}
			err = s.handle(ctx, i)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), s.end(context.Cause(ctx)))
		}
		if err != nil {
			return errors.Join(err, s.end(err))
		}
	}
}

// handle starts or cancels a request.
func (s *server) handle(ctx context.Context, i input) error {
	if i.err != nil {
		return s.refuse(i.line.ID, i.err)
	}
	if i.line.Verb == cancelVerb {
		if s.current != nil && s.current.id == i.line.ID {
			s.current.cancel(errCancel)
		}
		return nil // an unknown request may just have ended
	}
	if s.current != nil {
		return s.refuse(i.line.ID, fmt.Errorf("the agent is busy with request %d", s.current.id))
	}
	do, known := s.program.Verbs[i.line.Verb]
	if !known {
		verbs := strings.Join(slices.Sorted(maps.Keys(s.program.Verbs)), ", ")
		return s.refuse(i.line.ID, fmt.Errorf("the agent has no verb %.40q; it has %s", i.line.Verb, verbs))
	}
	s.begin(ctx, i.line, do)
	return nil
}

func (s *server) begin(ctx context.Context, l line, do Handler) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &task{id: l.ID, cancel: cancel, ended: make(chan Event, 1)}
	s.current = t
	stop := context.CancelFunc(func() {})
	if l.Limit > 0 {
		late := fmt.Errorf("the request took longer than its limit of %v", l.Limit)
		ctx, stop = context.WithTimeoutCause(ctx, l.Limit, late)
	}
	go func() {
		say := func(event string, body any) { s.say(l.ID, event, body) }
		result, err := do(ctx, Call{Token: l.Token, Say: say, body: l.Body})
		stop()
		cancel(nil)
		s.initial.restore()
		t.ended <- lastEvent(l.ID, result, err)
	}()
}

func lastEvent(id int, result any, err error) Event {
	body, merr := json.Marshal(result)
	if err = errors.Join(err, merr); err != nil {
		return Event{ID: id, Event: Failed, Error: err.Error()}
	}
	return Event{ID: id, Event: Result, Body: body}
}

// finish writes the last event of the request in progress, so that the next one may start.
func (s *server) finish(last Event) error {
	s.current = nil
	s.failed = s.failed || last.Event == Failed
	return s.write(last)
}

// refuse responds to a line that is not a request, or whose request cannot start.
func (s *server) refuse(id int, why error) error {
	s.failed = true
	return s.write(Event{ID: id, Event: Failed, Error: why.Error()})
}

// end cancels the request in progress and waits for it. It returns ErrFailed if any request failed.
func (s *server) end(why error) error {
	if s.current != nil {
		s.current.cancel(why)
		select {
		case last := <-s.current.ended:
			last.Bye = true
			_ = s.finish(last) // the output may be closed
		case <-time.After(endTimeout):
			return fmt.Errorf("request %d did not end within %v: %w", s.current.id, endTimeout, why)
		}
	}
	if s.failed {
		return ErrFailed
	}
	return nil
}

func (s *server) say(id int, event string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		return // a mistake of the handler
	}
	_ = s.write(Event{ID: id, Event: event, Body: text})
}

func (s *server) write(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.out.Encode(e); err != nil {
		return fmt.Errorf("write the %s event: %w", e.Event, err)
	}
	return nil
}

// A runtimeState holds the settings of the Go runtime that load generators change.
type runtimeState struct {
	gcPercent   int
	memoryLimit int64 // bytes
	procs       int
}

func currentRuntime() runtimeState {
	collect := debug.SetGCPercent(-1) // the percentage can only be read by setting it
	debug.SetGCPercent(collect)
	return runtimeState{gcPercent: collect, memoryLimit: debug.SetMemoryLimit(-1), procs: runtime.GOMAXPROCS(0)}
}

// restore restores the settings and returns unused memory to the kernel, so that the next request starts like the
// first.
func (r runtimeState) restore() {
	runtime.GOMAXPROCS(r.procs)
	debug.SetMemoryLimit(r.memoryLimit)
	debug.SetGCPercent(r.gcPercent)
	debug.FreeOSMemory()
}
