package stats

import (
	"cmp"
	"math"
	"slices"
)

// BenjaminiHochberg adjusts p-values for their number, so that rejecting those at most alpha keeps the expected share
// of false rejections at or below alpha (Benjamini and Hochberg, Controlling the False Discovery Rate, JRSS B 57,
// 1995). The results are in the order of p; a value outside 0 to 1 counts as 1.
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	clean := make([]float64, len(p))
	for i, v := range p {
		order[i], clean[i] = i, 1
		if v >= 0 && v <= 1 {
			clean[i] = v
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(clean[a], clean[b]) })
	q := make([]float64, len(p))
	least := 1.0
	for i := len(order) - 1; i >= 0; i-- {
		k := order[i]
		least = math.Min(least, clean[k]*float64(len(p))/float64(i+1))
		q[k] = least
	}
	return q
}
