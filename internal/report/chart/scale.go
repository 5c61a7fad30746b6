package chart

import (
	"cmp"
	"math"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// A Scale maps values to percentages of a figure's width or height.
type Scale struct {
	Lo, Hi float64
	Log    bool    // logarithmic; both ends are above 0
	Per    float64 // what is 1 in the labels of ticks, which are round in it; 0 is 1
}

// At returns the position of v, from 0 at Lo to 100 at Hi, clamped to the edges.
func (s Scale) At(v float64) float64 {
	lo, hi := s.Lo, s.Hi
	if s.Log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(math.Max(v, s.Lo))
	}
	if !(hi > lo) {
		return 50
	}
	return math.Min(100, math.Max(0, (v-lo)/(hi-lo)*100))
}

// Linear returns a scale that holds all finite values with some padding. It begins at 0 unless that would leave most of
// it empty, so that sizes can be compared by eye.
func Linear(values ...float64) Scale {
	lo, hi := extent(values)
	if lo >= 0 && lo < (hi-lo)*2 {
		return padded(0, hi)
	}
	return padded(lo, hi)
}

// padded returns a linear scale from lo to hi with 8 % of padding at each end, but none below 0 if lo is 0.
func padded(lo, hi float64) Scale {
	padding := (hi - lo) * 0.08
	if padding == 0 {
		padding = math.Max(math.Abs(hi)*0.05, 1e-12)
	}
	s := Scale{Lo: lo - padding, Hi: hi + padding}
	if lo == 0 {
		s.Lo = 0
	}
	return s
}

// logarithmic returns a logarithmic scale that holds all finite values above 0.
func logarithmic(values ...float64) Scale {
	var above []float64
	for _, v := range values {
		if v > 0 {
			above = append(above, v)
		}
	}
	lo, hi := extent(above)
	if lo <= 0 {
		return Scale{Lo: 1, Hi: 10, Log: true}
	}
	return Scale{Lo: lo / 1.15, Hi: hi * 1.15, Log: true}
}

// extent returns the smallest and the largest finite value; one number twice if they differ only by rounding, 0 and 0
// if there is none.
func extent(values []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	switch {
	case lo > hi:
		return 0, 0
	case stats.Same(lo, hi):
		return lo, lo
	}
	return lo, hi
}

// Ticks returns round values on the scale, about n of them.
func (s Scale) Ticks(n int) []float64 {
	if !(s.Hi > s.Lo) || stats.Same(s.Lo, s.Hi) || n < 1 {
		return nil
	}
	if s.Log && s.Hi/s.Lo > 4 {
		return thinTicks(s.logTicks(), n)
	}
	per := cmp.Or(s.Per, 1)
	step := roundStep((s.Hi-s.Lo)/float64(n)/per) * per
	first := math.Ceil(s.Lo / step)
	var ticks []float64
	for i := range n + 1 { // a step is at least an n-th of the scale
		if t := (first + float64(i)) * step; t <= s.Hi {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// logTicks returns 1, 2 and 5 times every power of ten on the scale.
func (s Scale) logTicks() []float64 {
	var ticks []float64
	for decade := exponent(s.Lo); decade <= exponent(s.Hi); decade++ {
		for _, m := range []float64{1, 2, 5} {
			if v := math.Pow10(decade) * m; v >= s.Lo && v <= s.Hi {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// exponent returns the power of ten at or below v; +Inf counts as the largest number.
func exponent(v float64) int { return int(math.Floor(math.Log10(math.Min(v, math.MaxFloat64)))) }

// thinTicks keeps every third tick until at most 2n are left.
func thinTicks(ticks []float64, n int) []float64 {
	for len(ticks) > 2*n {
		kept := ticks[:0:0]
		for i := 0; i < len(ticks); i += 3 {
			kept = append(kept, ticks[i])
		}
		ticks = kept
	}
	return ticks
}

// roundStep returns the smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is at least step.
func roundStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}
