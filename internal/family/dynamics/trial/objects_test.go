package trial

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// fixedRun returns a run with a fixed token and identifier.
func fixedRun(t *testing.T) *run {
	t.Helper()
	w, err := dynamics.Parse(string(dynamics.PolicyDeny))
	if err != nil {
		t.Fatal(err)
	}
	return &run{Client: &apiserver.Client{}, id: "0badcafe", token: probe.Token{1, 2, 3},
		Run: dynamics.Run{Workload: w, Endpoint: host.Endpoint{Namespace: "here", Node: "one",
			Image: "agent:1", PullPolicy: "Never", Labels: map[string]string{"knotmeter.dev/block": "b1"}}}}
}

// TestObjectsGolden compares the objects that a run creates on a cluster with a golden file.
func TestObjectsGolden(t *testing.T) {
	r := fixedRun(t)
	text := ""
	for _, o := range []struct {
		resource string
		spec     map[string]any
	}{
		{"pod", map[string]any{"spec": r.serverSpec(netip.MustParseAddrPort("10.0.0.1:7001"))}},
		{"service", r.serviceSpec()}, {"networkpolicy", r.policySpec(false)}, {"networkpolicy", r.policySpec(true)},
		{"deployment", r.deploymentSpec()},
	} {
		var made any
		if err := json.Unmarshal(r.objects(o.resource).Object(0, o.spec), &made); err != nil {
			t.Fatal(err)
		}
		shown, err := json.MarshalIndent(made, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text += string(shown) + "\n"
	}
	if secret := r.token.Hash().String(); !strings.Contains(text, secret) {
		t.Errorf("no pod has the lock %s", secret)
	}
	golden.Check(t, "testdata/objects.txt", text)
}

// TestChangesAreKnown checks that every change has a function, and that the resources that it creates and watches
// exist.
func TestChangesAreKnown(t *testing.T) {
	for _, c := range dynamics.Changes() {
		if changes[c] == nil {
			t.Errorf("no agent can do %s", c)
		}
		for _, resource := range append(resources[c], watched[c]) {
			if resource != "" && apiserver.KindOf(resource).Plural == "" {
				t.Errorf("%s is about %q, which the API server does not have", c, resource)
			}
		}
	}
}

func TestResponder(t *testing.T) {
	for _, want := range []responder{
		{port: 7000, hash: probe.Token{1}.Hash(), linger: 4 * time.Second},
		{port: 1, hash: probe.Token{2}.Hash(), announce: netip.MustParseAddrPort("[fd00::1]:9")},
	} {
		if got, err := parseResponder(want.args()); err != nil || got != want {
			t.Errorf("%+v, %v, wanted %+v", got, err, want)
		}
	}
}

// FuzzResponder checks that arguments that parseResponder accepts are written so that it reads the same again.
func FuzzResponder(f *testing.F) {
	f.Add(strings.Join(responder{port: 7000, announce: netip.MustParseAddrPort("10.0.0.1:7001")}.args(), " "))
	f.Add("65536 x 1s")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseResponder(strings.Fields(text))
		if err != nil {
			return
		}
		if again, err := parseResponder(r.args()); err != nil || again != r {
			t.Errorf("%q is %+v, and then %+v, %v", text, r, again, err)
		}
	})
}

// event decodes the event of a watch.
func event(t *testing.T, text string) (e apiserver.Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestStateEndpoints checks that the time of a change is that of the last event that changed the addresses.
func TestStateEndpoints(t *testing.T) {
	s := &state{ready: map[string][]string{}}
	for n, text := range []string{
		`{"type":"ADDED","object":{"metadata":{"name":"a"},"endpoints":[{"addresses":["10.0.0.1"]}]}}`,
		`{"type":"MODIFIED","object":{"metadata":{"name":"a"},"endpoints":[{"addresses":["10.0.0.1"]},
			{"addresses":["10.0.0.2"],"conditions":{"ready":false}}]}}`,
		`{"type":"ADDED","object":{"metadata":{"name":"b"},"endpoints":[{"addresses":["10.0.0.3"],
			"conditions":{"ready":true}}]}}`,
	} {
		s.handleSlice(event(t, text), time.Unix(int64(n), 0))
	}
	if got, at := s.endpoints(); strings.Join(got, " ") != "10.0.0.1 10.0.0.3" || at.Unix() != 2 {
		t.Errorf("%v since %v", got, at)
	}
	s.handleSlice(event(t, `{"type":"DELETED","object":{"metadata":{"name":"a"},
		"endpoints":[{"addresses":["10.0.0.1"]}]}}`), time.Unix(9, 0))
	if got, at := s.endpoints(); strings.Join(got, " ") != "10.0.0.3" || at.Unix() != 9 {
		t.Errorf("%v since %v", got, at)
	}
}

func TestStatePod(t *testing.T) {
	s := &state{pods: map[string]pod{}}
	s.handlePod(event(t, `{"type":"MODIFIED","object":{"metadata":{"name":"p"},"status":{"podIP":"10.0.0.1"}}}`),
		time.Unix(1, 0))
	s.handlePod(event(t, `{"type":"MODIFIED","object":{"metadata":{"name":"p"},"status":{"podIP":"10.0.0.1",
		"conditions":[{"type":"Ready","status":"True"}]}}}`), time.Unix(2, 0))
	if p := s.pod("p"); p.ip != "10.0.0.1" || p.addressed.Unix() != 1 || !p.ready {
		t.Errorf("%+v", p)
	}
	s.handlePod(event(t, `{"type":"DELETED","object":{"metadata":{"name":"p"}}}`), time.Unix(3, 0))
	if p := s.pod("p"); p != (pod{}) {
		t.Errorf("%+v", p)
	}
}

// TestSetTraces checks that kept traces have times relative to the request, and entries for probes that were not sent.
func TestSetTraces(t *testing.T) {
	const request, interval = int64(5_000_000_000), int64(50_000_000)
	trace := probe.Trace{Kind: probe.UDP, Interval: interval, Number: 97, Broken: []int64{request + 7}}
	for n := range int64(130) { // from 4.85 s on
		trace.Sent = append(trace.Sent, (97+n)*interval+9)
		trace.Answered = append(trace.Answered, (97+n)*interval+10)
	}
	trace.Sent[2], trace.Answered[2], trace.Answered[3] = 0, 0, 0
	var kept Trial
	kept.setTraces([]probe.Trace{trace}, request, request+2*keptAfter)
	got := kept.Traces[0]
	if kept.Begin != -keptBefore || len(got.Sent) != 122 || got.Sent[0] != -keptBefore+9 || got.Sent[1] != 0 ||
		got.Sent[2] != 9 || got.Answered[2] != 0 || got.Answered[3] != interval+10 || got.Broken[0] != 7 {
		t.Errorf("%d from %d: %v, %v, %v", len(got.Sent), kept.Begin, got.Sent[:4], got.Answered[:4], got.Broken)
	}
}
