package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// doubledRanks returns twice the mid-ranks of x, which are integers even with ties: equal values share the mean of
// their ranks.
func doubledRanks(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks := make([]int, len(x))
	for i := 0; i < len(x); {
		j := i + 1
		for j < len(x) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = i + 1 + j // (first rank i+1 + last rank j) / 2, doubled
		}
		i = j
	}
	return ranks
}

// firstRanks returns 1, 2, … n.
func firstRanks(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return ranks
}

func sum[T int | float64](x []T) (total T) {
	for _, v := range x {
		total += v
	}
	return total
}

// signDistribution returns the distribution of the sum of the ranks with a positive sign if each sign is a fair coin:
// element s is the probability of the sum s. With ranks 1 … n it is the null distribution of W+ (Hollander, Wolfe,
// Chicken: Nonparametric Statistical Methods, 3rd ed., section 3.1).
func signDistribution(ranks []int) []float64 {
	p := make([]float64, sum(ranks)+1)
	p[0] = 1
	reached := 0
	for _, r := range ranks {
		reached += r
		for s := reached; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	return p
}

// subsetDistribution returns the distribution of the sum of m ranks drawn without replacement: element s is the
// probability of the sum s. With ranks 1 … N it is the null distribution of the rank sum of Mann-Whitney and Wilcoxon
// (the same book, section 4.1).
func subsetDistribution(ranks []int, m int) []float64 {
	sorted := slices.Sorted(slices.Values(ranks))
	top := sum(sorted[len(sorted)-m:])
	// ways[k][s] is the number of subsets of k ranks with the sum s.
	ways := make([][]float64, m+1)
	for k := range ways {
		ways[k] = make([]float64, top+1)
	}
	ways[0][0] = 1
	for i, r := range sorted {
		for k := min(i+1, m); k >= 1; k-- {
			for s := top; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	total := sum(ways[m])
	for s := range ways[m] {
		ways[m][s] /= total
	}
	return ways[m]
}

// twoSided returns the two-sided p of an observed value: twice the smaller tail of p, a distribution on 0, 1, 2 …
func twoSided(p []float64, observed int) float64 {
	return math.Min(1, 2*math.Min(sum(p[:observed+1]), sum(p[observed:])))
}

// critical returns the largest c with 2 P(S <= c) <= alpha, and that probability; -1 and 0 if there is none. p is the
// distribution of S and must be symmetric.
func critical(p []float64, alpha float64) Critical {
	c := Critical{W: -1}
	below := 0.0
	for s, v := range p {
		below += v
		if 2*below > alpha {
			break
		}
		c = Critical{W: s, Alpha: 2 * below}
	}
	return c
}

// criticalNormal returns the critical value of an approximately normal statistic with the given mean and standard
// deviation, with continuity correction. It subtracts one more step, because for large alpha the approximation may be
// one step too large.
func criticalNormal(mean, sd, alpha float64) Critical {
	w := int(math.Floor(mean + mathext.NormalQuantile(alpha/2)*sd - 1.5))
	if w < 0 {
		return Critical{W: -1}
	}
	return Critical{W: w, Alpha: 2 * upperTail((mean-float64(w)-0.5)/sd)}
}

// twoSidedNormal returns the two-sided p of an approximately normal statistic with the given distance from its mean and
// variance; half is the continuity correction.
func twoSidedNormal(distance, half, variance float64) float64 {
	if variance <= 0 {
		return 1
	}
	z := math.Max(0, math.Abs(distance)-half) / math.Sqrt(variance)
	return math.Min(1, 2*upperTail(z))
}

// upperTail returns the probability that a standard normal variable is above z.
func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
