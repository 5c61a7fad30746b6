package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// maxCorrelation limits the estimated correlation of successive values, which would otherwise make intervals infinite.
const maxCorrelation = 0.9

// UnpairedSeries is [Unpaired] for values in the order of time, which may resemble those before them, as runs under a
// slow disturbance do: see [Inflation]. With an inflation of f, a test at alpha takes a normal deviate f times as large
// as for independent values, so the Mann-Whitney test is carried out at the error probability of that deviate, and P is
// converted back.
func UnpairedSeries(x, y []float64, alpha float64) Estimate {
	f := Inflation(x, y)
	e := Unpaired(x, y, scaled(alpha, f))
	e.Level, e.Attained, e.P = 1-alpha, 1-scaled(1-e.Attained, 1/f), scaled(e.P, 1/f)
	return e
}

// scaled returns the two-sided probability of f times the normal deviate that has the probability p.
func scaled(p, f float64) float64 {
	if f == 1 || p <= 0 || p >= 1 {
		return p
	}
	return 2 * upperTail(-f*mathext.NormalQuantile(p/2))
}

// Inflation returns the factor by which the correlation of successive values widens the standard error of their mean,
// at least 1: sqrt((1 + r) / (1 - r)), as if each value depended on the one before it alone (Bayley and Hammersley, The
// "Effective" Number of Independent Observations in an Autocorrelated Time Series, 1946). The correlation r is that of
// all samples together, each about its own mean, without the bias of -(1 + 3r) / n that this has in short series
// (Marriott and Pope, Bias in the Estimation of Autocorrelations, Biometrika 41, 1954). What differs between the
// samples as a whole does not enter it.
func Inflation(samples ...[]float64) float64 {
	var products, squares, n float64
	for _, x := range samples {
		x, _ = finite(x)
		mean, _ := Moments(x)
		for i, v := range x {
			squares += (v - mean) * (v - mean)
			if i > 0 {
				products += (v - mean) * (x[i-1] - mean)
			}
		}
		n += float64(len(x)) / float64(len(samples))
	}
	if !(squares > 0) || math.IsInf(squares, 0) {
		return 1
	}
	r := products / squares
	r = math.Min(maxCorrelation, r+(1+3*math.Max(0, r))/n)
	return math.Sqrt((1 + math.Max(0, r)) / (1 - math.Max(0, r)))
}
