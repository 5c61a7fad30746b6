package stats

import "math"

// ShareP returns the p-values of two hypotheses about the mean of shares, each from 0 to 1, one per block: below tests
// that the mean is limit or more, above tests that it is limit or less. limit must be between 0 and 1.
//
// The p-values are the inverse winnings of bets against the hypotheses (Waudby-Smith and Ramdas, Estimating Means of
// Bounded Random Variables by Betting, JRSS B 86, 2024). So they assume nothing about the dependence of requests within
// a block or the distribution of shares, and x may end at any block for any reason. Without a model no test does much
// better: proving that at most one request in a hundred is slow takes 299 blocks without a slow one.
func ShareP(x []float64, limit float64) (below, above float64) {
	low, high := 0.0, 0.0 // logarithms of the wealth of the bets, from 1
	for _, v := range x {
		low += math.Log1p(-v) - math.Log1p(-limit)
		high += math.Log((1 + v/limit) / 2) // half of the wealth is not bet, so that a block of 0 leaves some
	}
	return math.Min(1, math.Exp(-low)), math.Min(1, math.Exp(-high))
}

// MinBlocks returns the number of blocks with a share of 0 after which below of [ShareP] is at most alpha.
func MinBlocks(limit, alpha float64) int { return int(math.Ceil(math.Log(alpha) / math.Log1p(-limit))) }
