package stats

import "math"

// BinomialAtMost is the probability of at most k successes in n independent trials with probability p each, summed
// term by term in logarithms. k below 0 is 0, k from n on is 1.
func BinomialAtMost(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	logFactorial := func(m int) float64 { v, _ := math.Lgamma(float64(m) + 1); return v }
	all, sum := logFactorial(n), 0.0
	for i := range k + 1 {
		sum += math.Exp(all - logFactorial(i) - logFactorial(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
