package computeload

// triad sets a to b plus factor times c; all have the same length, a multiple of 8. It is in assembly because Go's
// compiler stores one number at a time, so that the store queue and not the memory is the limit.
//
//go:noescape
func triad(a, b, c []float64)
