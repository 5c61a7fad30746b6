package stats

import (
	"math"
	"testing"
)

func TestBinomialAtMost(t *testing.T) {
	for _, test := range []struct {
		k, n int
		p    float64
		want float64
	}{
		{-1, 10, 0.5, 0}, {10, 10, 0.5, 1}, {0, 10, 0, 1}, {3, 10, 1, 0}, {5, 11, 0.5, 0.5}, {0, 3, 0.5, 0.125},
		{2, 20, 0.1, 0.676926806189}, {0, 299, 0.01, math.Pow(0.99, 299)},
	} {
		if got := BinomialAtMost(test.k, test.n, test.p); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("P(X ≤ %d | %d, %g) = %.12f, want %.12f", test.k, test.n, test.p, got, test.want)
		}
	}
	// With many trials, compared with the normal distribution.
	if got := BinomialAtMost(10_000, 1_000_000, 0.01); math.Abs(got-0.5) > 0.01 {
		t.Errorf("at the mean %g", got)
	}
}
