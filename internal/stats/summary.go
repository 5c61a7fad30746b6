package stats

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Summary describes a sample by its quartiles. They are NaN if it is empty.
type Summary struct {
	N              int
	Q1, Median, Q3 float64
}

// Summarise describes x without values that are not finite. Quartiles interpolate linearly between order statistics
// (type 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996; R's default).
func Summarise(x []float64) Summary {
	x, _ = finite(x)
	slices.Sort(x)
	return Summary{N: len(x), Q1: quantile(x, 0.25), Median: quantile(x, 0.5), Q3: quantile(x, 0.75)}
}

// Median is the middle value of x, NaN if it is empty.
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
	return math.Min(math.Max(between, sorted[i]), sorted[i+1]) // whatever rounding did to tiny values
}

// Moments are the arithmetic mean of x and its sample variance; NaN where x has too few values for them.
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

// deviation is the sample standard deviation; NaN below two values.
func deviation(x []float64) float64 {
	_, variance := Moments(x)
	return math.Sqrt(variance)
}

// finite returns a copy of x without NaN and infinities, and a warning if there were any.
func finite(x []float64) (kept []float64, warnings []string) {
	kept = make([]float64, 0, len(x))
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept = append(kept, v)
		}
	}
	if left := len(x) - len(kept); left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d values are not finite and are left out.", left, len(x)))
	}
	return kept, warnings
}

// Percent renders a confidence with one decimal, rounded down so that it promises nothing more, and
// with more decimals where it would be 99.9 % otherwise: 0.95 is "95 %", 0.98333 is "98.3 %".
func Percent(confidence float64) string {
	decimals := 1
	for scale := 1e3; decimals < 6 && confidence*scale >= scale-1; scale *= 10 {
		decimals++
	}
	steps := math.Pow(10, float64(decimals))
	down := math.Floor(confidence*100*steps+1e-6) / steps
	return strconv.FormatFloat(down, 'f', -1, 64) + " %"
}
