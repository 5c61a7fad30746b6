package computeload

// The loops over arrays are in assembly because Go's compiler stores one number at a time, so that the store queue and
// not the memory would be the limit, and because the copy of Go's runtime differs from CPU to CPU. They are what a C
// compiler makes of a plain loop.

// copyArray sets a to b; both have the same length, a multiple of 8.
//
//go:noescape
func copyArray(a, b []float64)

// triad sets a to b plus factor times c; all have the same length, a multiple of 8.
//
//go:noescape
func triad(a, b, c []float64)
