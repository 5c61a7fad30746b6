package stats

import "math"

// exactTrend is the largest sample for which the exact distribution is used.
const exactTrend = 40

// TrendP returns the two-sided p of the hypothesis that values in the order of time have no trend: Mann's test by
// Kendall's S, the number of rising pairs minus that of falling pairs (Mann, Nonparametric Tests against Trend,
// Econometrica 13, 1945). Several series are tested for a common trend, by the sum of S over all of them; pairs are
// within a series. Up to 40 values each the distribution is exact; above that it is normal with continuity correction.
// Ties, including those that [EqualiseRounding] creates, count as neither, which is conservative. Values that are not
// finite are left out; if all series have fewer than three the result is 1.
func TrendP(series ...[]float64) float64 {
	s, pairs, longest, variance := 0, 0, 0, 0.0
	null := []float64{1}
	for _, values := range EqualiseRounding(series...) {
		values, _ = finite(values)
		n := len(values)
		s += rising(values)
		pairs, longest = pairs+n*(n-1)/2, max(longest, n)
		variance += float64(n) * float64(n-1) * float64(2*n+5) / 18
		if n > 1 && n <= exactTrend {
			null = convolve(null, inversions(n))
		}
	}
	switch {
	case longest < 3:
		return 1
	case longest > exactTrend:
		return twoSidedNormal(float64(s), 1, variance)
	}
	// |S| is the number of pairs minus twice the number of inversions.
	return math.Min(1, 2*sum(null[:(pairs-max(s, -s))/2+1]))
}

// rising returns the number of rising pairs minus that of falling pairs.
func rising(values []float64) (s int) {
	for i, x := range values {
		for _, y := range values[i+1:] {
			switch {
			case y > x:
				s++
			case y < x:
				s--
			}
		}
	}
	return s
}

// convolve returns the distribution of the sum of two independent numbers.
func convolve(a, b []float64) []float64 {
	all := make([]float64, len(a)+len(b)-1)
	for i, p := range a {
		for k, q := range b {
			all[i+k] += p * q
		}
	}
	return all
}

// inversions returns the probability of each number of inversions in a random order of n values. It extends the
// distribution for n - 1 values by 0 to n - 1 further inversions, each equally likely.
func inversions(n int) []float64 {
	list := []float64{1}
	for size := 2; size <= n; size++ {
		next := make([]float64, size*(size-1)/2+1)
		for i, p := range list {
			for more := range size {
				next[i+more] += p / float64(size)
			}
		}
		list = next
	}
	return list
}
