package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An ailing target reports failures of the places of one site.
type ailing struct {
	targets.Target
	sites int
	at    int      // the site that fails, from 1
	calls []string // "health" and "close", in the order of the calls
}

func (a *ailing) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	s, err := a.Target.Open(ctx, placements)
	a.sites++
	n, remove := a.sites, s.Close
	for i := range s.Places {
		s.Places[i].Health = func(context.Context) []string {
			a.calls = append(a.calls, "health")
			if n != a.at {
				return nil
			}
			return []string{"pod x was evicted", "node y was under MemoryPressure"}
		}
	}
	s.Close = func(ctx context.Context) error {
		a.calls = append(a.calls, "close")
		return remove(ctx)
	}
	return s, err
}

// makeLastAiling replaces the target that is measured last in the first block by an ailing one.
func (b *bench) makeLastAiling() (string, *ailing) {
	ill := runner.Schedule(b.config.Experiment, 1)[1].Targets[1]
	sick := &ailing{Target: b.twins[ill]}
	for i, c := range b.config.Targets {
		if c.Name == ill {
			b.config.Targets[i].Places = sick
		}
	}
	return ill, sick
}

// TestPlacesThatFail checks that a failure of a place makes the run invalid, and the whole block is measured again in
// fresh sites.
func TestPlacesThatFail(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr")
	b.withoutBounds()
	ill, sick := b.makeLastAiling()
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		if call == 4 {
			sick.at = 1
		}
		return "", nil
	}
	s := b.run(t.Context())
	if s.Runs != 4+4+3 || s.Invalid[ill] != 1 || s.Stopped != runner.StopComplete {
		t.Errorf("%+v", s)
	}
	bad := b.sink.runs[3]
	if bad.Valid() || len(bad.Values) == 0 ||
		strings.Join(result.Texts(bad.Invalid), "; ") != "pod x was evicted; node y was under MemoryPressure" {
		t.Errorf("%+v", bad)
	}
	for _, r := range b.sink.runs[4:8] {
		if r.Block != 1 || r.Attempt != 2 || r.Site <= bad.Site {
			t.Errorf("the block was not measured again in other sites: %+v", r)
		}
	}
	again := strings.Repeat("health health close ", 3)
	if got := strings.Join(sick.calls, " "); got != strings.TrimSpace(again) {
		t.Errorf("the order of calls is %s", got)
	}
}

// TestPlacesThatFailAndThenARun checks that complete cases are measured again too after a place was lost. Only the last
// attempt counts, so if it fails there must be another one.
func TestPlacesThatFailAndThenARun(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr")
	b.withoutBounds()
	_, sick := b.makeLastAiling()
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		switch call {
		case 4:
			sick.at = 1
		case 5:
			return "", errors.New("no connection")
		}
		return "", nil
	}
	if s := b.run(t.Context()); s.Stopped != runner.StopComplete {
		t.Errorf("%+v", s)
	}
	counts, valid := result.LastAttempts(b.sink.runs), map[string]int{}
	for _, r := range b.sink.runs {
		if r.Valid() && counts(&r) {
			valid[r.Case]++
		}
	}
	for _, c := range b.config.Experiment.Cases {
		if valid[c.Name] != 2 {
			t.Errorf("%s has %d runs that count, want 2", c.Name, valid[c.Name])
		}
	}
}

// A spender is a target that reports the cost of a site once the site is closed.
type spender struct {
	targets.Target
	closed bool
}

func (p *spender) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	s, err := p.Target.Open(ctx, placements)
	remove := s.Close
	p.closed = false
	s.Close = func(ctx context.Context) error {
		p.closed = true
		return remove(ctx)
	}
	s.Spent = func() []result.Value {
		if !p.closed {
			return nil
		}
		return []result.Value{{Metric: "api-calls", Unit: unit.Count, Number: 12}}
	}
	return s, err
}

// TestSitesTellWhatTheyTook checks that the cost of a site is read after its removal and recorded with the site.
func TestSitesTellWhatTheyTook(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	for i, c := range b.config.Targets {
		b.config.Targets[i].Places = &spender{Target: c.Places}
	}
	b.run(t.Context())
	if len(b.sink.sites) != 2 {
		t.Fatalf("%d sites", len(b.sink.sites))
	}
	for _, s := range b.sink.sites {
		if len(s.Values) != 1 || s.Values[0].Metric != "api-calls" || s.Values[0].Number != 12 {
			t.Errorf("%+v", s)
		}
	}
}

// TestSleep checks that a block during which the machine slept is measured again in fresh sites.
func TestSleep(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr")
	b.withoutBounds()
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		if call == 3 {
			b.clock.mu.Lock()
			defer b.clock.mu.Unlock()
			b.clock.asleep += 20 * time.Second
		}
		return "", nil
	}
	s := b.run(t.Context())
	if s.Runs != 2+4+4 || s.Stopped != runner.StopComplete {
		t.Errorf("%+v", s)
	}
	bad := b.sink.runs[2]
	if bad.Valid() || bad.Invalid[0].Text != "this machine slept for 20 s since the block began" {
		t.Errorf("%+v", bad)
	}
	for _, r := range b.sink.runs[3:7] {
		if r.Block != 1 || !r.Valid() || r.Site <= bad.Site {
			t.Errorf("the block was not measured again in other sites: %+v", r)
		}
	}
}
