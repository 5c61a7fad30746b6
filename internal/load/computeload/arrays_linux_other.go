//go:build linux && !amd64

package computeload

// copyArray sets a to b; both have the same length, a multiple of 8.
func copyArray(a, b []float64) { copy(a, b) }

// triad sets a to b plus factor times c; all have the same length, a multiple of 8.
func triad(a, b, c []float64) {
	for len(a) >= 8 && len(b) >= 8 && len(c) >= 8 {
		x, y, z := (*[8]float64)(a), (*[8]float64)(b), (*[8]float64)(c)
		x[0], x[1], x[2], x[3] = y[0]+factor*z[0], y[1]+factor*z[1], y[2]+factor*z[2], y[3]+factor*z[3]
		x[4], x[5], x[6], x[7] = y[4]+factor*z[4], y[5]+factor*z[5], y[6]+factor*z[6], y[7]+factor*z[7]
		a, b, c = a[8:], b[8:], c[8:]
	}
}
