package stats

import (
	"fmt"
	"math"
	"slices"
)

// exactPairs is the largest number of pairs whose null distribution is computed exactly; above it
// the normal approximation with continuity correction is good to three digits.
const exactPairs = 100

// maxPairs bounds the search for a number of pairs that suffices for something.
const maxPairs = 1_000_000

// An Estimate is a location shift with its interval and test.
type Estimate struct {
	N        int     // pairs, or values of the smaller sample
	Shift    float64 // Hodges-Lehmann estimate; NaN without data
	Lo, Hi   float64 // ends of the interval, included; infinite where the data do not bound it
	Level    float64 // confidence asked for: 1 - alpha
	Attained float64 // confidence that the interval really has, at least Level
	P        float64 // two-sided, of a shift of 0; 1 without data
	Exact    bool    // P is from the exact distribution, not from the normal approximation
	Spread   float64 // standard deviation of a pair's difference; NaN if unpaired or below two
	// Needed is how many pairs (values in each sample) an interval with finite ends takes at this
	// level; it is set also where there are enough.
	Needed   int
	Warnings []string // sentences
}

// Bounded says whether the interval has finite ends.
func (e Estimate) Bounded() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// Excludes says whether the interval lies wholly on one side of v.
func (e Estimate) Excludes(v float64) bool { return e.Lo > v || e.Hi < v }

// A Critical is the critical value of a two-sided rank test.
type Critical struct {
	W     int     // reject when the smaller of the two rank statistics is at most W; -1: nothing can be rejected
	Alpha float64 // error probability attained, at most the one asked for
}

// A Design says how the pairs are looked at.
type Design interface {
	// Critical is the critical value of min(W+, W-) at the look after n pairs, when the error
	// probability over all looks is to be at most alpha.
	Critical(n int, alpha float64) Critical
	// Looks lists the numbers of pairs at which the data are looked at, ascending; it is nil if there
	// is one look, at whatever number of pairs there is in the end.
	Looks() []int
}

// OneLook is the design with a number of pairs fixed beforehand.
type OneLook struct{}

// Looks is nil: there is one look.
func (OneLook) Looks() []int { return nil }

// Critical is exact up to 100 pairs.
func (OneLook) Critical(n int, alpha float64) Critical {
	if n < 1 || !(alpha > 0 && alpha < 1) {
		return Critical{W: -1}
	}
	if n > exactPairs {
		return criticalNormal(signedRankMoments(n, alpha))
	}
	return critical(signDistribution(firstRanks(n)), alpha)
}

func signedRankMoments(n int, alpha float64) (mean, sd, a float64) {
	x := float64(n)
	return x * (x + 1) / 4, math.Sqrt(x * (x + 1) * (2*x + 1) / 24), alpha
}

// MinPairs is the smallest number of pairs with which the design can reject anything at alpha, and
// so with which the interval has finite ends: 1 - log2(alpha), rounded up, for [OneLook]. It is 0 if
// no number up to 100 suffices.
func MinPairs(alpha float64, design Design) int {
	for n := 1; n <= exactPairs; n++ {
		if design.Critical(n, alpha).W >= 0 {
			return n
		}
	}
	return 0
}

// Paired estimates the shift of the differences d from 0: the median of their Walsh averages, the
// interval that inverts the signed-rank test at the design's critical value, and the p of the
// randomisation test.
//
// The interval is valid for every distribution of d that is symmetric, and, since the order within
// blocks is random, under every drift; with ties and zeros it is conservative. P is conditional on
// the sizes of the differences: all assignments of signs to the mid-ranks are equally likely under
// randomisation, so it is exact with ties too. Zeros keep their ranks and take no sign (Pratt 1959,
// Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures, JASA 54), which says more
// against a difference than leaving them out. P belongs to one look.
func Paired(d []float64, alpha float64, design Design) Estimate {
	d, warnings := finite(d)
	slices.Sort(d)
	e := Estimate{
		N: len(d), Shift: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), P: 1, Exact: true,
		Level: 1 - alpha, Attained: 1, Spread: deviation(d), Needed: MinPairs(alpha, design), Warnings: warnings,
	}
	if len(d) == 0 {
		e.warn("There are no pairs.")
		return e
	}
	w := walsh(d)
	e.Shift = w.median()
	if c := design.Critical(len(d), alpha); c.W >= 0 {
		e.Lo, e.Hi = w.interval(c.W)
		e.Attained = 1 - c.Alpha
	} else {
		e.warn("With %d pairs no interval at %s confidence has an end; it takes %d.", e.N, Percent(e.Level), e.Needed)
	}
	e.P, e.Exact = signP(d)
	e.doubtPairs(d)
	return e
}

// doubtPairs warns of data that are too regular to be continuous measurements.
func (e *Estimate) doubtPairs(d []float64) {
	zeros := 0
	for _, v := range d {
		if v == 0 {
			zeros++
		}
	}
	switch {
	case len(d) > 1 && d[0] == d[len(d)-1]:
		e.warn("All %d differences are the same number; measurements that are not quantised never are.", len(d))
	case zeros*4 >= len(d) && zeros > 1:
		e.warn("%d of %d differences are exactly 0; the metric is coarse.", zeros, len(d))
	}
}

func (e *Estimate) warn(format string, a ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, a...))
}

// signP is the two-sided p of the signed-rank test, and whether it is exact.
func signP(d []float64) (p float64, exact bool) {
	ranks, positive := signedRanks(d)
	if len(ranks) <= exactPairs {
		return twoSided(signDistribution(ranks), positive), true
	}
	return signNormal(ranks, positive), false
}

// signedRanks returns the doubled ranks of the differences that have a sign, and the sum of those of
// the positive ones. Zeros are ranked, then left out.
func signedRanks(d []float64) (ranks []int, positive int) {
	sizes := make([]float64, len(d))
	for i, v := range d {
		sizes[i] = math.Abs(v)
	}
	for i, r := range doubledRanks(sizes) {
		if d[i] != 0 {
			ranks = append(ranks, r)
		}
		if d[i] > 0 {
			positive += r
		}
	}
	return ranks, positive
}

// signNormal approximates the p of a positive sum of doubled ranks. The continuity correction of one
// half is doubled too.
func signNormal(ranks []int, positive int) float64 {
	squares := 0.0
	for _, r := range ranks {
		squares += float64(r) * float64(r)
	}
	return twoSidedNormal(float64(positive)-float64(sum(ranks))/2, 1, squares/4)
}

// SignP is the p of [Paired] for the hypothesis that the shift is at; 1 if at is not finite.
func SignP(d []float64, at float64) float64 {
	d, _ = finite(d)
	for i := range d {
		d[i] -= at
	}
	if math.IsNaN(at) || math.IsInf(at, 0) {
		return 1
	}
	p, _ := signP(d)
	return p
}
