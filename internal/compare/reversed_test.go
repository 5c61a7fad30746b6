package compare

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestReversed checks that a reversed row equals the comparison with the baseline exchanged.
func TestReversed(t *testing.T) {
	there, back := pairsWorld("a", "b"), pairsWorld("b", "a")
	got, want := compare(t, there, nil).Comparisons[0].Reversed(0.02), compare(t, back, nil).Comparisons[0]
	near := func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }
	if got.Baseline != "b" || got.Target != "a" || got.Verdict != want.Verdict || got.Verdict != Different ||
		got.Direction != want.Direction ||
		got.BaselineMedian != want.BaselineMedian || got.TargetMedian != want.TargetMedian ||
		!near(float64(got.Change), float64(want.Change)) || !near(got.CI.Lo, want.CI.Lo) || !near(got.CI.Hi, want.CI.Hi) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	none := Row{Change: Missing(), CI: unbounded()}.Reversed(0.02)
	if none.Change.Known() || none.CI != unbounded() {
		t.Errorf("without an interval: %+v", none)
	}
	shift := Row{Change: Missing(), CI: unbounded(), Shift: &Shift{2, Interval{1, 4}}}.Reversed(0.02).Shift
	if *shift != (Shift{-2, Interval{-4, -1}}) {
		t.Errorf("%+v", shift)
	}
	few := Row{Verdict: Undecided, CI: Interval{0.1, 0.2},
		Warnings: []Warning{{Code: WideSpread}, {Code: FewRuns, Count: 3, Of: 9, Needed: 6}}}
	if w, withheld := few.Reversed(0.02).Withheld(); !withheld || w.Count != 9 || w.Of != 3 {
		t.Errorf("reversed, the reason to withhold a verdict is %+v", w)
	}
	slightly := Row{Verdict: Equivalent, Direction: WorseThan, CI: Interval{-0.0199, -0.001}}
	if r := slightly.Reversed(0.02); r.Verdict != Different || r.Direction != BetterThan {
		t.Errorf("[-0.0199, -0.001] reversed is %s, %s", r.Verdict, r.Direction)
	}
	for lo, want := range map[float64]Verdict{-0.01: Equivalent, -0.0199: Undecided} {
		if r := (Row{Verdict: Equivalent, CI: Interval{lo, 0.01}}).Reversed(0.02); r.Verdict != want {
			t.Errorf("[%g, 0.01] reversed is %s, [%g, %g]; want %s", lo, r.Verdict, r.CI.Lo, r.CI.Hi, want)
		}
	}
}

// pairsWorld returns the same runs whichever target is the baseline.
func pairsWorld(first, second string) *world {
	w := newWorld(11, first, second)
	w.addCase("pod-pod/other/tcp-rr", result.Primary, "p50")
	values := map[string]float64{"a": 1e-4, "b": 1.3e-4}
	for b := 1; b <= 11; b++ {
		for k, name := range []string{"a", "b"} {
			w.add(b, "pod-pod/other/tcp-rr", name, p50(values[name]*(1+noise(2*b+k))))
		}
	}
	return w
}
