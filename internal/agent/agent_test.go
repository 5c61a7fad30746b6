package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/workload"
)

const secret = "00112233445566778899aabbccddeeff"

func spec(t testing.TB) Spec {
	t.Helper()
	w, err := workload.Spec{Kind: workload.TCPRR, Duration: 200 * time.Millisecond}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Version: SpecVersion, Role: netload.Server, Address: netip.MustParseAddrPort("127.0.0.1:0"), Workload: w}
	if err := s.Token.UnmarshalText([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	return s
}

func text(t testing.TB, s Spec) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestParseSpec(t *testing.T) {
	want := spec(t)
	got, err := ParseSpec(strings.NewReader(text(t, want)))
	if err != nil || !got.Token.Equal(want.Token) || got.Workload != want.Workload || got.Address != want.Address {
		t.Fatalf("%+v, %v", got, err)
	}
	good := text(t, want)
	tests := map[string]string{
		"empty":           "",
		"half":            good[:len(good)/2],
		"not JSON":        "hello",
		"unknown field":   strings.Replace(good, `"role"`, `"rule"`, 1),
		"another version": strings.Replace(good, `"version":2`, `"version":1`, 1),
		"wrong type":      strings.Replace(good, `"version":2`, `"version":"2"`, 1),
		"short token":     strings.Replace(good, secret, secret[2:], 1),
		"odd token":       strings.Replace(good, secret, "zz"+secret[2:], 1),
		"no token":        strings.Replace(good, secret, strings.Repeat("0", 32), 1),
		"odd address":     strings.Replace(good, "127.0.0.1:0", "somewhere", 1),
		"odd workload":    strings.Replace(good, "tcp-rr", "sctp-rr", 1),
		"too long":        `{"version":2,"role":"` + strings.Repeat("x", maxSpec) + `"}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSpec(strings.NewReader(in))
			if !errors.Is(err, ErrSpec) {
				t.Errorf("error is %v", err)
			}
			if err != nil && strings.Contains(err.Error(), secret[4:]) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(text(f, spec(f))))
	f.Add([]byte(`{"version":2,"cpus":[1e99]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSpec(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Errorf("%v", err)
			}
			return
		}
		if err := s.config().Validate(); err != nil {
			t.Errorf("accepted, but %v", err)
		}
	})
}

func TestWithout(t *testing.T) {
	b, err := json.Marshal(spec(t).Without())
	if err != nil || strings.Contains(string(b), secret) || !strings.Contains(string(b), `"token":"(left out)"`) || !strings.Contains(string(b), `"role":"server"`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestMainErrors: what goes wrong is an event, and an error.
func TestMainErrors(t *testing.T) {
	var out, errs bytes.Buffer
	err := Main(t.Context(), strings.NewReader("{}"), &out, &errs)
	var ev Event
	if uerr := json.Unmarshal(out.Bytes(), &ev); uerr != nil || ev.Event != Failed || ev.Error != err.Error() || errs.Len() > 0 {
		t.Errorf("%s, %v, %s", out.Bytes(), uerr, errs.Bytes())
	}
}

// TestQuiet: an agent says that it is ready and how its run ended, whatever the run has to tell: no more than an API server
// that carries it can bear.
func TestQuiet(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		_ = Main(t.Context(), strings.NewReader(text(t, spec(t))), w, io.Discard)
		w.Close()
	}()
	lines := json.NewDecoder(r)
	var ready Event
	if err := lines.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if ready.Event == Failed && strings.Contains(ready.Error, "needs Linux") {
		t.Skip(ready.Error)
	}
	forClient := spec(t)
	forClient.Role = netload.Client
	var err error
	if forClient.Address, err = netip.ParseAddrPort(ready.Address); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := Main(t.Context(), strings.NewReader(text(t, forClient)), &out, &errs); err != nil {
		t.Error(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 || errs.Len() > 0 {
		t.Errorf("the client wrote %d lines, and %q", n, errs.String())
	}
	rest, err := io.ReadAll(io.MultiReader(lines.Buffered(), r))
	if n := bytes.Count(bytes.TrimSpace(rest), []byte("\n")) + 1; err != nil || n != 1 {
		t.Errorf("the server wrote %d lines after the first, %v", n, err)
	}
}

// TestCancelled: a server that waits for its client says where it listens, and ends when it is told to.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Main(ctx, strings.NewReader(text(t, spec(t))), w, io.Discard)
		w.Close()
		ended <- err
	}()
	events := json.NewDecoder(r)
	var ev Event
	err := events.Decode(&ev)
	if err != nil {
		t.Fatalf("no event: %v", err)
	}
	if ev.Event == Failed && strings.Contains(ev.Error, "needs Linux") {
		t.Skip(ev.Error)
	}
	if at, perr := netip.ParseAddrPort(ev.Address); ev.Event != Ready || perr != nil || at.Port() == 0 {
		t.Fatalf("first event is %+v", ev)
	}
	cancel()
	if err := events.Decode(&ev); err != nil || ev.Event != Failed {
		t.Errorf("last event is %+v, %v", ev, err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
