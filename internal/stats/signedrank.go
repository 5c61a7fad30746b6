package stats

import (
	"math"
	"slices"
)

// exactPairs is the largest number of pairs for which the null distribution is computed exactly; above it the normal
// approximation with continuity correction is accurate to three digits.
const exactPairs = 100

// maxPairs limits estimated numbers of pairs.
const maxPairs = 1_000_000

// An Estimate is a location shift with its confidence interval and test.
type Estimate struct {
	N        int     // pairs, or values of the smaller sample
	Shift    float64 // Hodges-Lehmann estimate; NaN without data
	Lo, Hi   float64 // ends of the interval, inclusive; infinite if the data do not bound it
	Level    float64 // requested confidence: 1 - alpha
	Attained float64 // actual confidence of the interval, at least Level
	P        float64 // two-sided, for the hypothesis of no shift; 1 without data
	Spread   float64 // standard deviation of a pair's difference; NaN if unpaired or below two
	// Needed is the number of pairs (values in each sample) at which the interval has finite ends at this level; it is
	// set even if there are enough.
	Needed  int
	Remarks []Remark
}

// Bounded reports whether the interval has finite ends.
func (e Estimate) Bounded() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// Excludes reports whether v lies outside the interval.
func (e Estimate) Excludes(v float64) bool { return e.Lo > v || e.Hi < v }

// A Critical is the critical value of a two-sided rank test.
type Critical struct {
	W     int     // reject if the smaller of the two rank statistics is at most W; -1: nothing can be rejected
	Alpha float64 // attained error probability, at most the requested one
}

// A Design defines at which numbers of pairs the data are analysed.
type Design interface {
	// Critical returns the critical value of min(W+, W-) at the look after n pairs, for an error probability of at most
	// alpha over all looks.
	Critical(n int, alpha float64) Critical
	// Looks lists the numbers of pairs at which the data are analysed, ascending; nil for a single look at the final
	// number of pairs.
	Looks() []int
}

// Reached returns the number of pairs of the last look that n pairs are enough for, 0 if there is none.
func Reached(design Design, n int) int {
	reached := 0
	for _, look := range design.Looks() {
		if look <= n {
			reached = look
		}
	}
	return reached
}

// A DesignFromFirstLook is a design with looks that rejects nothing with fewer pairs than its first look has.
type DesignFromFirstLook struct{ Design }

// Critical returns the critical value of the design, from its first look on.
func (u DesignFromFirstLook) Critical(n int, alpha float64) Critical {
	if Reached(u.Design, n) == 0 {
		return Critical{W: -1}
	}
	return u.Design.Critical(n, alpha)
}

// OneLook is the design with a single look at a number of pairs fixed beforehand.
type OneLook struct{}

// Looks returns nil: there is one look.
func (OneLook) Looks() []int { return nil }

// Critical returns the critical value of the signed-rank test; it is exact up to 100 pairs.
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

// PlannedPairs is the design with a single look after this planned number of pairs, seen before it is reached: with
// fewer pairs nothing can be rejected. An experiment that may be stopped as soon as an interval excludes 0 would
// otherwise err far more often than alpha.
type PlannedPairs int

// Looks returns the planned number of pairs.
func (p PlannedPairs) Looks() []int { return []int{int(p)} }

// Critical returns the critical value of [OneLook], from the planned number of pairs on.
func (p PlannedPairs) Critical(n int, alpha float64) Critical {
	if n < int(p) {
		return Critical{W: -1}
	}
	return OneLook{}.Critical(n, alpha)
}

// MinPairs returns the smallest number of pairs with which the design can reject anything at alpha, and so with which
// the interval has finite ends: 1 - log2(alpha), rounded up, for [OneLook]; for a design with looks the first look that
// can reject. It is 0 if no look, and no number up to 100, is enough.
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

