package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// TestMediansOfOneTarget checks that a single target has the medians of its valid runs, each with its own interval.
func TestMediansOfOneTarget(t *testing.T) {
	w := newWorld(11, "lab:native")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(bound, result.Bound, "p50")
	w.e.Cases[0].Bound = bound
	var values []float64
	for block := 1; block <= 11; block++ {
		v := 30e-6 * (1 + noise(block))
		values = append(values, v)
		run := w.add(block, rr, "lab:native", p50(v))
		run.Values = append(slices.Insert(run.Values, 0, throughput(1e9)),
			result.Value{Metric: "context-switches", Number: 7})
		w.add(block, bound, "lab:native", p50(20e-6))
	}
	w.add(3, rr, "lab:native", p50(1)).Invalid = []result.Warning{{Code: "away", Text: "the machine was away"}}
	again := w.add(3, rr, "lab:native", p50(values[2]))
	again.Attempt = 2

	c := compare(t, w, nil)
	if len(c.Comparisons) != 0 || c.Summary != "2 cases measured on lab:native, which is compared with nothing." {
		t.Errorf("%d comparisons, %s", len(c.Comparisons), c.Summary)
	}
	var names []string
	for _, m := range c.Medians {
		names = append(names, m.Case+" "+m.Metric)
	}
	if want := []string{rr + " p50", rr + " throughput", bound + " p50"}; !slices.Equal(names, want) {
		t.Fatalf("%q, not %q: what has no better and no worse is left out, and a case's own metric is first", names, want)
	}
	m := c.Medians[0]
	lo, hi := stats.QuantileInterval(values, 0.5, 0.95)
	if m.Runs != 11 || float64(m.Median) != stats.Median(values) ||
		m.CI != (Interval{lo, hi}) || m.Level != 0.95 || m.Role != result.Primary {
		t.Errorf("%+v, not %g in [%g, %g]", m, stats.Median(values), lo, hi)
	}
	if u := m.UpperBound; u == nil || u.Case != bound ||
		math.Abs(float64(u.TargetShare)-20e-6/stats.Median(values)) > 1e-12 {
		t.Errorf("upper bound %+v", u)
	}
	if c.Medians[1].UpperBound != nil || c.Medians[2].UpperBound != nil {
		t.Error("another metric, or a bound, has a share of a bound")
	}
}

// TestMediansOfFewRuns checks that few runs have a median without interval, and that comparisons have no medians.
func TestMediansOfFewRuns(t *testing.T) {
	w := newWorld(5, "lab:native")
	w.addCase(rr, result.Exploratory, "p50")
	for block := 1; block <= 5; block++ {
		w.add(block, rr, "lab:native", p50(30e-6))
	}
	if m := compare(t, w, nil).Medians; len(m) != 1 || m[0].CI.Bounded() {
		t.Errorf("%+v", m)
	}
	if m := compare(t, typical(), labFacts()).Medians; len(m) != 0 {
		t.Errorf("%d medians beside comparisons", len(m))
	}
}

// TestMediansThatDrift checks that drift of a single target is a warning, and that noise is not taken for drift.
func TestMediansThatDrift(t *testing.T) {
	w := newWorld(8, "lab:native")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(bound, result.Bound, "p50")
	for block := 1; block <= 8; block++ {
		w.add(block, rr, "lab:native", p50(30e-6*float64(1+block)))
		w.add(block, bound, "lab:native", p50(20e-6*(1+noise(block))))
	}
	if c := compare(t, w, nil); !contains(c.Warnings, Warning{Code: Trend, Cases: []string{rr}}) {
		t.Errorf("%+v", c.Warnings)
	}
}
