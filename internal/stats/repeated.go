package stats

import (
	"math"
	"slices"
)

// The grid of error probabilities that repeated p are rounded up to.
const (
	gridPerDecade = 42 // steps of 5.6 %
	gridDecades   = 6
)

// A ladder is a grid of error probabilities with, for each look, the critical values that go with
// them: a repeated p is the first rung whose critical value the observation does not exceed.
type ladder struct {
	level  []float64     // ascending
	values map[int][]int // by look: the critical value of each rung, never falling
}

// p is the repeated p of the value w of min(W+, W-) after n pairs.
func (l ladder) p(n, w int) float64 {
	i, _ := slices.BinarySearch(l.values[n], w)
	if i == len(l.level) {
		return 1
	}
	return l.level[i]
}

// repeatedP is the p at the look after n pairs at which min(W+, W-) is w: the smallest overall alpha
// at which the interval there excludes the hypothesis, rounded up to the grid; 1 beyond the last look.
//
// Since what a look may spend comes in steps, a larger alpha may leave less for a later look, and the critical values
// of the grid need not ascend. So each rung gets the largest of those up to its own, and is worth the error
// probability that this costs over all looks, where it is above its alpha. With that the p is valid at every stopping
// time: the probability that it is ever at most alpha, at any look, is at most alpha.
func (g *GroupSequential) repeatedP(n, w int) float64 {
	if n < 1 || n > g.last() {
		return 1
	}
	end := n
	if slices.Contains(g.looks, n) {
		end = g.last()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l, known := g.repeated[end]
	if !known {
		l = g.climb(g.stages(end))
		g.repeated[end] = l
	}
	return l.p(n, w)
}

// climb builds the ladder of these looks.
func (g *GroupSequential) climb(columns []*column) ladder {
	alphas := make([]float64, gridPerDecade*gridDecades)
	for i := range alphas {
		alphas[i] = math.Pow(10, float64(i)/gridPerDecade-gridDecades)
	}
	l := ladder{level: alphas, values: map[int][]int{}}
	for _, s := range g.greedy(columns, alphas) {
		largest := -1
		for _, c := range s.at {
			largest = max(largest, c.W)
			l.values[s.n] = append(l.values[s.n], largest)
		}
	}
	spending := walk(columns, len(alphas), func(c *column, a int, spent float64, m mass) Critical {
		crit := Critical{W: l.values[c.n][a], Alpha: spent}
		for w := 0; w <= crit.W; w++ {
			crit.Alpha += m.crossing(w, a)
		}
		return crit
	})
	for a, c := range spending[len(spending)-1].at {
		l.level[a] = math.Min(1, math.Max(alphas[a], c.Alpha))
		if a > 0 {
			l.level[a] = math.Max(l.level[a], l.level[a-1])
		}
	}
	return l
}
