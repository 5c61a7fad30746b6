package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// ailing is a target on which something becomes of the places of one run.
type ailing struct {
	target.Target
	opens *int
	at    int
	asked *[]string // the order in which a site is asked and closed
}

func (a ailing) Open(ctx context.Context, placements []target.Placement) (target.Site, error) {
	s, err := a.Target.Open(ctx, placements)
	*a.opens++
	n, remove := *a.opens, s.Close
	s.Places[0].Health = func(context.Context) []string {
		*a.asked = append(*a.asked, "health")
		if n != a.at {
			return nil
		}
		return []string{"pod x was evicted", "node y was under MemoryPressure"}
	}
	s.Close = func(ctx context.Context) error {
		*a.asked = append(*a.asked, "close")
		return remove(ctx)
	}
	return s, err
}

// What became of the places makes the run invalid, before they are removed, and the whole block is run again.
func TestPlacesThatFail(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.config.Experiment.Cases = b.config.Experiment.Cases[:1] // without the bound
	var opens int
	var asked []string
	for i, c := range b.config.Targets {
		b.config.Targets[i].Places = ailing{c.Places, &opens, 2, &asked}
	}
	s := b.run(t.Context())
	second := runner.Order(b.config.Experiment, b.config.Experiment.Cases[0], 1, 1)[1]
	if s.Runs != 5 || s.Invalid[second] != 1 || s.Stopped != runner.StopComplete {
		t.Errorf("%+v", s)
	}
	bad := b.sink.runs[1]
	if bad.Valid() || strings.Join(result.Texts(bad.Invalid), "; ") != "pod x was evicted; node y was under MemoryPressure" || len(bad.Values) == 0 {
		t.Errorf("%+v", bad)
	}
	if b.sink.runs[2].Block != 1 || b.sink.runs[2].Attempt != 2 {
		t.Errorf("the block was not run again: %+v", b.sink.runs[2])
	}
	if got := strings.Join(asked, " "); got != strings.TrimSpace(strings.Repeat("health close ", 6)) {
		t.Errorf("the places were asked in the order %s", got)
	}
}

// A spender is a target that tells after the removal of the places what they took.
type spender struct {
	target.Target
	closed *bool
}

func (p spender) Open(ctx context.Context, placements []target.Placement) (target.Site, error) {
	s, err := p.Target.Open(ctx, placements)
	remove := s.Close
	*p.closed = false
	s.Close = func(ctx context.Context) error {
		*p.closed = true
		return remove(ctx)
	}
	s.Spent = func() []result.Value {
		if !*p.closed {
			return nil
		}
		return []result.Value{{Metric: "api-calls", Unit: unit.Count, Number: 12}}
	}
	return s, err
}

// What a run took of its target is asked when that is over, and is among the run's values.
func TestPlacesTellWhatTheyTook(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	for i, c := range b.config.Targets {
		b.config.Targets[i].Places = spender{c.Places, new(bool)}
	}
	b.run(t.Context())
	if len(b.sink.runs) == 0 {
		t.Fatal("there are no runs")
	}
	for _, r := range b.sink.runs {
		if v, ok := r.Value("api-calls"); !ok || v.Number != 12 || len(r.Values) < 2 {
			t.Errorf("%s on %s: %v", r.Case, r.Target, r.Values)
		}
	}
}
