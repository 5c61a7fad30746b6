package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTrendP compares with the distribution over all orders, and checks that the normal approximation continues it.
func TestTrendP(t *testing.T) {
	for _, n := range []int{3, 4, 6, 7} {
		counts, orders := map[int]int{}, 0
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i)
		}
		permute(values, n, func() { counts[kendall(values)]++; orders++ })
		permute(values, n, func() {
			extreme := 0
			s := kendall(values)
			for other, number := range counts {
				if other >= max(s, -s) || other <= -max(s, -s) {
					extreme += number
				}
			}
			if got, want := TrendP(values), math.Min(1, float64(extreme)/float64(orders)); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%v: p %g, not %g", values, got, want)
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		values := make([]float64, exactTrend+1)
		for i := range values {
			values[i] = random.NormFloat64() + 0.03*float64(i)
		}
		exact := 0.0
		s, pairs := kendall(values), len(values)*(len(values)-1)/2
		for _, p := range inversions(len(values))[:(pairs-max(s, -s))/2+1] {
			exact += 2 * p
		}
		if got := TrendP(values); math.Abs(got-math.Min(1, exact)) > 0.003 {
			t.Errorf("41 values with S = %d: p %g by the normal distribution, %g exactly", s, got, exact)
		}
	}
}

func TestTrendPOfWhatHasNone(t *testing.T) {
	for _, values := range [][]float64{nil, {1}, {1, 2}, {5, 5, 5, 5, 5, 5}, {math.NaN(), 1, math.Inf(1), 2}} {
		if p := TrendP(values); p != 1 {
			t.Errorf("%v: p %g", values, p)
		}
	}
	rising := []float64{1, 2, 3, 4, 5, 6}
	falling := slices.Clone(rising)
	slices.Reverse(falling)
	if p, q := TrendP(rising), TrendP(falling); p != q || math.Abs(p-2.0/720) > 1e-15 {
		t.Errorf("six in order: %g and %g, not 2 / 720", p, q)
	}
}

func kendall(values []float64) int {
	s := 0
	for i, x := range values {
		for _, y := range values[i+1:] {
			if y > x {
				s++
			} else if y < x {
				s--
			}
		}
	}
	return s
}

// permute calls each for every order of the first n values (Heap's algorithm).
func permute(values []float64, n int, each func()) {
	if n <= 1 {
		each()
		return
	}
	for i := range n {
		permute(values, n-1, each)
		if n%2 == 0 {
			values[i], values[n-1] = values[n-1], values[i]
		} else {
			values[0], values[n-1] = values[n-1], values[0]
		}
	}
}

// TestTrendPOfSeveralSeries compares with the distribution over all orders within two series, and checks that a trend
// that both have counts more than that of either, and one that only one side of the gap between them has does not
// count.
func TestTrendPOfSeveralSeries(t *testing.T) {
	first, second := []float64{1, 2, 3, 4}, []float64{10, 20, 30}
	counts, orders := map[int]int{}, 0
	permute(first, 4, func() {
		permute(second, 3, func() { counts[kendall(first)+kendall(second)]++; orders++ })
	})
	a, b := []float64{2, 1, 3, 4}, []float64{30, 31, 32}
	extreme := 0
	for s, number := range counts {
		if s >= 7 || s <= -7 {
			extreme += number
		}
	}
	if got, want := TrendP(a, b), float64(extreme)/float64(orders); math.Abs(got-want) > 1e-12 {
		t.Errorf("p %g, not %g", got, want)
	}
	if both := TrendP(a, b); both >= TrendP(a) || both >= TrendP(b) {
		t.Errorf("two rising series have p %g, one alone %g and %g", both, TrendP(a), TrendP(b))
	}
	if p := TrendP([]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}); p != 1 {
		t.Errorf("opposite trends have p %g", p)
	}
}

// TestInflation compares the factor with that of a known correlation, and checks that a shift between series is none.
func TestInflation(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, correlation := range []float64{0, 0.3, 0.6} {
		var x, y []float64
		level := 0.0
		for i := range 4000 {
			level = correlation*level + math.Sqrt(1-correlation*correlation)*random.NormFloat64()
			if i < 2000 {
				x = append(x, level)
			} else {
				y = append(y, level+50)
			}
		}
		want := math.Sqrt((1 + correlation) / (1 - correlation))
		if got := Inflation(x, y); math.Abs(got-want) > 0.1 {
			t.Errorf("correlation %g: %g, not %g", correlation, got, want)
		}
	}
	for _, x := range [][]float64{nil, {1}, {2, 2, 2, 2}, {1, 2, 1, 2, 1, 2}, {math.NaN(), 1}} {
		if f := Inflation(x, x); f != 1 {
			t.Errorf("%v: %g", x, f)
		}
	}
}
