package stats

import (
	"math"
	"slices"
	"strconv"
)

// A Summary holds the size and the quartiles of a sample; the quartiles of an empty sample are NaN.
type Summary struct {
	N              int
	Q1, Median, Q3 float64
}

// Summarise returns the summary of the finite values of x. Quartiles interpolate linearly between order statistics
// (type 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996; R's default).
func Summarise(x []float64) Summary {
	x, _ = finite(x)
	slices.Sort(x)
	return Summary{N: len(x), Q1: quantile(x, 0.25), Median: quantile(x, 0.5), Q3: quantile(x, 0.75)}
}

// Median returns the median of the finite values of x, NaN if there are none.
func Median(x []float64) float64 { return Summarise(x).Median }

// quantile interpolates in a sorted sample; NaN if it is empty.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := at - float64(i)
	between := sorted[i]*(1-part) + sorted[i+1]*part
	return math.Min(math.Max(between, sorted[i]), sorted[i+1]) // rounding of tiny values may leave the range
}

// Moments returns the arithmetic mean and the sample variance of x. The mean of no values and the variance of less than
// two values are NaN.
func Moments(x []float64) (mean, variance float64) {
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	for i, v := range x {
		mean += (v - mean) / float64(i+1)
	}
	if len(x) == 1 {
		return mean, math.NaN()
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x)-1)
}

// deviation returns the sample standard deviation; NaN for fewer than two values.
func deviation(x []float64) float64 {
	_, variance := Moments(x)
	return math.Sqrt(variance)
}

// finite returns a copy of x without NaN and infinities, and a remark if there were any.
func finite(x []float64) (kept []float64, remarks []Remark) {
	kept = make([]float64, 0, len(x))
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept = append(kept, v)
		}
	}
	if left := len(x) - len(kept); left > 0 {
		remarks = append(remarks, Remark{Kind: NotFinite, Count: left, Of: len(x)})
	}
	return kept, remarks
}

// Percent formats a confidence with at most one decimal, rounded down so that it does not overstate, and with more
// decimals from 99.9 % on: 0.95 is "95 %", 0.98333 is "98.3 %".
func Percent(confidence float64) string {
	decimals := 1
	for scale := 1e3; decimals < 6 && confidence*scale >= scale-1; scale *= 10 {
		decimals++
	}
	steps := math.Pow(10, float64(decimals))
	down := math.Floor(confidence*100*steps+1e-6) / steps
	return strconv.FormatFloat(down, 'f', -1, 64) + " %"
}
