package compare

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// referenceWorld returns an experiment of a latency with a reference on three targets; latencies in µs.
func referenceWorld(reference float64, targets ...float64) *world {
	w := newWorld(8, []string{"a", "b", "c"}[:len(targets)]...)
	w.addCase(rr, result.Primary, "p50")
	w.addCase(bound, result.Bound, "p50")
	w.e.Cases[0].Bound = bound
	for b := 1; b <= 8; b++ {
		for i, us := range targets {
			w.add(b, rr, w.e.Targets[i].Name, p50(us*1e-6))
		}
		w.add(b, bound, "a", p50(reference*1e-6))
	}
	return w
}

// TestReferenceThatIsExceeded checks that a reference exceeded by more than delta is no limit for any target of the
// case.
func TestReferenceThatIsExceeded(t *testing.T) {
	tests := []struct {
		name   string
		w      *world
		by     float64 // 0 if it is not exceeded
		faster string
	}{
		{"not reached", referenceWorld(20, 40, 30, 25), 0, ""},
		{"by less than delta", referenceWorld(20, 40, 19.7, 25), 0, ""},
		{"by one target", referenceWorld(20, 40, 30, 10), 1, "c"},
		{"by several", referenceWorld(36.21, 40, 18, 1), 35.21, "c"},
		{"by the baseline", referenceWorld(20, 16, 30, 25), 0.25, "a"},
		{"by a single target", referenceWorld(20, 10), 1, "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := compare(t, tt.w, nil)
			var references []*UpperBound
			for _, r := range c.Comparisons {
				references = append(references, r.UpperBound)
			}
			for _, m := range c.Medians {
				if m.Case == rr {
					references = append(references, m.UpperBound)
				}
			}
			if len(references) != max(1, len(tt.w.e.Targets)-1) {
				t.Fatalf("%d references", len(references))
			}
			for _, b := range references {
				if diff := float64(b.ExceededBy) - tt.by; diff > 1e-9 || diff < -1e-9 || b.Faster != tt.faster ||
					b.TargetShare.Known() != (tt.by == 0) || b.BaselineShare.Known() != (tt.by == 0) {
					t.Errorf("%+v", *b)
				}
			}
		})
	}
}

// TestReferenceOfEachUnderlay checks that a target's share is that of the reference on its own underlay, and missing if
// that was not measured.
func TestReferenceOfEachUnderlay(t *testing.T) {
	w := referenceWorld(20, 40, 50, 100)
	w.e.Targets[1].Underlay, w.e.Targets[2].Underlay = "", "another"
	for b := 1; b <= 8; b++ {
		w.add(b, bound, "c", p50(80e-6))
	}
	c := compare(t, w, nil)
	for i, want := range []struct{ median, share float64 }{{math.NaN(), math.NaN()}, {80e-6, 0.8}} {
		b := c.Comparisons[i].UpperBound
		median, share := float64(b.TargetMedian), float64(b.TargetShare)
		same := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 || math.IsNaN(x) && math.IsNaN(y) }
		if !same(float64(b.Median), 20e-6) || !same(float64(b.BaselineShare), 0.5) || !same(median, want.median) ||
			!same(share, want.share) {
			t.Errorf("%s: %+v", c.Comparisons[i].Target, *b)
		}
	}
}
