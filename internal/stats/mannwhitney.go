package stats

import (
	"math"
	"slices"
)

// exactValues is the largest size of both samples together for which the null distribution is computed exactly.
const exactValues = 60

// Unpaired estimates the shift of y against x for samples that are not paired: the median of all differences y_j - x_i,
// the interval that inverts the Mann-Whitney test, and its two-sided p.
//
// For up to 60 values in all, P is conditional on the mid-ranks and therefore exact even with ties; for more values it
// is the normal approximation with tie and continuity correction. Unlike [Paired] it requires runs that are independent
// and identically distributed under the null hypothesis: drift between the two samples invalidates it.
func Unpaired(x, y []float64, alpha float64) Estimate {
	x, remarks := finite(x)
	y, more := finite(y)
	slices.Sort(x)
	slices.Sort(y)
	e := Estimate{
		N: min(len(x), len(y)), Shift: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), P: 1,
		Level: 1 - alpha, Attained: 1, Spread: math.NaN(), Needed: minValues(alpha), Remarks: append(remarks, more...),
	}
	if e.N == 0 {
		e.remark(Remark{Kind: EmptySample})
		return e
	}
	s := shifts(x, y)
	e.Shift = s.median()
	if c := mannWhitneyCritical(len(x), len(y), alpha); c.W >= 0 {
		e.Lo, e.Hi = s.interval(c.W)
		e.Attained = 1 - c.Alpha
	} else {
		e.remark(Remark{Kind: UnboundedSamples, Count: len(x), Of: len(y), Needed: e.Needed})
	}
	e.P = rankSumP(x, y)
	return e
}

// rankSumP returns the two-sided p of the Mann-Whitney test.
func rankSumP(x, y []float64) float64 {
	m, all := len(y), len(x)+len(y)
	ranks := doubledRanks(slices.Concat(x, y))
	observed := sum(ranks[len(x):])
	if all <= exactValues {
		return twoSided(subsetDistribution(ranks, m), observed)
	}
	return rankSumNormal(ranks, m)
}

// rankSumNormal approximates the p of the sum of the last m doubled ranks, by the mean and variance of a sum of m ranks
// drawn without replacement; that includes the usual correction for ties.
func rankSumNormal(ranks []int, m int) float64 {
	n, mean, squares := float64(len(ranks)), float64(len(ranks)+1), 0.0
	for _, r := range ranks {
		squares += (float64(r) - mean) * (float64(r) - mean)
	}
	variance := float64(m) * (n - float64(m)) / (n * (n - 1)) * squares
	observed := sum(ranks[len(ranks)-m:])
	return twoSidedNormal(float64(observed)-float64(m)*mean, 1, variance)
}

// mannWhitneyCritical returns the critical value of the smaller of the two U statistics.
func mannWhitneyCritical(m, n int, alpha float64) Critical {
	if m < 1 || n < 1 || !(alpha > 0 && alpha < 1) {
		return Critical{W: -1}
	}
	if m+n > exactValues {
		a, b := float64(m), float64(n)
		return criticalNormal(a*b/2, math.Sqrt(a*b*(a+b+1)/12), alpha)
	}
	sums := subsetDistribution(firstRanks(m+n), m)
	return critical(sums[m*(m+1)/2:], alpha)
}

// minValues returns the smallest n for which two samples of n values each can reject anything at alpha; 0 if 30 is too
// small.
func minValues(alpha float64) int {
	for n, ways := 1, 1.0; n <= exactValues/2; n++ {
		ways *= float64(2*n) * float64(2*n-1) / (float64(n) * float64(n)) // 2n over n
		if 2/ways <= alpha {
			return n
		}
	}
	return 0
}
