package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// The simulation of the null distribution: the number of paths, the maximum number of steps of all paths, and the seed.
const (
	nullPaths = 120_000
	nullSteps = 4_800_000
	nullSeed  = 20260102
)

// tilts is the number of sampling distributions that paths are drawn from; see [column].
const tilts = 8

// tilt returns the strength of tilt k: the logarithm of the odds of a minus at the highest rank. The tilts range from
// fair coins to hardly any plus.
func tilt(k int) float64 { return [tilts]float64{0, 1, 2, 3.5, 5.5, 8, 12, 20}[k] }

// A path is a simulated sequence of differences, reduced to what the signed-rank statistic depends on: the signs in the
// order of the differences' sizes.
type path struct {
	lo, hi uint64 // bit r of lo, and r-64 of hi, is 1 if the r-th smallest difference is positive
	n      int
	rank   int // W+, the sum of the ranks of the positive differences
	// likelihood has, for each tilt, the probability of the signs so far relative to fair coins.
	likelihood [tilts]float64
}

func newPath() path {
	var p path
	for k := range p.likelihood {
		p.likelihood[k] = 1
	}
	return p
}

// insert adds a difference that is larger in size than r earlier ones; sign is 1 if it is positive and 0 if it is
// negative.
func (p *path) insert(r int, sign uint64) {
	carry := p.lo >> 63
	var above int
	if r < 64 {
		above = bits.OnesCount64(p.lo>>r) + bits.OnesCount64(p.hi)
		p.hi = p.hi<<1 | carry
		p.lo = insertBit(p.lo, r, sign)
	} else {
		above = bits.OnesCount64(p.hi >> (r - 64))
		p.hi = insertBit(p.hi, r-64, sign)
	}
	p.n++
	p.rank += int(sign)*(r+1) + above // the ranks above grow by one
}

// insertBit inserts a bit at position r of x and shifts the higher bits up by one.
func insertBit(x uint64, r int, bit uint64) uint64 {
	below := uint64(1)<<r - 1
	return x&below | bit<<r | x>>r<<(r+1)
}

// weight returns the number of fair-coin paths that the path represents.
func (p *path) weight() float64 {
	all := 0.0
	for _, v := range p.likelihood {
		all += v
	}
	return tilts / all
}

// A column holds all simulated paths at one number of pairs.
//
// Fair coins would hardly ever reach the critical region of a small alpha, so paths are drawn by importance sampling:
// each path has one of several tilts, and a difference whose size has rank r of n gets a minus with the odds exp(tilt
// (r - 1/2) / n). Its weight is the likelihood ratio of its signs against the mean over all tilts. The tilts make W+
// small; small values of W- follow by symmetry.
type column struct {
	n      int
	rank   []uint16  // by path: W+
	weight []float32 // by path
	exact  []float64 // probability of each value of min(W+, W-)
	total  []float64 // by value of W+: total weight of the paths that have it
}

// least returns min(W+, W-).
func (c *column) least(rank uint16) int { return min(int(rank), c.n*(c.n+1)/2-int(rank)) }

// column returns the paths after n pairs. The paths are the same for every n.
func (g *GroupSequential) column(n int) *column {
	if g.columns[n] == nil {
		wanted := []int{n}
		if len(g.columns) == 0 {
			wanted = append(wanted, g.looks...)
		}
		for _, c := range simulate(wanted, min(nullPaths, nullSteps/g.last())) {
			g.columns[c.n] = c
		}
	}
	return g.columns[n]
}

// simulate draws paths and records them at the wanted numbers of pairs.
func simulate(wanted []int, paths int) []*column {
	last := slices.Max(wanted)
	columns := make([]*column, last+1) // by step
	for _, n := range wanted {
		columns[n] = newColumn(n, paths)
	}
	random := rand.New(rand.NewPCG(nullSeed, 0))
	coins := newCoins(last)
	for i := range paths {
		// Each path has its own generator, so that its steps do not depend on its length.
		steps, p := rand.NewPCG(random.Uint64(), random.Uint64()), newPath()
		for n := 1; n <= last; n++ {
			p.toss(steps.Uint64(), i%tilts, coins)
			if c := columns[n]; c != nil {
				c.keep(i, &p)
			}
		}
	}
	return slices.DeleteFunc(columns, func(c *column) bool { return c == nil })
}

// toss adds a random difference: half of the random bits choose its rank among the earlier ones, uniformly, the others
// its sign.
func (p *path) toss(random uint64, tilt int, coins []coin) {
	n := uint64(p.n + 1)
	r := random >> 32 * n >> 32
	c := &coins[n*(n-1)/2+r]
	sign := uint64(0)
	if float64(random&math.MaxUint32)/(1<<32) < c[1][tilt]/2 {
		sign = 1
	}
	for k, v := range c[sign] {
		p.likelihood[k] *= v
	}
	p.insert(int(r), sign)
}

