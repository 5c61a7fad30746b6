package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// StudentQuantile returns the p-quantile of Student's t with the given degrees of freedom, by the inverse of the
// incomplete beta function (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1). p must be between 0 and
// 1, and freedom above 0.
func StudentQuantile(p, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*math.Min(p, 1-p))
	return math.Copysign(math.Sqrt(freedom*(1-x)/x), p-0.5)
}
