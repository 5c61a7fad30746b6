// Package agent runs requests on the hosts of a site. An agent is a process that reads requests from standard input and
// writes events to standard output, both as lines of JSON. [Serve] implements the agent, which carries out one request
// after another; [Pool] and [Do] start agents and send requests. The agent's program passes Serve a table of verbs;
// this package knows none of them.
//
// An agent ends when its input, its parent or the [Pool] that started it ends. Between requests it does not listen, and
// its process is in its initial state.
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

// version is the version of the protocol, which an agent reports in its first event. The agents of a run come from this
// program, so a difference means that an outdated one was started.
const version = 3

// Limits in bytes.
const (
	maxRequest  = 256 << 10 // of a line to an agent
	maxResponse = 16 << 20  // of all events of one request
)

// A Request is work for an agent.
type Request struct {
	Verb string
	// Token is the secret that clients must send to the ports on which the agent listens for this request. It is passed
	// to agents on standard input only.
	Token string
	Body  any // parameters of the verb, marshalled as JSON
}

// A redacter is a body with secrets; Redacted returns a copy without them.
type redacter interface{ Redacted() any }

// Record returns the request as evidence, in JSON, without its token. A body that has a Redacted method is replaced by
// the result of that method.
func (r Request) Record() []byte {
	record := struct {
		Verb  string `json:"verb"`
		Token string `json:"token,omitempty"`
		Body  any    `json:"body,omitempty"`
	}{Verb: r.Verb, Body: r.Body}
	if r.Token != "" {
		record.Token = "(left out)"
	}
	if body, ok := r.Body.(redacter); ok {
		record.Body = body.Redacted()
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		text = []byte(err.Error())
	}
	return append(text, '\n')
}

// A line is a line of an agent's input.
type line struct {
	ID    int             `json:"id"` // above 0; events refer to it
	Verb  string          `json:"verb"`
	Token string          `json:"token,omitempty"`
	Limit time.Duration   `json:"limit,omitempty"` // ns, after which the agent cancels the request
	Body  json.RawMessage `json:"body,omitempty"`
}

// cancelVerb cancels the request with the line's ID, if it is in progress.
const cancelVerb = "cancel"

// An Event is one line of an agent's output.
type Event struct {
	ID    int             `json:"id,omitempty"` // of the request; 0: none
	Event string          `json:"event"`
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"`
	Bye   bool            `json:"bye,omitempty"` // the agent ends with this event
}

// The events. An agent sends hello once, when it can take requests. Each request ends with one result or one error. A
// request that listens sends ready before that.
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

// errRequest is wrapped by every error about the text of a request. The errors never quote the text, because it has
// secrets.
var errRequest = errors.New("invalid request for the agent")

var errTooLong = fmt.Errorf("%w: longer than %d bytes", errRequest, maxRequest)

// readLine reads a line of at most maxRequest bytes. The rest of a longer line is skipped, and the error is errTooLong.
// Text without a newline at its end is not a line.
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

// decode unmarshals one JSON value. Unknown fields and text after the value are errors.
func decode(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errRequest, withoutText(err))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows it", errRequest)
	}
	return nil
}

// withoutText returns an error that describes err without any part of the text that was read.
func withoutText(err error) error {
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