// Paired estimates the shift of the differences d from 0: the median of their Walsh averages, the interval that inverts
// the signed-rank test at the design's critical value, and the p of the randomisation test.
//
// The interval is valid for every symmetric distribution of d and, because the order within blocks is random, under
// every drift; with ties and zeros it is conservative. With one look P is conditional on the sizes of the differences:
// under randomisation all assignments of signs to the mid-ranks are equally likely, so P is exact even with ties. Zeros
// keep their ranks and have no sign (Pratt 1959, Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures, JASA
// 54), which is more conservative than leaving them out.
//
// If the design has looks, the interval is the repeated confidence interval of the look after len(d) pairs, and P the
// repeated p (Jennison and Turnbull, Group Sequential Methods, 2000, section 9.3): the smallest overall alpha at which
// that interval excludes 0, valid wherever the experiment stops. It is rounded up to a grid with steps of 6 %, but not
// past the given alpha: P is at most alpha exactly if the interval excludes 0. Ties and zeros count against a
// difference.
func Paired(d []float64, alpha float64, design Design) Estimate {
	d, remarks := finite(d)
	slices.Sort(d)
	e := Estimate{
		N: len(d), Shift: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), P: 1,
		Level: 1 - alpha, Attained: 1, Spread: deviation(d), Needed: MinPairs(alpha, design), Remarks: remarks,
	}
	if len(d) == 0 {
		e.remark(Remark{Kind: NoPairs})
		return e
	}
	w := walsh(d)
	e.Shift = w.median()
	if c := design.Critical(len(d), alpha); c.W >= 0 {
		e.Lo, e.Hi = w.interval(c.W)
		e.Attained = 1 - c.Alpha
	} else {
		e.remarkSize(design)
	}
	e.P = signP(d, design)
	if design.Looks() != nil {
		e.alignPWithInterval(alpha)
	}
	e.remarkRegular(d)
	return e
}

// alignPWithInterval makes P, which comes from a grid, consistent with the interval at this alpha.
func (e *Estimate) alignPWithInterval(alpha float64) {
	switch excluded := e.Excludes(0); {
	case excluded && e.P > alpha:
		e.P = alpha
	case !excluded && e.P <= alpha:
		e.P = math.Min(1, math.Nextafter(alpha, 1))
	}
}

// remarkSize remarks on a number of pairs at which the interval has no end.
func (e *Estimate) remarkSize(design Design) {
	switch looks := design.Looks(); {
	case len(looks) > 0 && e.N > looks[len(looks)-1]:
		e.remark(Remark{Kind: PastLastLook, Count: e.N, Of: looks[len(looks)-1]})
	case e.Needed == 0:
		e.remark(Remark{Kind: NeverBounded, Count: e.N})
	default:
		e.remark(Remark{Kind: Unbounded, Count: e.N, Needed: e.Needed})
	}
}

// remarkRegular remarks on data that are too regular for continuous measurements.
func (e *Estimate) remarkRegular(d []float64) {
	zeros := 0
	for _, v := range d {
		if v == 0 {
			zeros++
		}
	}
	switch {
	case len(d) > 1 && Same(d[0], d[len(d)-1]):
		e.remark(Remark{Kind: AllSame, Count: len(d)})
	case zeros*4 >= len(d) && zeros > 1:
		e.remark(Remark{Kind: ManyZeros, Count: zeros, Of: len(d)})
	}
}

// A repeater is a design with a p-value that is valid at any of several looks.
type repeater interface {
	// repeatedP returns the p at the look after n pairs at which min(W+, W-) is w.
	repeatedP(n, w int) float64
}

// signP returns the two-sided p of the signed-rank test of the sorted d.
func signP(d []float64, design Design) float64 {
	if r, repeats := design.(repeater); repeats {
		return r.repeatedP(len(d), leastRankSum(walsh(d)))
	}
	if design.Looks() != nil {
		return 1 // a p that ignores the earlier looks would be too small
	}
	ranks, positive := signedRanks(d)
	if len(ranks) <= exactPairs {
		return twoSided(signDistribution(ranks), positive)
	}
	return signNormal(ranks, positive)
}

// leastRankSum returns min(W+, W-), from the number of Walsh averages on either side of 0. Averages of 0 count on both
// sides, so that ties and zeros count against a difference as they do in the interval.
func leastRankSum(w pairwise) int {
	atMost, below := w.count(0), w.count(-math.SmallestNonzeroFloat64)
	return min(atMost, w.size-below)
}

// signedRanks returns the doubled ranks of the differences with a sign, and the sum of those of the positive ones.
// Zeros are ranked, then left out.
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

// signNormal approximates the p of the signed-rank test; positive is the sum of the positive doubled ranks. The
// continuity correction of one half is doubled too.
func signNormal(ranks []int, positive int) float64 {
	squares := 0.0
	for _, r := range ranks {
		squares += float64(r) * float64(r)
	}
	return twoSidedNormal(float64(positive)-float64(sum(ranks))/2, 1, squares/4)
}

// SignP returns the p of [Paired] for the hypothesis that the shift has the value at; for a design with looks it is
// always rounded up to the grid. It is 1 if at is not finite.
func SignP(d []float64, at float64, design Design) float64 {
	if math.IsNaN(at) || math.IsInf(at, 0) {
		return 1
	}
	d, _ = finite(d)
	for i := range d {
		d[i] -= at
	}
	d, _ = finite(d) // the subtraction may overflow
	slices.Sort(d)
	return signP(d, design)
}
