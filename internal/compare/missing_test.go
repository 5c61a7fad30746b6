package compare

import (
	"maps"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// withMissingPairs returns an experiment with looks after 8, 11 and 15 blocks, of which the given number exist. The
// second target is slower by a tenth; the p99 of some of its blocks is missing.
func withMissingPairs(blocks int, without ...int) *world {
	w := newWorld(15, "a", "b")
	w.e.Design.Looks = []int{8, 11, 15}
	w.e.Gates = []string{"* p99 <= +20%"}
	w.addCase(rr, result.Primary, "p50")
	for b := 1; b <= blocks; b++ {
		for i, target := range w.e.Targets {
			slower := (1 + 0.1*float64(i)) * (1 + noise(2*b+i))
			r := w.add(b, rr, target.Name, p50(1e-4*slower))
			if i == 0 || !slices.Contains(without, b) {
				r.Values = append(r.Values, result.Value{Metric: "p99",
					Unit: unit.Second, Better: metric.Lower, Number: 2e-4 * slower})
			}
		}
	}
	return w
}

// TestLooksAreAfterPairs checks that looks count pairs: seven of eight pairs reach no look, ten of eleven the one after
// eight.
func TestLooksAreAfterPairs(t *testing.T) {
	p99 := func(c Comparison) Row {
		return c.Comparisons[slices.IndexFunc(c.Comparisons, func(r Row) bool { return r.Metric == "p99" })]
	}
	tests := []struct {
		name    string
		w       *world
		goesOn  bool
		pairs   int // that the interval is of
		ofPairs int // of the warning about pairs after the look; 0 without one
		outcome Outcome
	}{
		{"all", withMissingPairs(8), false, 8, 0, Passed},
		{"before the first look", withMissingPairs(8, 3), true, 7, 0, Passed}, // it ended: a last look
		{"at the second look", withMissingPairs(11, 3), false, 8, 10, Passed},
		{"none before the second look", withMissingPairs(11, 1, 2, 3, 4), true, 7, 0, Passed},
		{"at the last look", withMissingPairs(15, 3, 4, 5, 6, 7, 8, 9), false, 8, 0, Passed},
		{"at the last look, between looks", withMissingPairs(15, 1, 2, 3, 4, 5, 6), false, 9, 0, Passed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stopping, err := Stopping(tt.w.e)
			if err != nil {
				t.Fatal(err)
			}
			done := tt.w.runs[len(tt.w.runs)-1].Block
			if names := stopping(tt.w.e, done, tt.w.runs); len(names) > 0 != tt.goesOn {
				t.Errorf("after %d blocks go on: %q", done, names)
			}
			c := compare(t, tt.w, nil)
			r := p99(c)
			if r.Blocks != tt.pairs || !r.CI.Bounded() || warned(r.Warnings, PairsPastLook) != (tt.ofPairs > 0) ||
				tt.ofPairs > 0 && !contains(r.Warnings, Warning{Code: PairsPastLook, Count: tt.pairs, Of: tt.ofPairs}) {
				t.Errorf("%d pairs, %+v, %+v", r.Blocks, r.CI, r.Warnings)
			}
			if c.Gates[0].Outcome != tt.outcome {
				t.Errorf("%s", c.Gates[0].Sentence)
			}
		})
	}
}

// TestBlockThatIsCutOff checks that a comparison uses an incomplete block if both sides have a valid run in it.
func TestBlockThatIsCutOff(t *testing.T) {
	w := sequential("a", "b", "c")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(stream, result.Primary, "p50")
	w.measure(rr, 1, 9, 0.3, 1, 1)
	w.measure(stream, 1, 9, 0.3, 1, 1)
	w.runs = w.runs[:len(w.runs)-1] // the last is of stream on c, in block 9
	pairs := map[string]int{}
	for _, r := range compare(t, w, nil).Comparisons {
		pairs[r.Case+" "+r.Target] = r.Blocks
	}
	if want := map[string]int{rr + " b": 9, rr + " c": 9, stream + " b": 9, stream + " c": 8}; !maps.Equal(pairs, want) {
		t.Errorf("%v, want %v", pairs, want)
	}
}

// TestDecidedWithoutALook checks that a metric that had reached no look when its case was decided has an estimate and
// no interval.
func TestDecidedWithoutALook(t *testing.T) {
	w := withMissingPairs(8, 3)
	w.e.Gates = nil
	r := compare(t, w, nil).Comparisons[1]
	if r.Metric != "p99" || r.Blocks != 7 || r.CI.Bounded() || r.Verdict != Undecided ||
		!r.Change.Known() || !warned(r.Warnings, Unbounded) {
		t.Errorf("%+v", r)
	}
}
