package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestEarlyBias checks the factors that docs/method.md gives for the bias of estimates of comparisons that ended before
// their last look, and of those that ended at the first look that can decide.
func TestEarlyBias(t *testing.T) {
	looks := []int{8, 11, 15, 21, 30}
	design, err := NewGroupSequential(looks)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ truth, early, first float64 }{{0.5, 1.58, 1.92}, {1, 1.08, 1.22}} {
		random := rand.New(rand.NewPCG(1, 2))
		var sum, n, firstSum, firstN float64
		for range 2000 {
			d := make([]float64, 30)
			for i := range d {
				d[i] = test.truth + random.NormFloat64()
			}
			for i, look := range looks[:4] {
				e := Paired(d[:look], 0.05, design)
				if !e.Excludes(0) {
					continue
				}
				sum, n = sum+e.Shift/test.truth, n+1
				if i == 0 {
					firstSum, firstN = firstSum+e.Shift/test.truth, firstN+1
				}
				break
			}
		}
		early, first := sum/n, firstSum/firstN
		t.Logf("truth %g: %.3f of %g, at the first look %.3f of %g", test.truth, early, n, first, firstN)
		if math.Abs(early-test.early) > 0.05 || math.Abs(first-test.first) > 0.08 {
			t.Errorf("truth %g: biased by %.3f, at the first look by %.3f", test.truth, early, first)
		}
	}
}
