package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProportion compares with R's binom.test; the upper end for 0 of n is 1 - 0.025^(1/n) in closed form.
func TestProportion(t *testing.T) {
	for _, c := range []struct {
		hits, n int
		lo, hi  float64
	}{
		{0, 20, 0, 1 - math.Pow(0.025, 1.0/20)},
		{20, 20, math.Pow(0.025, 1.0/20), 1},
		{5, 10, 0.1870860, 0.8129140},
		{1, 20, 0.001265089, 0.248732763},
		{682, 925, 0.7076683, 0.7654066},
	} {
		lo, hi := Proportion(c.hits, c.n, 0.95)
		if !near(lo, c.lo, 1e-6) || !near(hi, c.hi, 1e-6) {
			t.Errorf("%d of %d: %.7f to %.7f, want %.7f to %.7f", c.hits, c.n, lo, hi, c.lo, c.hi)
		}
	}
	for _, c := range [][2]int{{1, 0}, {-1, 5}, {6, 5}} {
		if lo, hi := Proportion(c[0], c[1], 0.95); lo != 0 || hi != 1 {
			t.Errorf("%d of %d: %v to %v", c[0], c[1], lo, hi)
		}
	}
}

// TestProportionCovers checks that the interval covers the truth at least as often as its confidence requires.
func TestProportionCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trials, n, p = 2000, 50, 0.05
	held := 0
	for range trials {
		hits := 0
		for range n {
			if random.Float64() < p {
				hits++
			}
		}
		if lo, hi := Proportion(hits, n, 0.9); lo <= p && p <= hi {
			held++
		}
	}
	if float64(held)/trials < 0.9 {
		t.Errorf("%d of %d intervals hold the truth", held, trials)
	}
}
