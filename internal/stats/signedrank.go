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

// Reached is the last look of a design that n pairs suffice for: the look's number of pairs, 0 if that is none.
func Reached(design Design, n int) int {
	reached := 0
	for _, look := range design.Looks() {
		if look <= n {
			reached = look
		}
	}
	return reached
}

// Unlooked is a design before its first look: nothing can be rejected with fewer pairs than that has.
type Unlooked struct{ Design }

// Critical is that of the design, from its first look on.
func (u Unlooked) Critical(n int, alpha float64) Critical {
	if Reached(u.Design, n) == 0 {
		return Critical{W: -1}
	}
	return u.Design.Critical(n, alpha)
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
		x := float64(n)
		return criticalNormal(x*(x+1)/4, math.Sqrt(x*(x+1)*(2*x+1)/24), alpha)
	}
	return critical(signDistribution(firstRanks(n)), alpha)
}

// MinPairs is the smallest number of pairs with which the design can reject anything at alpha, and
// so with which the interval has finite ends: 1 - log2(alpha), rounded up, for [OneLook], the first
// look that can for a design with looks. It is 0 if no look, no number up to 100 suffices.
func MinPairs(alpha float64, design Design) int {
	for _, n := range candidates(design) {
		if design.Critical(n, alpha).W >= 0 {
			return n
		}
	}
	return 0
}

// candidates lists the numbers of pairs at which a design may be able to reject for the first time.
func candidates(design Design) []int {
	if looks := design.Looks(); looks != nil {
		return looks
	}
	return firstRanks(exactPairs)
}

// Paired estimates the shift of the differences d from 0: the median of their Walsh averages, the interval that
// inverts the signed-rank test at the design's critical value, and the p of the randomisation test.
//
// The interval is valid for every distribution of d that is symmetric, and, since the order within blocks is random,
// under every drift; with ties and zeros it is conservative. With one look P is conditional on the sizes of the
// differences: all assignments of signs to the mid-ranks are equally likely under randomisation, so it is exact with
// ties too. Zeros keep their ranks and take no sign (Pratt 1959, Remarks on Zeros and Ties in the Wilcoxon Signed
// Rank Procedures, JASA 54), which says more against a difference than leaving them out.
//
// With a design that has looks the interval is the repeated confidence interval of the look after
// len(d) pairs, and P the repeated p (Jennison and Turnbull, Group Sequential Methods, 2000, section
// 9.3): the smallest overall alpha at which that interval excludes 0, valid wherever the experiment
// stops. It is rounded up to a grid of steps of 6 %, but not past the alpha given: P is at most alpha
// exactly where the interval excludes 0. Ties and zeros count against a difference.
func Paired(d []float64, alpha float64, design Design) Estimate {
	d, warnings := finite(d)
	slices.Sort(d)
	e := Estimate{
		N: len(d), Shift: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), P: 1,
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
		e.doubtSize(design)
	}
	e.P = signP(d, design)
	if design.Looks() != nil {
		e.agree(alpha)
	}
	e.doubtPairs(d)
	return e
}

// agree makes the p, which comes from a grid of alphas, say at this alpha what the interval says.
func (e *Estimate) agree(alpha float64) {
	switch excluded := e.Excludes(0); {
	case excluded && e.P > alpha:
		e.P = alpha
	case !excluded && e.P <= alpha:
		e.P = math.Min(1, math.Nextafter(alpha, 1))
	}
}

// doubtSize warns of a number of pairs at which the interval has no end.
func (e *Estimate) doubtSize(design Design) {
	looks, confidence := design.Looks(), Percent(e.Level)
	switch {
	case len(looks) > 0 && e.N > looks[len(looks)-1]:
		e.warn("With %d pairs there is no interval: the design has its last look after %d.", e.N, looks[len(looks)-1])
	case e.Needed == 0:
		e.warn("With %d pairs no interval at %s confidence has an end, nor will it have one at a later look.",
			e.N, confidence)
	default:
		e.warn("With %d pairs no interval at %s confidence has an end; it takes %d.", e.N, confidence, e.Needed)
	}
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
	case len(d) > 1 && Same(d[0], d[len(d)-1]):
		e.warn("All %d differences are the same number; measurements that are not quantised never are.", len(d))
	case zeros*4 >= len(d) && zeros > 1:
		e.warn("%d of %d differences are exactly 0; the metric is coarse.", zeros, len(d))
	}
}

func (e *Estimate) warn(format string, a ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, a...))
}

// A repeater is a design whose p is of another kind than that of one look: valid at any of several.
type repeater interface {
	// repeatedP is the p at the look after n pairs at which min(W+, W-) is w.
	repeatedP(n, w int) float64
}

// signP is the two-sided p of the signed-rank test of the sorted d.
func signP(d []float64, design Design) float64 {
	if r, repeats := design.(repeater); repeats {
		return r.repeatedP(len(d), leastRankSum(walsh(d)))
	}
	if design.Looks() != nil {
		return 1 // the p of one look would promise too much
	}
	ranks, positive := signedRanks(d)
	if len(ranks) <= exactPairs {
		return twoSided(signDistribution(ranks), positive)
	}
	return signNormal(ranks, positive)
}

// leastRankSum is min(W+, W-) by the number of Walsh averages on either side of 0. Those at 0 count
// on both, so that ties and zeros say against a difference what they say in the interval.
func leastRankSum(w pairwise) int {
	atMost, below := w.count(0), w.count(-math.SmallestNonzeroFloat64)
	return min(atMost, w.size-below)
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

// SignP is the p of [Paired] for the hypothesis that the shift is at, with the p of a design with
// looks always rounded up to its grid; 1 if at is not finite.
func SignP(d []float64, at float64, design Design) float64 {
	if math.IsNaN(at) || math.IsInf(at, 0) {
		return 1
	}
	d, _ = finite(d)
	for i := range d {
		d[i] -= at
	}
	d, _ = finite(d) // what has left the range of numbers
	slices.Sort(d)
	return signP(d, design)
}
