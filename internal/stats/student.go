package stats

import "math"

// StudentQuantile returns the p-quantile of Student's t with the given degrees of freedom, from 5 degrees on; it is
// accurate to three digits between 0.5 % and 99.5 %. Source: Abramowitz and Stegun, Handbook of Mathematical Functions,
// 26.7.5.
func StudentQuantile(p, freedom float64) float64 {
	z := normalQuantile(p)
	z3, z5, z7, z9 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7), math.Pow(z, 9)
	return z +
		(z3+z)/(4*freedom) +
		(5*z5+16*z3+3*z)/(96*math.Pow(freedom, 2)) +
		(3*z7+19*z5+17*z3-15*z)/(384*math.Pow(freedom, 3)) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/(92160*math.Pow(freedom, 4))
}