// A coin holds the probabilities of a minus and of a plus for each tilt, relative to those of a fair coin.
type coin [2][tilts]float64

// newCoins returns the coins for all ranks r of n, up to the last n; the coin of n and r has index n(n-1)/2 + r.
func newCoins(last int) []coin {
	var coins []coin
	for n := 1; n <= last; n++ {
		for r := range n {
			var c coin
			for k := range tilts {
				plus := 1 / (1 + math.Exp(tilt(k)*(float64(r)+0.5)/float64(n)))
				c[0][k], c[1][k] = 2-2*plus, 2*plus
			}
			coins = append(coins, c)
		}
	}
	return coins
}

func newColumn(n, paths int) *column {
	c := &column{n: n, rank: make([]uint16, paths), weight: make([]float32, paths)}
	all := signDistribution(firstRanks(n))
	c.exact = all[:(len(all)+1)/2]
	for w := range c.exact {
		if w != len(all)-1-w {
			c.exact[w] *= 2 // W+ or W-
		}
	}
	c.total = make([]float64, len(c.exact))
	return c
}

// keep records path i.
func (c *column) keep(i int, p *path) {
	c.rank[i], c.weight[i] = uint16(p.rank), float32(p.weight())
	if p.rank < len(c.total) {
		c.total[p.rank] += float64(c.weight[i])
	}
}

// A mass holds the total weight of the paths that crossed no critical value before a look, for each value of W+ up to
// the middle and each alpha.
type mass struct {
	column *column
	alphas int
	weight []float64 // alphas + 1 entries for each value
}

// crossing returns the probability, for alpha number a, of the value w at this look without an earlier crossing. The
// probability of the value itself is known exactly; the simulation estimates the share of it that has not crossed
// before. A value that never occurred in the simulation counts in full.
func (m mass) crossing(w, a int) float64 {
	if m.column.total[w] == 0 {
		return m.column.exact[w]
	}
	return m.column.exact[w] * math.Max(0, m.weight[w*(m.alphas+1)+a]/m.column.total[w])
}

// processLooks processes the looks in order. At each it calls choose for the critical value of every alpha, numbered
// from 0, given the error probability spent before and the mass that has not crossed; paths at or below that value
// count as crossed from then on.
func processLooks(
	columns []*column, alphas int, choose func(c *column, a int, spent float64, m mass) Critical,
) []stage {
	words := (alphas + 63) / 64
	crossed := make([]uint64, words*len(columns[0].rank)) // by path: a bit for each alpha
	spent := make([]float64, alphas)
	var stages []stage
	for _, c := range columns {
		m := c.uncrossed(crossed, alphas)
		s := stage{n: c.n, at: make([]Critical, alphas)}
		for a := range s.at {
			s.at[a] = choose(c, a, spent[a], m)
			spent[a] = s.at[a].Alpha
		}
		c.cross(crossed, s.at)
		stages = append(stages, s)
	}
	return stages
}

// uncrossed sums the weights of the paths that have not crossed. A path crosses for large alphas and not for small
// ones, with few exceptions, so it is recorded only at the alphas where that changes; a final pass computes the
// cumulative sums.
func (c *column) uncrossed(crossed []uint64, alphas int) mass {
	words, row := (alphas+63)/64, alphas+1
	m := mass{c, alphas, make([]float64, row*len(c.exact))}
	for i, w := range c.rank {
		if int(w) >= len(c.exact) {
			continue // its mirror image is among the others
		}
		weight, at := float64(c.weight[i]), m.weight[int(w)*row:][:row]
		before := uint64(0)
		for k, word := range crossed[i*words : (i+1)*words] {
			alive := ^word
			for turns := alive ^ (alive<<1 | before); turns != 0; turns &= turns - 1 {
				b := bits.TrailingZeros64(turns)
				sign := float64(int(alive>>b&1)*2 - 1)
				if a := k*64 + b; a < alphas {
					at[a] += sign * weight
				}
			}
			before = alive >> 63
		}
	}
	for w := range c.exact {
		at := m.weight[w*row:][:row]
		for a := 1; a < alphas; a++ {
			at[a] += at[a-1]
		}
	}
	return m
}

// cross marks the paths that cross at this look.
func (c *column) cross(crossed []uint64, at []Critical) {
	words := (len(at) + 63) / 64
	crosses := make([]uint64, words*len(c.exact)) // by value of min(W+, W-)
	for a, crit := range at {
		for w := 0; w <= crit.W; w++ {
			crosses[w*words+a/64] |= 1 << (a % 64)
		}
	}
	for i, rank := range c.rank {
		w := c.least(rank)
		for k := range words {
			crossed[i*words+k] |= crosses[w*words+k]
		}
	}
}
