package compare

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestStepOf(t *testing.T) {
	for _, c := range []struct {
		known, a, b []float64
		want        float64
	}{
		{nil, []float64{1, 2, 3}, []float64{1.5, 2.5, 3.5}, 0},
		{[]float64{0.03, 0.03, 0.2}, []float64{1, 2, 3}, []float64{1.5, 2.5, 3.5}, 0.03},
		{nil, []float64{100, 100, 125}, []float64{125, 150, 150}, 0.2},
		{nil, []float64{40, 40, 40}, []float64{40, 40, 40}, unknownStep},
		{nil, []float64{40}, []float64{40}, 0}, // too few to see a grid
		{nil, []float64{0, 0, 0}, []float64{0, 0, 0}, 0},
	} {
		if got := stepOf(c.known, c.a, c.b); got-c.want > 1e-9 || c.want-got > 1e-9 {
			t.Errorf("%v, %v, %v: %g, want %g", c.known, c.a, c.b, got, c.want)
		}
	}
}

// TestStepsWiden checks a metric on a grid of 5 %: runs on the same rate are not equivalent, and runs on neighbouring
// rates are not different.
func TestStepsWiden(t *testing.T) {
	for ratio, want := range map[float64]Verdict{1: Undecided, 1.05: Undecided, 1.5: Different} {
		w := newWorld(11, "a", "b")
		w.addCase(stream, result.Primary, "throughput")
		w.e.Gates = []string{"* >= -2%"}
		for b := 1; b <= 11; b++ {
			grid := []float64{100, 105}[b%2] * 1e6
			w.add(b, stream, "a", result.Value{Metric: "throughput", Unit: unit.BitPerSecond, Better: "higher", Number: grid})
			w.add(b, stream, "b", result.Value{Metric: "throughput", Unit: unit.BitPerSecond, Better: "higher",
				Number: grid * ratio})
		}
		c := compare(t, w, nil)
		if r := c.Comparisons[0]; r.Verdict != want || !warned(r.Warnings, CoarseStep) {
			t.Errorf("%g: %s %v, %+v", ratio, r.Verdict, r.CI, r.Warnings)
		}
		if g := c.Gates[0]; (g.Outcome == Passed) != (ratio > 1) {
			t.Errorf("%g: %s", ratio, g.Sentence)
		}
	}
}
