package stats

import "math"

// ShareP returns the p of two hypotheses about shares, each from 0 to 1, of which x has one for each block: below is
// that of their mean being limit or more, above that of its being limit or less. limit is between 0 and 1.
//
// The p are what bets against the hypothesis would win (Waudby-Smith and Ramdas, Estimating Means of Bounded Random
// Variables by Betting, JRSS B 86, 2024). So nothing is assumed of how the requests of a block depend on each other,
// nor of the distribution of the shares, and x may end at any block for any reason. Without a model of either no test
// does much better: to show that at most one request in a hundred is slow takes 299 blocks without a slow one.
func ShareP(x []float64, limit float64) (below, above float64) {
	low, high := 0.0, 0.0 // logarithms of what the bets have made of 1
	for _, v := range x {
		low += math.Log1p(-v) - math.Log1p(-limit)
		high += math.Log((1 + v/limit) / 2) // half of what there is stays out of the bet: a block of 0 must not end it
	}
	return math.Min(1, math.Exp(-low)), math.Min(1, math.Exp(-high))
}

// MinBlocks is how many blocks with a share of 0 it takes until below of [ShareP] is at most alpha.
func MinBlocks(limit, alpha float64) int { return int(math.Ceil(math.Log(alpha) / math.Log1p(-limit))) }
