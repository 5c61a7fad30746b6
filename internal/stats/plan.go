package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// trials and planSeed fix the simulations behind [DetectableShift] and [ExpectedPairs]: their
// standard error is near 1 % of the result, and the result is the same on every machine.
const (
	trials   = 4000
	planSeed = 20260101
)

// A checkpoint is a look of a design with its critical value.
type checkpoint struct{ n, w int }

// checkpoints lists the looks at which something can be rejected, up to n pairs and with n; all looks
// and nothing else if n is that of the last.
func checkpoints(n int, alpha float64, design Design) []checkpoint {
	var list []checkpoint
	for _, look := range upTo(design.Looks(), n) {
		if c := design.Critical(look, alpha); c.W >= 0 {
			list = append(list, checkpoint{look, c.W})
		}
	}
	return list
}

// DetectableShift is the smallest true shift that n pairs find with the given power, at error
// probability alpha, in units of the standard deviation of one pair's difference; +Inf where n pairs
// can find nothing. The differences are taken as normal. With a design that has looks it is the power
// of the whole procedure, which may find the shift at any look up to n.
//
// It is found by simulation: the test rejects a true shift s exactly when s exceeds minus the lower end of the
// interval of the same noise around 0, so the power's quantile of that end is the answer. For many pairs it tends to
// (z(1-alpha/2) + z(power)) sqrt(pi/3 / n), by the asymptotic relative efficiency 3/pi of the signed-rank test
// (Lehmann, Nonparametrics, 1975, section 4.2); for few pairs that formula promises far too much.
func DetectableShift(n int, alpha, power float64, design Design) float64 {
	if design.Critical(n, alpha).W < 0 || !(power > 0 && power < 1) {
		return math.Inf(1)
	}
	if n > exactPairs {
		return (normalQuantile(1-alpha/2) + normalQuantile(power)) * math.Sqrt(math.Pi/3/float64(n))
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

// grow adds standard normal values to x until there are n, and sorts it.
func grow(x []float64, n int, random *rand.Rand) []float64 {
	for len(x) < n {
		x = append(x, random.NormFloat64())
	}
	slices.Sort(x)
	return x
}

// ExpectedPairs is the mean number of pairs at which an experiment with looks ends: at the first look
// whose interval at 1 - alpha excludes 0 or lies within ± margin, or at the last. The differences are
// taken as normal with this standard deviation and mean. It is found by simulation. NaN for a design
// without looks, whose number of pairs is fixed beforehand, and for a spread that is not a number from
// 0 up or a shift that is not finite; a margin that is not above 0 stops nothing.
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

// decides says whether the interval at the critical value c excludes 0 or lies within ± margin, from
// the numbers of Walsh averages beside these alone.
func decides(w pairwise, c int, margin float64) bool {
	if 2*c >= w.size {
		return false
	}
	above := func(v float64) bool { return w.count(v) <= c } // the lower end is
	below := func(v float64) bool { return w.size-w.count(math.Nextafter(v, math.Inf(-1))) <= c }
	return above(0) || below(0) || above(-margin) && below(margin)
}

// PairsToDecide estimates how many pairs in all it would take until the interval either excludes 0 or lies within ±
// margin, whichever comes first, if the estimate stays where it is. The width is scaled with one over the root of the
// number of pairs; without a finite interval it comes from the spread. With a design that has looks it is the look
// that has so many, or, beyond the last look, the number itself: what an experiment declared anew would take. 0 means
// that it cannot be told, or that the interval decides already.
func PairsToDecide(e Estimate, margin, alpha float64, design Design) int {
	least := MinPairs(alpha, design)
	decided := e.Excludes(0) || e.Lo > -margin && e.Hi < margin
	if e.N == 0 || least == 0 || decided || math.IsNaN(e.Shift) || !(margin >= 0) {
		return 0
	}
	// To exclude 0 the half-width must fall below the estimate, to be within the margin below what
	// the estimate leaves of it.
	goal := math.Max(math.Abs(e.Shift), margin-math.Abs(e.Shift))
	perRoot := (e.Hi - e.Lo) / 2 * math.Sqrt(float64(e.N))
	if !e.Bounded() {
		perRoot = normalQuantile(1-alpha/2) * math.Sqrt(math.Pi/3) * e.Spread
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
