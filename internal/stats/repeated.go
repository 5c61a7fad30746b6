package stats

import (
	"math"
	"slices"
)

// The grid of error probabilities to which repeated p-values are rounded up.
const (
	gridPerDecade = 42 // steps of 5.6 %
	gridDecades   = 6
)

// A repeatedGrid is a grid of error probabilities with their critical values at each look: a repeated p is the first
// level whose critical value is at least the observed value.
type repeatedGrid struct {
	level  []float64     // ascending
	values map[int][]int // by look: the critical value of each level, never falling
}

// p returns the repeated p of the value w of min(W+, W-) after n pairs.
func (l repeatedGrid) p(n, w int) float64 {
	i, _ := slices.BinarySearch(l.values[n], w)
	if i == len(l.level) {
		return 1
	}
	return l.level[i]
}

// repeatedP returns the p at the look after n pairs at which min(W+, W-) is w: the smallest overall alpha at which the
// interval there excludes the hypothesis, rounded up to the grid; 1 beyond the last look.
//
// Spending happens in steps, so a larger alpha may leave less for a later look, and the critical values of the grid
// need not ascend. So each level gets the largest critical value of all levels up to its own, and is raised to the
// error probability that this costs over all looks, if that is above its alpha. This makes the p valid at every
// stopping time: the probability that it is ever at most alpha, at any look, is at most alpha.
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
		l = g.newRepeatedGrid(g.stages(end))
		g.repeated[end] = l
	}
	return l.p(n, w)
}

// newRepeatedGrid computes the grid of these looks.
func (g *GroupSequential) newRepeatedGrid(columns []*column) repeatedGrid {
	alphas := make([]float64, gridPerDecade*gridDecades)
	for i := range alphas {
		alphas[i] = math.Pow(10, float64(i)/gridPerDecade-gridDecades)
	}
	l := repeatedGrid{level: alphas, values: map[int][]int{}}
	for _, s := range g.greedy(columns, alphas) {
		largest := -1
		for _, c := range s.at {
			largest = max(largest, c.W)
			l.values[s.n] = append(l.values[s.n], largest)
		}
	}
	spending := processLooks(columns, len(alphas), func(c *column, a int, spent float64, m mass) Critical {
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
