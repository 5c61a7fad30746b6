package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

const secret = "00112233445566778899aabbccddeeff"

// startAgent starts an agent that is closed at the end of the test.
func startAgent(t *testing.T, m *fakeHost) *process {
	t.Helper()
	a, err := start(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.close()
		if n := m.living.Load(); n != 0 {
			t.Errorf("%d agents are left", n)
		}
	})
	return a
}

func newRequest(verb, text string) Request { return Request{Verb: verb, Body: textBody{text}} }

// whenReady returns a listener that calls then at a ready event.
func whenReady(then func()) func(Event) {
	return func(e Event) {
		if e.Event == Ready {
			then()
		}
	}
}

// TestRequests checks that an agent carries out one request after another, also after one that failed.
func TestRequests(t *testing.T) {
	m := newFakeHost()
	a := startAgent(t, m)
	for _, test := range []struct {
		request  Request
		want, is string
	}{
		{Request{Verb: "echo", Token: secret, Body: textBody{"a"}}, `{"text":"a` + secret + `"}`, ""},
		{newRequest("fail", "why"), "", "agent on here: why"},
		{newRequest("echo", "b"), `{"text":"b"}`, ""},
		{newRequest("dance", ""), "", `the agent has no verb "dance"; it has deaf, echo, fail, talk, wait`},
		{Request{Verb: "echo", Body: []int{1}}, "", "invalid request for the agent: it has the wrong type"},
		{Request{Verb: "echo", Body: map[string]string{"other": secret}}, "", "a field is unknown"},
		{Request{Verb: "echo", Body: textBody{strings.Repeat("x", maxRequest)}}, "", "longer than"},
		{Request{Verb: "echo", Body: func() {}}, "", "unsupported type"},
		{newRequest("echo", "c"), `{"text":"c"}`, ""},
	} {
		var said Transcript
		got, err := a.do(t.Context(), test.request, said.Add)
		if string(got) != test.want || !hasText(err, test.is) {
			t.Errorf("%.40v: %s, %v", test.request, got, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the request: %v", err)
		}
	}
	if m.started.Load() != 1 {
		t.Errorf("%d agents were started", m.started.Load())
	}
}

// hasText reports whether an error contains a text; the empty text stands for no error.
func hasText(err error, text string) bool {
	if err == nil {
		return text == ""
	}
	return text != "" && strings.Contains(err.Error(), text)
}

// TestCancel checks that a request ends with its context, and that the agent takes the next one.
func TestCancel(t *testing.T) {
	a := startAgent(t, newFakeHost())
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := a.do(ctx, newRequest("wait", "x"), whenReady(func() { cancel(reason) })); !errors.Is(err, reason) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := a.do(t.Context(), newRequest("echo", "x"), nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestLimit checks that the agent itself ends a request at its time limit.
func TestLimit(t *testing.T) {
	var out bytes.Buffer
	in, feed := io.Pipe()
	go func() { fmt.Fprintln(feed, `{"id":1,"verb":"wait","limit":1000000,"body":{"text":"x"}}`) }()
	end := func(b []byte) {
		if bytes.Contains(b, []byte(`"error"`)) {
			feed.Close()
		}
	}
	to := writer(func(b []byte) { out.Write(b); end(b) })
	if err := Serve(t.Context(), in, to, Program{Verbs: testVerbs()}); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"error":"the request took longer than its limit of 1ms"`) {
		t.Error(out.String())
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// TestKilledAfterCancel checks that an agent is killed if a request does not end in time after its cancellation.
func TestKilledAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeHost()
		pool := NewPool()
		here := pool.On(m)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if _, err := Do[textBody](ctx, here, newRequest("deaf", "x"), whenReady(cancel)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(began); took != cancelTimeout {
			t.Errorf("it was killed after %v", took)
		}
		if _, err := Do[textBody](t.Context(), here, newRequest("echo", "x"), nil); err != nil || m.started.Load() != 2 {
			t.Errorf("after it: %v, %d agents", err, m.started.Load())
		}
		pool.Close()
		time.Sleep(2 * time.Minute) // until the agent that ignored the cancellation ends
	})
}

// TestAgentDies checks that only the request in which an agent dies fails, and that the pool starts another agent.
func TestAgentDies(t *testing.T) {
	m := newFakeHost()
	pool := NewPool()
	here := pool.On(m)
	if _, err := Do[textBody](t.Context(), here, newRequest("wait", "x"), whenReady(m.crash)); !errors.Is(err, errCrash) {
		t.Errorf("in the request: %v", err)
	}
	for range 2 {
		if got, err := Do[textBody](t.Context(), here, newRequest("echo", "x"), nil); err != nil || got.Text != "x" {
			t.Errorf("after it: %v", err)
		}
	}
	m.crash() // between two requests
	<-pool.slots[m.name].agent.ended
	if _, err := Do[textBody](t.Context(), here, newRequest("echo", "x"), nil); err != nil {
		t.Errorf("after a death in silence: %v", err)
	}
	if n := m.started.Load(); n != 3 {
		t.Errorf("%d agents were started", n)
	}
	pool.Close()
	if _, err := Do[textBody](t.Context(), here, newRequest("echo", "x"), nil); err == nil || m.living.Load() != 0 {
		t.Errorf("after the end: %v, %d agents live", err, m.living.Load())
	}
	pool.Close()
}

// TestPoolClosed checks that closing a pool ends the request in progress.
func TestPoolClosed(t *testing.T) {
	m := newFakeHost()
	pool := NewPool()
	closed := make(chan struct{})
	end := func() { pool.Close(); close(closed) }
	_, err := Do[textBody](t.Context(), pool.On(m), newRequest("wait", "x"), whenReady(func() { go end() }))
	if !hasText(err, "the agent's input has ended") {
		t.Error(err)
	}
	<-closed
	if m.living.Load() != 0 {
		t.Error("it lives on")
	}
}

// TestAlone checks that without a pool an agent is started for each request and ends after it.
func TestAlone(t *testing.T) {
	m := newFakeHost()
	for i := range int32(2) {
		if got, err := Do[textBody](t.Context(), m, newRequest("echo", "x"), nil); err != nil || got.Text != "x" {
			t.Errorf("%+v, %v", got, err)
		}
		if m.started.Load() != i+1 || m.living.Load() != 0 {
			t.Errorf("%d agents were started, %d live", m.started.Load(), m.living.Load())
		}
	}
	if _, err := Do[int](t.Context(), m, newRequest("echo", "x"), nil); !hasText(err, "cannot be read") {
		t.Error(err)
	}
}

// TestBusy checks that an agent has one request at a time.
func TestBusy(t *testing.T) {
	a := startAgent(t, newFakeHost())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := a.do(ctx, newRequest("wait", "x"), whenReady(func() {
		if _, err := a.do(t.Context(), newRequest("echo", "x"), nil); !hasText(err, "busy") {
			t.Errorf("at the same time: %v", err)
		}
		cancel()
	}))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	got := serveLines(t, `{"id":1,"verb":"wait","body":{"text":"x"}}`, `{"id":2,"verb":"echo","body":{}}`)
	if !strings.Contains(got, `{"id":2,"event":"error","error":"the agent is busy with request 1"}`) {
		t.Error(got)
	}
}

// TestProtocolErrors checks that a program that is not an agent, or violates the protocol, is killed, and that the
// error has the reason.
func TestProtocolErrors(t *testing.T) {
	say := func(text string) func(*host.Cmd) {
		return func(c *host.Cmd) { fmt.Fprint(c.Stdout, text); c.Stdout = io.Discard }
	}
	for name, test := range map[string]struct {
		spoil func(*host.Cmd)
		says  string
	}{
		"an old agent": {
			say(`{"event":"hello","body":{"version":2,"program":"v0.1"}}` + "\n"),
			`another version than this program ("v0.1"): it speaks version 2 of the protocol, not 3`,
		},
		"a shell":  {say("sh: syntax error\n"), "is no event"},
		"an echo":  {say(`{"id":1,"verb":"echo"}` + "\n"), "is about no request"},
		"a parrot": {say(strings.Repeat(`{"event":"hello","body":{"version":3}}`+"\n", 3)), "it says hello again"},
		"a flood":  {say(strings.Repeat("x", maxResponse+1)), "it says more than"},
		"silence": {func(c *host.Cmd) {
			c.Stdin, c.Stdout = strings.NewReader(""), io.Discard
		}, "ended too early"},
	} {
		m := newFakeHost()
		m.spoil = test.spoil
		a, err := start(t.Context(), m)
		if err == nil { // it said hello first
			_, err = a.do(t.Context(), newRequest("wait", "x"), nil)
			a.close()
		}
		if !hasText(err, test.says) || m.living.Load() != 0 {
			t.Errorf("%s: %v, %d live", name, err, m.living.Load())
		}
	}
	m := newFakeHost()
	a := startAgent(t, m)
	_, err := a.do(t.Context(), newRequest("talk", strings.Repeat("x", maxRequest/2)), nil)
	if !hasText(err, "it says more") {
		t.Errorf("an agent that sends events without end: %v", err)
	}
	// No hello event comes.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	m.spoil = func(c *host.Cmd) { c.Stdout = io.Discard }
	if _, err := start(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
}

// serveLines returns the output of an agent for lines of input.
func serveLines(t *testing.T, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := Serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"),
		&out, Program{Version: "toy", Verbs: testVerbs()})
	if err != nil && !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	return out.String()
}

// TestLines checks that a line that is not a request is answered, and that the next line is read.
func TestLines(t *testing.T) {
	const greeting = `{"event":"hello","body":{"version":3,"program":"toy"}}` + "\n"
	for name, test := range map[string]struct{ line, says string }{
		"empty":         {"", "it ends too early"},
		"half":          {`{"id":1,`, "it ends too early"},
		"not JSON":      {"{" + secret, "not JSON at byte"},
		"unknown field": {`{"id":1,"verb":"echo","` + secret + `":1}`, "a field is unknown"},
		"wrong type":    {`{"id":"` + secret + `"}`, "field id has the wrong type"},
		"no id":         {`{"verb":"echo"}`, "its id or limit cannot be"},
		"negative time": {`{"id":1,"verb":"echo","limit":-1}`, "its id or limit cannot be"},
		"two in one":    {`{"id":1,"verb":"echo"}{}`, "something follows it"},
		"too long":      {strings.Repeat("x", 3*maxRequest), "longer than 262144 bytes"},
		"no verb":       {`{"id":1}`, `no verb \"\"; it has deaf, echo`},
		"no body":       {`{"id":1,"verb":"echo"}`, "it ends too early"},
	} {
		got := serveLines(t, test.line, `{"id":7,"verb":"dance"}`)
		lines := strings.SplitAfter(got, "\n")
		const second = `{"id":7,"event":"error","error":"the agent `
		if len(lines) != 4 || lines[0] != greeting || !strings.Contains(got, test.says) || !strings.Contains(got, second) {
			t.Errorf("%s: %s", name, got)
		}
		if strings.Contains(got, secret) {
			t.Errorf("%s: the response quotes the line: %s", name, got)
		}
	}
	if got := serveLines(t, `{"id":3,"verb":"cancel"}`); got != greeting {
		t.Errorf("a cancellation of nothing: %s", got)
	}
	// A line without a newline is ignored.
	var out bytes.Buffer
	half := strings.NewReader(`{"id":1,"verb":"fail","body":{}}`)
	err := Serve(t.Context(), half, &out, Program{Version: "toy", Verbs: testVerbs()})
	if err != nil || out.String() != greeting {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// TestEnd checks that the request in progress ends with the agent's input or its context.
func TestEnd(t *testing.T) {
	const last = `{"id":1,"event":"error","error":"the agent's input has ended","bye":true}` + "\n"
	if got := serveLines(t, `{"id":1,"verb":"wait","body":{"text":"x"}}`); !strings.HasSuffix(got, last) {
		t.Error(got)
	}
	gone := errors.New("the parent is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	in, feed := io.Pipe()
	defer feed.Close()
	go fmt.Fprintln(feed, `{"id":1,"verb":"wait","body":{"text":"x"}}`)
	var out bytes.Buffer
	err := Serve(ctx, in, writer(func(b []byte) {
		if out.Write(b); bytes.Contains(b, []byte(Ready)) {
			cancel(gone)
		}
	}), Program{Verbs: testVerbs()})
	if !errors.Is(err, gone) || !strings.HasSuffix(out.String(), `"error":"the parent is gone","bye":true}`+"\n") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// TestRuntimeRestored checks that the runtime's settings are restored after a request.
func TestRuntimeRestored(t *testing.T) {
	m := newFakeHost()
	before := currentRuntime()
	m.verbs["measure"] = Handle(func(context.Context, Call, textBody) (textBody, error) {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(1 << 30)
		runtime.GOMAXPROCS(before.procs + 5)
		return textBody{}, nil
	})
	if _, err := Do[textBody](t.Context(), m, newRequest("measure", ""), nil); err != nil || currentRuntime() != before {
		t.Errorf("%v: %+v, before %+v", err, currentRuntime(), before)
	}
}

type secretBody struct{ Secret, Seen string }

func (h secretBody) Redacted() any { return secretBody{Seen: h.Seen} }

func TestRecord(t *testing.T) {
	got := string(Request{Verb: "echo", Token: secret, Body: secretBody{Secret: secret, Seen: "this"}}.Record())
	if strings.Contains(got, secret) {
		t.Error(got)
	}
	for _, part := range []string{`"token": "(left out)"`, `"verb": "echo"`, `"this"`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"verb":"echo","body":{"text":"x"}}` + "\n" + `{"id":2,"verb":"cancel"}` + "\n"))
	f.Add([]byte("{\n" + strings.Repeat("x", maxRequest) + "\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		verbs := testVerbs()
		delete(verbs, "deaf")
		delete(verbs, "talk")
		err := Serve(t.Context(), bytes.NewReader(text), &out, Program{Verbs: verbs})
		if err != nil && !errors.Is(err, ErrFailed) {
			t.Error(err)
		}
		ends := 0
		for line := range bytes.Lines(out.Bytes()) {
			e, err := parseEvent(line)
			if err != nil {
				t.Errorf("it said %q", line)
			}
			if e.Event == Result || e.Event == Failed {
				ends++
			}
		}
		if most := bytes.Count(text, []byte("\n")); ends > most {
			t.Errorf("%d responses to %d lines", ends, most)
		}
	})
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"event":"ready","body":"127.0.0.1:1"}`))
	f.Add([]byte(`{"id":1,"event":"result","body":{"role":"client","latency":"x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := parseEvent(text)
		var v any
		if err == nil && json.Unmarshal(text, &v) != nil {
			t.Errorf("%q was taken as an event", text)
		}
	})
}
