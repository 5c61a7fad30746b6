package stats

import "math"

// A pairwise is the multiset of values of all pairs, such as the Walsh averages, represented by a function that counts
// the values that are at most v. With it, the k-th smallest value is found without building the list.
type pairwise struct {
	size  int
	count func(v float64) int
}

// walsh returns the Walsh averages (x_i + x_j)/2, i <= j, of a sorted x.
func walsh(x []float64) pairwise {
	count := func(v float64) int {
		c, j := 0, len(x)-1
		for i := 0; i <= j; i++ {
			for j >= i && x[i]/2+x[j]/2 > v {
				j--
			}
			c += j - i + 1
		}
		return c
	}
	return pairwise{len(x) * (len(x) + 1) / 2, count}
}

// shifts returns the differences y_j - x_i of two sorted samples.
func shifts(x, y []float64) pairwise {
	count := func(v float64) int {
		c, j := 0, 0
		for i := range x {
			for j < len(y) && y[j]-x[i] <= v {
				j++
			}
			c += j
		}
		return c
	}
	return pairwise{len(x) * len(y), count}
}

// kth returns the k-th smallest value, k from 1 to size. It is exact: it bisects the ordered set of all floating-point
// numbers, and the counts change only at values in the multiset.
func (p pairwise) kth(k int) float64 {
	lo, hi := ordinal(-math.MaxFloat64), ordinal(math.MaxFloat64)
	for lo < hi {
		mid := lo + (hi-lo)/2
		if p.count(fromOrdinal(mid)) >= k {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return fromOrdinal(lo) + 0 // -0 becomes 0
}

func (p pairwise) median() float64 {
	if p.size%2 == 1 {
		return p.kth((p.size + 1) / 2)
	}
	return p.kth(p.size/2)/2 + p.kth(p.size/2+1)/2
}

// interval returns the ends of the interval for the critical value c: a shift is rejected if at most c of the values
// lie on one side of it.
func (p pairwise) interval(c int) (lo, hi float64) {
	if c < 0 || 2*c >= p.size {
		return math.Inf(-1), math.Inf(1)
	}
	return p.kth(c + 1), p.kth(p.size - c)
}

// ordinal maps floating-point values to integers in the same order.
func ordinal(v float64) uint64 {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func fromOrdinal(o uint64) float64 {
	if o>>63 == 1 {
		return math.Float64frombits(o &^ (1 << 63))
	}
	return math.Float64frombits(^o)
}
