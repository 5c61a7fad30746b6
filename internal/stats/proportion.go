package stats

import "gonum.org/v1/gonum/mathext"

// Proportion returns the interval of a probability after hits in n trials, at the given confidence. It is exact, with
// at most half of the error on each side (Clopper and Pearson, The Use of Confidence or Fiducial Limits, Biometrika 26,
// 1934): its ends are quantiles of beta distributions. It is 0 to 1 for invalid arguments.
func Proportion(hits, n int, confidence float64) (lo, hi float64) {
	if n < 1 || hits < 0 || hits > n || !(confidence > 0 && confidence < 1) {
		return 0, 1
	}
	tail, k, missed := (1-confidence)/2, float64(hits), float64(n-hits)
	lo, hi = 0, 1
	if hits > 0 {
		lo = mathext.InvRegIncBeta(k, missed+1, tail)
	}
	if hits < n {
		hi = mathext.InvRegIncBeta(k+1, missed, 1-tail)
	}
	return lo, hi
}
