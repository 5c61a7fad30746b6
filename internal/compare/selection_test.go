package compare

import (
	"fmt"
	"strings"
	"testing"

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
	const one = "Only one side has invalid runs: "
	tests := []struct {
		name  string
		w     *world
		words []string // of the warnings; none if there is none
	}{
		{"a single run", withInvalidRuns(1, 0, 1, 0), []string{
			one + "pod-pod/other/case0 (0 of 11 runs on a, 1 of 11 runs on b, 0 " +
				"of 11 runs on c). The runs that are left there may be the good ones"}},
		{"the baseline's", withInvalidRuns(1, 2, 1, 0), []string{
			one + "pod-pod/other/case0 (2 of 11 runs on a, 1 of 11 runs on b, " +
				"0 of 11 runs on c)"}},
		{"a warning each", withInvalidRuns(2, 0, 0, 1), []string{
			one + "pod-pod/other/case0 (", one + "pod-pod/other/case1 ("}},
		{"one for many", withInvalidRuns(8, 0, 0, 1), []string{
			"In 8 cases only one side has invalid runs: pod-pod/other/case0, " +
				"pod-pod/other/case1, "}},
		{"all sides", withInvalidRuns(1, 1, 1, 2), nil},
		{"no side", withInvalidRuns(1, 0, 0, 0), nil},
		{"nothing is left to compare", withInvalidRuns(1, 0, 0, 11), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			theirs := *tt.w
			theirs.e.Imported = "csv"
			for _, w := range []*world{tt.w, &theirs} {
				var got []string
				for _, text := range compare(t, w, nil).Warnings {
					if strings.Contains(text, "only one side has") || strings.HasPrefix(text, one) {
						got = append(got, text)
					}
				}
				if len(got) != len(tt.words) {
					t.Fatalf("%q", got)
				}
				for i, words := range tt.words {
					if !strings.HasPrefix(got[i], words) {
						t.Errorf("%q does not begin with %q", got[i], words)
					}
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
	if !warned(c.Warnings, "0 of 11 runs on b (before), 1 of 11 runs on b (after)") {
		t.Errorf("%q", c.Warnings)
	}
}
