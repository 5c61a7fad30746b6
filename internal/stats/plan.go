package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// trials and planSeed fix the simulation behind [DetectableShift]: its standard error is near 1 %
// of the result, and the result is the same on every machine.
const (
	trials   = 4000
	planSeed = 20260101
)

// DetectableShift is the smallest true shift that n pairs find with the given power, at error
// probability alpha, in units of the standard deviation of one pair's difference; +Inf where n pairs
// can find nothing. The differences are taken as normal.
//
// It is found by simulation: the test rejects a true shift s exactly when s exceeds minus the lower
// end of the interval of the same noise around 0, so the power's quantile of that end is the answer.
// For many pairs it tends to (z(1-alpha/2) + z(power)) sqrt(pi/3 / n), by the asymptotic relative
// efficiency 3/pi of the signed-rank test (Lehmann, Nonparametrics, 1975, section 4.2); for few
// pairs that formula promises far too much.
func DetectableShift(n int, alpha, power float64, design Design) float64 {
	c := design.Critical(n, alpha)
	if c.W < 0 || !(power > 0 && power < 1) {
		return math.Inf(1)
	}
	if n > exactPairs {
		return (normalQuantile(1-alpha/2) + normalQuantile(power)) * math.Sqrt(math.Pi/3/float64(n))
	}
	random := rand.New(rand.NewPCG(planSeed, uint64(n)))
	needed := make([]float64, trials)
	noise := make([]float64, n)
	for t := range needed {
		for i := range noise {
			noise[i] = random.NormFloat64()
		}
		slices.Sort(noise)
		needed[t] = -walsh(noise).kth(c.W + 1)
	}
	slices.Sort(needed)
	return quantile(needed, power)
}

// PairsToDecide estimates how many pairs in all it would take until the interval either excludes 0
// or lies within ± margin, whichever comes first, if the estimate stays where it is. The width is
// scaled with one over the root of the number of pairs; without a finite interval it comes from the
// spread. 0 means that it can not be told, or that the interval decides already.
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
		return least // a single pair has no spread
	}
	return int(math.Min(maxPairs, math.Max(n, float64(max(least, e.N+1)))))
}
