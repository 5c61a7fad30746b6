package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Batches is the number of batches into which [WithinVariance] divides a series, and the minimum number of steps.
const Batches = 10

// MostCorrelated is the correlation of successive batches up to which the variance of [WithinVariance] is reliable.
const MostCorrelated = 0.5

// WithinVariance returns the relative variance (of the logarithm) of a run's mean that is due to variation within the
// run, estimated from the series of several similar runs, and the correlation of successive batches. Both are NaN if no
// series has at least [Batches] steps and a mean above 0. At correlations above [MostCorrelated] the variance is too
// small, because the variation is slower than a series is long.
//
// It uses the method of batch means: a series is divided into 10 batches of equal length, and the variance of their
// means, divided by 10, is that of the mean of all of them if the batches are independent (Conway, Some Tactical
// Problems in Digital Simulation, Management Science 10, 1963; the number of batches is that of Schmeiser, Batch Size
// Effects in the Analysis of Simulation Output, Operations Research 30, 1982). The remaining correlation r of batches
// is treated as that of an autoregressive process of first order, which multiplies the variance by (1+r)/(1-r) (Bayley
// and Hammersley, The "Effective" Number of Independent Observations in an Autocorrelated Time Series, Supplement to
// the JRSS 8, 1946). r is pooled over the series and corrected by 1/10, because subtracting the mean gives independent
// batches a correlation of -1/10.
func WithinVariance(series ...[]float64) (variance, correlation float64) {
	squares, products, n := 0.0, 0.0, 0
	for _, x := range series {
		means, mean := batchMeans(x)
		if !(mean > 0) {
			continue
		}
		n++
		for i, m := range means {
			squares += (m/mean - 1) * (m/mean - 1)
			if i > 0 {
				products += (m/mean - 1) * (means[i-1]/mean - 1)
			}
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	if squares == 0 {
		return 0, 0
	}
	r := min(max(products/squares+1.0/Batches, 0), 1)
	return squares / float64(n*(Batches-1)*Batches) * (1 + r) / (1 - min(r, MostCorrelated)), r
}

// batchMeans returns the means of the batches of a series, and the mean of all of them; the mean is 0 if the series has
// fewer than [Batches] steps. If the number of steps is not a multiple of [Batches], the first steps are left out.
func batchMeans(x []float64) (means []float64, mean float64) {
	size := len(x) / Batches
	if size == 0 {
		return nil, 0
	}
	for x = x[len(x)-size*Batches:]; len(x) > 0; x = x[size:] {
		m, _ := Moments(x[:size])
		means = append(means, m)
	}
	mean, _ = Moments(means)
	return means, mean
}

// VarianceShare returns the interval, at the given confidence, of the ratio of a known variance to one that is
// estimated from n normal values. Both ends are from 0 to 1. n must be at least 2.
func VarianceShare(known, estimated float64, n int, confidence float64) (lo, hi float64) {
	tail, freedom := (1-confidence)/2, float64(n-1)
	ratio := known / (freedom * estimated)
	return min(ratio*chiSquaredQuantile(tail, freedom), 1), min(ratio*chiSquaredQuantile(1-tail, freedom), 1)
}

// chiSquaredQuantile returns the p-quantile of chi squared with the given degrees of freedom.
func chiSquaredQuantile(p, freedom float64) float64 { return 2 * mathext.GammaIncRegInv(freedom/2, p) }
