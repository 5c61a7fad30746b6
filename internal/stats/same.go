package stats

import (
	"math"
	"slices"
)

// resolution is the relative difference below which two values count as the same: smaller differences come from
// floating-point arithmetic, not from the measurement.
const resolution = 1e-12

// Same reports whether the relative difference of two values is below 1e-12.
func Same(a, b float64) bool {
	return a == b || math.Abs(a-b) < resolution*math.Max(math.Abs(a), math.Abs(b))
}

// EqualiseRounding returns copies of samples in which values that are the same by [Same], across all samples, are
// equal; otherwise ranks would depend on rounding. Each group of such values takes the smallest one.
func EqualiseRounding(samples ...[]float64) [][]float64 {
	sorted := slices.Sorted(slices.Values(slices.Concat(samples...)))
	for i := 1; i < len(sorted); i++ {
		if Same(sorted[i-1], sorted[i]) {
			sorted[i] = sorted[i-1]
		}
	}
	settled := make([][]float64, len(samples))
	for i, sample := range samples {
		settled[i] = slices.Clone(sample)
		for k, v := range sample {
			if at, kept := slices.BinarySearch(sorted, v); !kept {
				settled[i][k] = sorted[at-1]
			}
		}
	}
	return settled
}
