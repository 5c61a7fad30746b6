package stats

import (
	"math"
	"testing"
)

// TestStudentQuantile compares with quantiles of printed tables.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ p, freedom, want float64 }{
		{0.975, 1, 12.7062}, {0.025, 3, -3.1824},
		{0.975, 5, 2.5706}, {0.975, 10, 2.2281}, {0.975, 30, 2.0423}, {0.975, 197, 1.9721},
		{0.95, 8, 1.8595}, {0.5, 12, 0}, {0.995, 20, 2.8453},
	} {
		if got := StudentQuantile(c.p, c.freedom); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("t of %g with %g degrees of freedom is %g, wanted %g", c.p, c.freedom, got, c.want)
		}
	}
}
