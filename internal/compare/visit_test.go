package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

// visitedResults returns an experiment of two targets in four blocks; b has another MTU from the third block on. Each
// visit except the failed ones has a run of its target.
func visitedResults() result.Results {
	r := result.Results{Experiment: result.Experiment{ID: "x", Baseline: "a", Targets: []result.Target{
		{Name: "a", Switch: &result.Command{}}, {Name: "b", Switch: &result.Command{}}}},
		Facts: map[string][]result.Fact{"a": {{Name: "mtu", Value: "1500"}}, "b": {{Name: "mtu", Value: "1450"}}}}
	for block, mtu := range []string{"1450", "1450", "1400", "1400"} {
		for _, s := range []result.Switch{
			{Target: "b", Failed: "no"},
			{Target: "b", Facts: []result.Fact{{Name: "mtu", Value: mtu}, {Name: "volume-free", Value: mtu}}},
			{Target: "a", Facts: []result.Fact{{Name: "mtu", Value: "1500"}}},
		} {
			s.Number, s.Block = len(r.Switches)+1, block+1
			r.Switches = append(r.Switches, s)
			if s.Failed == "" {
				r.Runs = append(r.Runs, result.Run{Target: s.Target, Block: s.Block, Visit: s.Number, Attempt: 1})
			}
		}
	}
	r.Switches = append(r.Switches, result.Switch{Number: len(r.Switches) + 1})
	return r
}

// TestVisits checks that changes between visits are reported like changes between sessions.
func TestVisits(t *testing.T) {
	want := []Visit{{
		Experiment: "x", Number: 8, Target: "b", Block: 3, Changes: []Change{{"b", "mtu", "1450", "1400"}},
		Sentence: "Conditions changed between the visits of blocks 2 and 3: mtu from 1450 to 1400 on b. The verdicts rest " +
			"on the runs of both.",
	}}
	r := visitedResults()
	if diff := cmp.Diff(want, visitsOf(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	facts := map[string][]result.Fact{"a": {{Name: "mtu", Value: "1500"}},
		"b": {{Name: "mtu", Value: "1450, from block 3 on 1400"}}}
	if diff := cmp.Diff(facts, FactsOverSessions(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range r.Switches {
		r.Switches[i].Facts = []result.Fact{{Name: "mtu", Value: string(rune('a' + i))}}
	}
	r.Facts["b"] = []result.Fact{{Name: "mtu", Value: "b"}}
	grown := "b, from block 2 on e, from block 3 on h, from block 4 on k"
	if got := result.FactOf(FactsOverSessions(r)["b"], "mtu"); got != grown {
		t.Errorf("%q", got)
	}
}

// TestAttemptsInTurn checks that targets measured in turn have separate attempts: a repeated run of one target is
// paired with the only run of the other.
func TestAttemptsInTurn(t *testing.T) {
	e := result.Experiment{Targets: []result.Target{{Name: "a"}, {Name: "b"}}, Cases: []result.Case{{Name: "c"}}}
	at := newRunTable(e, []result.Run{
		{ID: "1", Case: "c", Target: "b", Block: 1, Attempt: 1, Visit: 1, Invalid: []result.Warning{{}}},
		{ID: "2", Case: "c", Target: "b", Block: 1, Attempt: 2, Visit: 1},
		{ID: "3", Case: "c", Target: "a", Block: 1, Attempt: 1, Visit: 2},
	})
	a, b := at.valid("c", "a"), at.valid("c", "b")
	if a[1] == nil || a[1].ID != "3" || b[1] == nil || b[1].ID != "2" || len(at.warnings) != 0 {
		t.Errorf("%+v, %+v, %+v", a, b, at.warnings)
	}
}
