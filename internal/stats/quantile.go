package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// MinSamples returns the number of values that a quantile q needs for a two-sided interval with both ends finite at the
// given confidence: 368 for p99 and 3688 for p99.9 at 95 %. It is 0 if q or the confidence is not between 0 and 1.
func MinSamples(q, confidence float64) int {
	if !(q > 0 && q < 1 && confidence > 0 && confidence < 1) {
		return 0
	}

	// The largest of n values fails to exceed the quantile with probability q^n, the smallest fails to be below it with
	// probability (1-q)^n; each may use half of the error.
	n := math.Ceil(math.Log((1-confidence)/2) / math.Log(math.Max(q, 1-q)))
	return int(math.Min(n, math.MaxInt32))
}

// quantileRanks returns the ranks, from 1, of the order statistics of n values that enclose the quantile q with at
// least the given confidence, with at most half of the error on each side. lo is 0 or hi is n+1 if there is no such
// order statistic. Source: David and Nagaraja, Order Statistics, 3rd ed., section 7.1.
func quantileRanks(n int, q, confidence float64) (lo, hi int) {
	if n < 1 || !(q > 0 && q < 1 && confidence > 0 && confidence < 1) {
		return 0, n + 1
	}
	return rankBelow(n, q, (1-confidence)/2), n + 1 - rankBelow(n, 1-q, (1-confidence)/2)
}

// rankBelow returns the largest k with P(X < k) <= tail for a binomial X with n trials of probability q.
func rankBelow(n int, q, tail float64) int {
	return sort.Search(n, func(k int) bool { return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-q) > tail })
}

// QuantileInterval returns a distribution-free interval of the quantile q of the distribution of x, by order
// statistics. The values must be independent: runs are, the seconds of one run are not. With q = 0.5 it is the interval
// of a median that inverts the sign test, for a single sample; comparisons need [Paired] or [Unpaired], because an
// overlap of two such intervals shows little. An end is infinite if x has too few values, see [MinSamples].
func QuantileInterval(x []float64, q, confidence float64) (lo, hi float64) {
	x, _ = finite(x)
	slices.Sort(x)
	lo, hi = math.Inf(-1), math.Inf(1)
	from, to := quantileRanks(len(x), q, confidence)
	if from >= 1 {
		lo = x[from-1]
	}
	if to <= len(x) {
		hi = x[to-1]
	}
	return lo, hi
}
