package compare

import (
	"math"
	"testing"
)

func TestMoments(t *testing.T) {
	if m := MomentsOf([]float64{1, 2, 3, 6}); m.Runs != 4 || m.Mean != 3 || math.Abs(float64(m.Variance)-14.0/3) > 1e-12 {
		t.Errorf("%+v", m)
	}
	if m := MomentsOf([]float64{2}); m.Mean != 2 || m.Variance.Known() {
		t.Errorf("%+v", m)
	}
	if m := MomentsOf(nil); m.Mean.Known() || m.Variance.Known() {
		t.Errorf("%+v", m)
	}
}
