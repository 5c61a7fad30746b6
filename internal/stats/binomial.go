package stats

import "math"

// BinomialAtMost returns the probability of at most k successes in n independent trials with probability p each: 0 for
// k below 0, 1 for k from n on.
func BinomialAtMost(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	total := 0.0
	for i := range k + 1 {
		total += binomial(n, i, p)
	}
	return min(total, 1)
}

// binomial returns the probability of k successes in n trials, computed from logarithms.
func binomial(n, k int, p float64) float64 {
	logFactorial := func(m int) float64 { v, _ := math.Lgamma(float64(m + 1)); return v }
	return math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) +
		float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}
