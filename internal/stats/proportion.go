package stats

// Proportion returns the interval of a probability after hits in n trials, at the given confidence. It is exact, with
// at most half of the error on each side (Clopper and Pearson, The Use of Confidence or Fiducial Limits, Biometrika 26,
// 1934). It is 0 to 1 for invalid arguments.
func Proportion(hits, n int, confidence float64) (lo, hi float64) {
	if n < 1 || hits < 0 || hits > n || !(confidence > 0 && confidence < 1) {
		return 0, 1
	}
	tail := (1 - confidence) / 2

	// If the probability is lo, at least this many hits occur with the probability of the tail; if it is hi, at most
	// this many.
	lo, hi = 0, 1
	if hits > 0 {
		lo = falling(func(p float64) float64 { return BinomialAtMost(hits-1, n, p) }, 1-tail)
	}
	if hits < n {
		hi = falling(func(p float64) float64 { return BinomialAtMost(hits, n, p) }, tail)
	}
	return lo, hi
}

// falling returns the point where f, which falls from 1 to 0 between 0 and 1, has the value v.
func falling(f func(float64) float64, v float64) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		if mid := (lo + hi) / 2; f(mid) > v {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
