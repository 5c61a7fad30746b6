// Package agent is how one program has work done on the hosts of a site: an agent is a process that reads requests
// from its standard input and writes events to its standard output, both as lines of JSON. [Serve] is the agent's
// side, which takes one request after another; [Crew] and [Do] are the side that asks. What can be asked
// for is a table of verbs that the agent's program hands to Serve: this package knows none of them.
//
// An agent outlives nothing. It ends with its input, with its parent and with the [Crew] that started it; between two
// requests it listens nowhere and has put its process back into the state in which it began.
package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// version is that of the protocol, which an agent says in its first event. The agents of a run are always this
// program's own, so a difference means that a stale one was started.
const version = 3

// Limits in bytes.
const (
	maxRequest = 256 << 10 // a line to an agent
	maxAnswer  = 16 << 20  // what an agent says of one request
)

// A Request is something to do on a host.
type Request struct {
	Verb string
	// Token is the secret that opens connections to what the request makes the agent listen on. It is handed to
	// agents on their standard input and nowhere else.
	Token string
	Body  any // what the verb takes, as JSON
}

// A body with secrets can be had without them.
type opener interface{ Open() any }

// Record is the request as evidence: without its token, and with what its body's Open returns if that has such a
// method.
func (r Request) Record() []byte {
	record := struct {
		Verb  string `json:"verb"`
		Token string `json:"token,omitempty"`
		Body  any    `json:"body,omitempty"`
	}{Verb: r.Verb, Body: r.Body}
	if r.Token != "" {
		record.Token = "(left out)"
	}
	if body, ok := r.Body.(opener); ok {
		record.Body = body.Open()
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		text = []byte(err.Error())
	}
	return append(text, '\n')
}

// A line to an agent.
type line struct {
	ID    int             `json:"id"` // above 0; events name it
	Verb  string          `json:"verb"`
	Token string          `json:"token,omitempty"`
	Limit time.Duration   `json:"limit,omitempty"` // ns, until the agent gives up
	Body  json.RawMessage `json:"body,omitempty"`
}

// cancelVerb ends the request with the line's ID, if that is in progress.
const cancelVerb = "cancel"

// An Event is one line of an agent's output.
type Event struct {
	ID    int             `json:"id,omitempty"` // of the request; 0: of none
	Event string          `json:"event"`
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"`
	Bye   bool            `json:"bye,omitempty"` // the agent ends with this event
}

// The events. An agent says hello once, when it can take requests. Each request ends with one result or one error;
// before that, one that listens says that it is ready.
const (
	hello  = "hello"
	Ready  = "ready"
	Result = "result"
	Failed = "error"
)

// A greeting is the body of the first event.
type greeting struct {
	Version int    `json:"version"`
	Program string `json:"program"` // version of the agent's program
}

// errRequest is what every error about a request's text is. None quotes it, since it has secrets in it.
var errRequest = errors.New("invalid request for the agent")

var errTooLong = fmt.Errorf("%w: longer than %d bytes", errRequest, maxRequest)

// readLine reads a line up to a length; of a longer one the rest is skipped, and the error is errTooLong. What does
// not end with a newline is no line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for long := false; ; {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxRequest; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		case long:
			return nil, errTooLong
		}
		return text, nil
	}
}

func parseLine(text []byte) (line, error) {
	var l line
	if err := decode(text, &l); err != nil {
		return line{}, err
	}
	if l.ID <= 0 || l.Limit < 0 {
		return line{}, fmt.Errorf("%w: its id or limit cannot be", errRequest)
	}
	return l, nil
}

// decode reads JSON; what it does not know is an error.
func decode(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errRequest, cause(err))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows it", errRequest)
	}
	return nil
}

// cause is err without any part of the text that was read.
func cause(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return errors.New("it has the wrong type")
	case errors.As(err, &kind):
		return fmt.Errorf("field %s has the wrong type", kind.Field)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	}
	return errors.New("a field is unknown or has a value that cannot be")
}
