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

// start starts an agent that ends with the test.
func started(t *testing.T, m *memory) *process {
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

func ask(verb, text string) Request { return Request{Verb: verb, Body: order{text}} }

// awaited calls back when an agent is ready.
func awaited(then func()) func(Event) {
	return func(e Event) {
		if e.Event == Ready {
			then()
		}
	}
}

// An agent carries out one request after another, also after one that failed.
func TestRequests(t *testing.T) {
	m := newMemory()
	a := started(t, m)
	for _, test := range []struct {
		request  Request
		want, is string
	}{
		{Request{Verb: "echo", Token: secret, Body: order{"a"}}, `{"text":"a` + secret + `"}`, ""},
		{ask("fail", "why"), "", "agent on here: why"},
		{ask("echo", "b"), `{"text":"b"}`, ""},
		{ask("dance", ""), "", `the agent has no verb "dance"; it has deaf, echo, fail, talk, wait`},
		{Request{Verb: "echo", Body: []int{1}}, "", "invalid request for the agent: it has the wrong type"},
		{Request{Verb: "echo", Body: map[string]string{"other": secret}}, "", "a field is unknown"},
		{Request{Verb: "echo", Body: order{strings.Repeat("x", maxRequest)}}, "", "longer than"},
		{Request{Verb: "echo", Body: func() {}}, "", "unsupported type"},
		{ask("echo", "c"), `{"text":"c"}`, ""},
	} {
		var said Transcript
		got, err := a.do(t.Context(), test.request, said.Hear)
		if string(got) != test.want || !says(err, test.is) {
			t.Errorf("%.40v: %s, %v", test.request, got, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells what it read: %v", err)
		}
	}
	if m.started.Load() != 1 {
		t.Errorf("%d agents were started", m.started.Load())
	}
}

// says is whether an error has a text in it; none has the empty one.
func says(err error, text string) bool {
	if err == nil {
		return text == ""
	}
	return text != "" && strings.Contains(err.Error(), text)
}

// When the context ends, the request does, and the agent takes the next one.
func TestCancel(t *testing.T) {
	a := started(t, newMemory())
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := a.do(ctx, ask("wait", "x"), awaited(func() { cancel(reason) })); !errors.Is(err, reason) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := a.do(t.Context(), ask("echo", "x"), nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// A request that takes longer than who asked can wait is ended by the agent itself, too.
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
	if err := Serve(t.Context(), in, to, Program{Verbs: toys()}); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"error":"the request took longer than its limit of 1ms"`) {
		t.Error(out.String())
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// An agent that does not obey is killed, after some patience.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		crew := NewCrew()
		here := crew.On(m)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if _, err := Do[order](ctx, here, ask("deaf", "x"), awaited(cancel)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(began); took != cancelPatience {
			t.Errorf("it was killed after %v", took)
		}
		if _, err := Do[order](t.Context(), here, ask("echo", "x"), nil); err != nil || m.started.Load() != 2 {
			t.Errorf("after it: %v, %d agents", err, m.started.Load())
		}
		crew.Close()
		time.Sleep(2 * time.Minute) // until the deaf one wakes up
	})
}

// The request in which an agent dies fails; a crew has another agent for the next one.
func TestDeath(t *testing.T) {
	m := newMemory()
	crew := NewCrew()
	here := crew.On(m)
	if _, err := Do[order](t.Context(), here, ask("wait", "x"), awaited(m.crash)); !errors.Is(err, errCrash) {
		t.Errorf("in the request: %v", err)
	}
	for range 2 {
		if got, err := Do[order](t.Context(), here, ask("echo", "x"), nil); err != nil || got.Text != "x" {
			t.Errorf("after it: %v", err)
		}
	}
	m.crash() // between two requests
	<-crew.posts[m.name].agent.ended
	if _, err := Do[order](t.Context(), here, ask("echo", "x"), nil); err != nil {
		t.Errorf("after a death in silence: %v", err)
	}
	if n := m.started.Load(); n != 3 {
		t.Errorf("%d agents were started", n)
	}
	crew.Close()
	if _, err := Do[order](t.Context(), here, ask("echo", "x"), nil); err == nil || m.living.Load() != 0 {
		t.Errorf("after the end: %v, %d agents live", err, m.living.Load())
	}
	crew.Close()
}

// A crew's end is that of a request in progress.
func TestCrewClosed(t *testing.T) {
	m := newMemory()
	crew := NewCrew()
	closed := make(chan struct{})
	end := func() { crew.Close(); close(closed) }
	_, err := Do[order](t.Context(), crew.On(m), ask("wait", "x"), awaited(func() { go end() }))
	if !says(err, "the agent's input has ended") {
		t.Error(err)
	}
	<-closed
	if m.living.Load() != 0 {
		t.Error("it lives on")
	}
}

// Without a crew an agent is started for each request, and has ended after it.
func TestAlone(t *testing.T) {
	m := newMemory()
	for i := range int32(2) {
		if got, err := Do[order](t.Context(), m, ask("echo", "x"), nil); err != nil || got.Text != "x" {
			t.Errorf("%+v, %v", got, err)
		}
		if m.started.Load() != i+1 || m.living.Load() != 0 {
			t.Errorf("%d agents were started, %d live", m.started.Load(), m.living.Load())
		}
	}
	if _, err := Do[int](t.Context(), m, ask("echo", "x"), nil); !says(err, "cannot be read") {
		t.Error(err)
	}
}

// An agent has one request at a time.
func TestBusy(t *testing.T) {
	a := started(t, newMemory())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := a.do(ctx, ask("wait", "x"), awaited(func() {
		if _, err := a.do(t.Context(), ask("echo", "x"), nil); !says(err, "busy") {
			t.Errorf("at the same time: %v", err)
		}
		cancel()
	}))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	got := serve(t, `{"id":1,"verb":"wait","body":{"text":"x"}}`, `{"id":2,"verb":"echo","body":{}}`)
	if !strings.Contains(got, `{"id":2,"event":"error","error":"the agent is busy with request 1"}`) {
		t.Error(got)
	}
}

// What starts instead of an agent, or breaks the protocol, is killed, and the error says why.
func TestStrangers(t *testing.T) {
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
		"a flood":  {say(strings.Repeat("x", maxAnswer+1)), "it says more than"},
		"silence": {func(c *host.Cmd) {
			c.Stdin, c.Stdout = strings.NewReader(""), io.Discard
		}, "ended too early"},
	} {
		m := newMemory()
		m.spoil = test.spoil
		a, err := start(t.Context(), m)
		if err == nil { // it said hello first
			_, err = a.do(t.Context(), ask("wait", "x"), nil)
			a.close()
		}
		if !says(err, test.says) || m.living.Load() != 0 {
			t.Errorf("%s: %v, %d live", name, err, m.living.Load())
		}
	}
	m := newMemory()
	a := started(t, m)
	if _, err := a.do(t.Context(), ask("talk", strings.Repeat("x", maxRequest/2)), nil); !says(err, "it says more") {
		t.Errorf("who talks without end: %v", err)
	}
	// Nothing says hello.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	m.spoil = func(c *host.Cmd) { c.Stdout = io.Discard }
	if _, err := start(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
}

// serve is what an agent says to lines, up to the end of its input.
func serve(t *testing.T, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := Serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"),
		&out, Program{Version: "toy", Verbs: toys()})
	if err != nil && !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	return out.String()
}

// What is no request is answered, and the next line is read.
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
		got := serve(t, test.line, `{"id":7,"verb":"dance"}`)
		lines := strings.SplitAfter(got, "\n")
		const second = `{"id":7,"event":"error","error":"the agent `
		if len(lines) != 4 || lines[0] != greeting || !strings.Contains(got, test.says) || !strings.Contains(got, second) {
			t.Errorf("%s: %s", name, got)
		}
		if strings.Contains(got, secret) {
			t.Errorf("%s: the answer tells what was read: %s", name, got)
		}
	}
	if got := serve(t, `{"id":3,"verb":"cancel"}`); got != greeting {
		t.Errorf("a cancellation of nothing: %s", got)
	}
	// A line that is not whole is none.
	var out bytes.Buffer
	half := strings.NewReader(`{"id":1,"verb":"fail","body":{}}`)
	err := Serve(t.Context(), half, &out, Program{Version: "toy", Verbs: toys()})
	if err != nil || out.String() != greeting {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// When the agent's input or its context ends, so does the request in progress.
func TestEnd(t *testing.T) {
	const last = `{"id":1,"event":"error","error":"the agent's input has ended","bye":true}` + "\n"
	if got := serve(t, `{"id":1,"verb":"wait","body":{"text":"x"}}`); !strings.HasSuffix(got, last) {
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
	}), Program{Verbs: toys()})
	if !errors.Is(err, gone) || !strings.HasSuffix(out.String(), `"error":"the parent is gone","bye":true}`+"\n") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// A request that changes the runtime changes it for itself alone.
func TestRuntimeRestored(t *testing.T) {
	m := newMemory()
	before := runtimeNow()
	m.verbs["measure"] = Handle(func(context.Context, Call, order) (order, error) {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(1 << 30)
		runtime.GOMAXPROCS(before.procs + 5)
		return order{}, nil
	})
	if _, err := Do[order](t.Context(), m, ask("measure", ""), nil); err != nil || runtimeNow() != before {
		t.Errorf("%v: %+v, before %+v", err, runtimeNow(), before)
	}
}

type hidden struct{ Secret, Seen string }

func (h hidden) Open() any { return hidden{Seen: h.Seen} }

func TestRecord(t *testing.T) {
	got := string(Request{Verb: "echo", Token: secret, Body: hidden{Secret: secret, Seen: "this"}}.Record())
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
		verbs := toys()
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
			t.Errorf("%d answers to %d lines", ends, most)
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
