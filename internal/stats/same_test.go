package stats

import (
	"math"
	"slices"
	"testing"
)

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b float64
		want bool
	}{
		{5000, math.Nextafter(5000, 6000), true}, {-5000, math.Nextafter(-5000, 0), true},
		{1e-9, 1e-9 * (1 + 1e-13), true}, {0, 0, true},
		{5000, 5000 * (1 + 2e-12), false}, {0, 1e-300, false}, {1, -1, false},
		{math.NaN(), math.NaN(), false}, {1, math.Inf(1), false},
	} {
		if got := Same(tt.a, tt.b); got != tt.want || Same(tt.b, tt.a) != tt.want {
			t.Errorf("Same(%v, %v) is %v", tt.a, tt.b, got)
		}
	}
}

func TestSettle(t *testing.T) {
	above := math.Nextafter(5000, 6000)
	got := EqualiseRounding([]float64{above, 7, math.NaN()}, []float64{5000, 7.1, math.Inf(1), above})
	if !slices.Equal(got[0][:2], []float64{5000, 7}) || !math.IsNaN(got[0][2]) ||
		!slices.Equal(got[1], []float64{5000, 7.1, math.Inf(1), 5000}) {
		t.Errorf("settled are %v", got)
	}
	// Values further apart than the resolution are not one value, even through intermediate ones.
	ladder := []float64{1}
	for range 20 {
		ladder = append(ladder, ladder[len(ladder)-1]*(1+resolution/3))
	}
	steps := slices.Compact(slices.Sorted(slices.Values(EqualiseRounding(ladder)[0])))
	for i := range steps[1:] {
		if Same(steps[i], steps[i+1]) || !slices.Contains(ladder, steps[i]) {
			t.Errorf("a ladder became %v", steps)
		}
	}
}
