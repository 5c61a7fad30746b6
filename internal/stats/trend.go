package stats

import "math"

// exactTrend is the largest sample whose trend is judged by the exact distribution.
const exactTrend = 40

// TrendP is the two-sided p of values in the order of time having no trend: Mann's test by Kendall's S, the number of
// pairs that rise less those that fall (Mann, Nonparametric Tests against Trend, Econometrica 13, 1945). Up to 40
// values the distribution is exact, above that normal with a correction for continuity. Ties, and what [Settle] makes
// ties, count as neither, which makes it conservative. Values that are not finite are left out; with fewer than three
// there is no trend to be seen, and it is 1.
func TrendP(values []float64) float64 {
	values, _ = finite(Settle(values)[0])
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
	// The size of S is all pairs less twice the inversions.
	pairs := n * (n - 1) / 2
	return math.Min(1, 2*sum(inversions(n)[:(pairs-max(s, -s))/2+1]))
}

// inversions is the probability of so many inversions in a random order of n values, by their number: that of n - 1
// values, and evenly from 0 to n - 1 more.
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
