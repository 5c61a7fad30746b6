package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// trials and planSeed fix the simulations of [DetectableShift] and [ExpectedPairs]. Their standard error is about 1 %
// of the result, and the result is the same on every machine.
const (
	trials   = 4000
	planSeed = 20260101
)

// A checkpoint is a look of a design with its critical value.
type checkpoint struct{ n, w int }

// checkpoints lists the looks up to n pairs, and n itself, at which something can be rejected.
func checkpoints(n int, alpha float64, design Design) []checkpoint {
	var list []checkpoint
	for _, look := range upTo(design.Looks(), n) {
		if c := design.Critical(look, alpha); c.W >= 0 {
			list = append(list, checkpoint{look, c.W})
		}
	}
	return list
}

// DetectableShift returns the smallest true shift that n pairs detect with the given power, at error probability alpha,
// in units of the standard deviation of one pair's difference; +Inf if n pairs cannot reject anything. The differences
// are assumed to be normal. If the design has looks, the power is that of the whole procedure, which may detect the
// shift at any look up to n.
//
// It is found by simulation: the test detects a true shift s exactly if s exceeds minus the lower end of the interval
// of the same noise around 0, so the power-quantile of minus that end is the result. For more than 100 pairs it is
// (z(1-alpha/2) + z(power)) sqrt(pi/3 / n), by the asymptotic relative efficiency 3/pi of the signed-rank test
// (Lehmann, Nonparametrics, 1975, section 4.2); for few pairs that formula is far too optimistic.
func DetectableShift(n int, alpha, power float64, design Design) float64 {
	if design.Critical(n, alpha).W < 0 || !(power > 0 && power < 1) {
		return math.Inf(1)
	}
	if n > exactPairs {
		return (mathext.NormalQuantile(1-alpha/2) + mathext.NormalQuantile(power)) * math.Sqrt(math.Pi/3/float64(n))
	}
	looks := checkpoints(n, alpha, design)
	random := rand.New(rand.NewPCG(planSeed, uint64(n)))
	needed := make([]float64, trials)
	noise := make([]float64, 0, n)
	for t := range needed {
		needed[t] = math.Inf(1)
		noise = noise[:0]
		for _, look := range looks {
			noise = grow(noise, look.n, random)
			needed[t] = math.Min(needed[t], -walsh(noise).kth(look.w+1))
		}
	}
	slices.Sort(needed)
	return quantile(needed, power)
}

// grow appends standard normal values to x until it has n, and sorts it.
func grow(x []float64, n int, random *rand.Rand) []float64 {
	for len(x) < n {
		x = append(x, random.NormFloat64())
	}
	slices.Sort(x)
	return x
}

// ExpectedPairs returns the mean number of pairs at which an experiment with looks ends: at the first look whose
// interval at 1 - alpha excludes 0 or lies within ± margin, or at the last. It is found by simulation of normal
// differences with the given standard deviation and mean. The result is NaN for a design without looks, whose number of
// pairs is fixed, for a spread that is negative or not finite, and for a shift that is not finite; with a margin of 0
// or less no experiment ends as equivalent.
func ExpectedPairs(spread, shift, margin, alpha float64, design Design) float64 {
	looks := design.Looks()
	if len(looks) == 0 || !(spread >= 0) || math.IsInf(spread, 0) || math.IsNaN(shift-shift) {
		return math.NaN()
	}
	last := looks[len(looks)-1]
	points := checkpoints(last, alpha, design)
	random := rand.New(rand.NewPCG(planSeed, uint64(last)))
	total := 0
	noise, d := make([]float64, 0, last), make([]float64, 0, last)
	for range trials {
		noise = noise[:0]
		end := last
		for _, point := range points {
			noise = grow(noise, point.n, random)
			d = d[:0]
			for _, z := range noise {
				d = append(d, shift+spread*z)
			}
			if decides(walsh(d), point.w, margin) {
				end = point.n
				break
			}
		}
		total += end
	}
	return float64(total) / trials
}

// decides reports whether the interval at the critical value c excludes 0 or lies within ± margin, by counting Walsh
// averages.
func decides(w pairwise, c int, margin float64) bool {
	if 2*c >= w.size {
		return false
	}
	above := func(v float64) bool { return w.count(v) <= c } // the interval is above v
	below := func(v float64) bool { return w.size-w.count(math.Nextafter(v, math.Inf(-1))) <= c }
	return above(0) || below(0) || above(-margin) && below(margin)
}

// PairsToDecide estimates the total number of pairs at which the interval either excludes 0 or lies within ± margin,
// whichever comes first, if the estimate stays the same. The width is scaled with one over the square root of the
// number of pairs; without a finite interval it is derived from the spread. If the design has looks, the result is the
// next look, or, beyond the last look, the number itself: the size of a new experiment. 0 means that the number cannot
// be estimated, or that the interval decides already.
func PairsToDecide(e Estimate, margin, alpha float64, design Design) int {
	least := MinPairs(alpha, design)
	decided := e.Excludes(0) || e.Lo > -margin && e.Hi < margin
	if e.N == 0 || least == 0 || decided || math.IsNaN(e.Shift) || !(margin >= 0) {
		return 0
	}

	// To exclude 0 the half-width must fall below the estimate; to lie within the margin, below the margin minus the
	// estimate.
	goal := math.Max(math.Abs(e.Shift), margin-math.Abs(e.Shift))
	perRoot := (e.Hi - e.Lo) / 2 * math.Sqrt(float64(e.N))
	if !e.Bounded() {
		perRoot = mathext.NormalQuantile(1-alpha/2) * math.Sqrt(math.Pi/3) * e.Spread
	}
	n := math.Ceil(math.Pow(perRoot/goal, 2))
	if math.IsNaN(n) {
		n = 0 // a single pair has no spread
	}
	pairs := int(math.Min(maxPairs, math.Max(n, float64(max(least, e.N+1)))))
	looks := design.Looks()
	if i, _ := slices.BinarySearch(looks, pairs); i < len(looks) {
		return looks[i]
	}
	return pairs
}
