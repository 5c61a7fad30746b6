package compare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

// withInvalidRuns returns an experiment of some cases on three targets; of each case the given number of runs of each
// target is invalid.
func withInvalidRuns(cases int, lost ...int) *world {
	w := newWorld(11, "a", "b", "c")
	for i := range cases {
		name := fmt.Sprint("pod-pod/other/case", i)
		w.addCase(name, result.Primary, "p50")
		for b := 1; b <= 11; b++ {
			for k, target := range w.e.Targets {
				r := w.add(b, name, target.Name, p50(1e-4*(1+noise(b+k))))
				if b <= lost[k] {
					r.Invalid = []result.Warning{{Code: result.AgentFailed, Text: "the agent died"}}
				}
			}
		}
	}
	return w
}

func TestLossesOnOneSide(t *testing.T) {
	loss := func(i, a, b, c int) Warning {
		return Warning{Code: OneSidedInvalid, Cases: []string{fmt.Sprint("pod-pod/other/case", i)},
			Counts: []TargetCount{{"a", a, 11}, {"b", b, 11}, {"c", c, 11}}}
	}
	var eight []string
	for i := range 8 {
		eight = append(eight, fmt.Sprint("pod-pod/other/case", i))
	}
	tests := []struct {
		name string
		w    *world
		want []Warning
	}{
		{"a single run", withInvalidRuns(1, 0, 1, 0), []Warning{loss(0, 0, 1, 0)}},
		{"the baseline's", withInvalidRuns(1, 2, 1, 0), []Warning{loss(0, 2, 1, 0)}},
		{"a warning each", withInvalidRuns(2, 0, 0, 1), []Warning{loss(0, 0, 0, 1), loss(1, 0, 0, 1)}},
		{"one for many", withInvalidRuns(8, 0, 0, 1), []Warning{{Code: OneSidedInvalidIn, Cases: eight}}},
		{"all sides", withInvalidRuns(1, 1, 1, 2), nil},
		{"no side", withInvalidRuns(1, 0, 0, 0), nil},
		{"nothing is left to compare", withInvalidRuns(1, 0, 0, 11), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			theirs := *tt.w
			theirs.e.Imported = "csv"
			for _, w := range []*world{tt.w, &theirs} {
				var got []Warning
				for _, w := range compare(t, w, nil).Warnings {
					if w.Code == OneSidedInvalid || w.Code == OneSidedInvalidIn {
						got = append(got, w)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestLossesInOneOfTwoExperiments(t *testing.T) {
	before, after := withInvalidRuns(1, 0, 0, 0), withInvalidRuns(1, 0, 1, 0)
	before.e.ID, after.e.ID = "before", "after"
	c, err := compareSeveral(results(before), results(after))
	if err != nil {
		t.Fatal(err)
	}
	want := []TargetCount{{"b (before)", 0, 11}, {"b (after)", 1, 11}}
	if !slices.ContainsFunc(c.Warnings, func(w Warning) bool {
		return w.Code == OneSidedInvalid && slices.Contains(w.Counts, want[0]) && slices.Contains(w.Counts, want[1])
	}) {
		t.Errorf("%+v", c.Warnings)
	}
}
