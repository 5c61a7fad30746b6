package stats

import "math"

// exactTrend is the largest sample for which the exact distribution is used.
const exactTrend = 40

// TrendP returns the two-sided p of the hypothesis that values in the order of time have no trend: Mann's test by
// Kendall's S, the number of rising pairs minus that of falling pairs (Mann, Nonparametric Tests against Trend,
// Econometrica 13, 1945). Up to 40 values the distribution is exact; above that it is normal with continuity
// correction. Ties, including those that [EqualiseRounding] creates, count as neither, which is conservative. Values
// that are not finite are left out; with fewer than three the result is 1.
func TrendP(values []float64) float64 {
	values, _ = finite(EqualiseRounding(values)[0])
	n := len(values)
	if n < 3 {
		return 1
	}
	s := 0
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
	if n > exactTrend {
		return twoSidedNormal(float64(s), 1, float64(n)*float64(n-1)*float64(2*n+5)/18)
	}
	// |S| is the number of pairs minus twice the number of inversions.
	pairs := n * (n - 1) / 2
	return math.Min(1, 2*sum(inversions(n)[:(pairs-max(s, -s))/2+1]))
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
