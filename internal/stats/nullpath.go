package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// The simulation of the null law: how many paths, how many steps of all paths at most, and the seed.
const (
	nullPaths = 200_000
	nullSteps = 8_000_000
	nullSeed  = 20260102
)

// A path is a sequence of differences as the signed-rank statistic sees it: the signs, in the order
// of the differences' sizes.
type path struct {
	lo, hi uint64 // bit r is 1 if the r-th smallest of the first 64, of the others, is positive
	n      int
	rank   int // W+, the sum of the ranks of the positive ones
	plus   int // the number of positive ones
}

// insert adds a difference that is larger in size than r of those before it.
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
	p.plus += int(sign)
	p.rank += int(sign)*(r+1) + above // those above move up by one
}

func insertBit(x uint64, r int, bit uint64) uint64 {
	below := uint64(1)<<r - 1
	return x&below | bit<<r | x>>r<<(r+1)
}

// least is min(W+, W-).
func (p *path) least() int { return min(p.rank, p.n*(p.n+1)/2-p.rank) }

// A column holds all simulated paths at one number of pairs.
//
// The signs are not fair coins there, for these hardly ever show what a small alpha asks for: each
// path tosses one coin of its own throughout, whose probability p of a plus is uniform on (0, 1). A
// path with k pluses among n then stands for (n+1) C(n,k) / 2^n paths of fair coins: the likelihood
// ratio, whose denominator is the integral of p^k (1-p)^(n-k).
type column struct {
	n      int
	least  []uint16  // by path: min(W+, W-)
	plus   []uint8   // by path: the number of pluses
	weight []float64 // by number of pluses
	exact  []float64 // by value of min(W+, W-): its probability
	total  []float64 // by value: the weight of all paths that have it
}

// column returns the paths after n pairs. They are the same paths for every n.
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

// simulate draws paths and keeps them at the numbers of pairs that are wanted.
func simulate(wanted []int, paths int) []*column {
	var columns []*column
	at := map[int]*column{}
	last := 0
	for _, n := range wanted {
		if at[n] == nil {
			at[n] = newColumn(n, paths)
			columns = append(columns, at[n])
			last = max(last, n)
		}
	}
	byStep := make([]*column, last+1)
	for n, c := range at {
		byStep[n] = c
	}
	random := rand.New(rand.NewPCG(nullSeed, 0))
	for i := range paths {
		// The steps of a path come from a generator of its own, so that they do not depend on where
		// it ends.
		steps := rand.NewPCG(random.Uint64(), random.Uint64())
		bound := steps.Uint64() >> 32
		var p path
		for n := 1; n <= last; n++ {
			u := steps.Uint64()
			sign := uint64(0)
			if u&math.MaxUint32 < bound {
				sign = 1
			}
			p.insert(int(u>>32*uint64(n)>>32), sign) // of n places, each as likely
			if c := byStep[n]; c != nil {
				c.keep(i, &p)
			}
		}
	}
	return columns
}

func newColumn(n, paths int) *column {
	c := &column{n: n, least: make([]uint16, paths), plus: make([]uint8, paths), weight: make([]float64, n+1)}
	for k := range c.weight {
		c.weight[k] = float64(n+1) * binomial(n, k, 0.5)
	}
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

func (c *column) keep(i int, p *path) {
	w := p.least()
	c.least[i], c.plus[i] = uint16(w), uint8(p.plus)
	c.total[w] += c.weight[p.plus]
}

// mass is the paths that have not crossed yet, at a look: for each value of min(W+, W-) and each
// alpha the share of the paths with this value.
type mass struct {
	column *column
	alphas int
	weight []float64 // alphas + 1 to a value
}

// crossing is the probability of the value w at this look and no crossing before. The value's
// probability alone is known exactly; the simulation says how much of it has not crossed before. What
// it has never seen counts in full.
func (m mass) crossing(w, a int) float64 {
	if m.column.total[w] == 0 {
		return m.column.exact[w]
	}
	return m.column.exact[w] * math.Max(0, m.weight[w*(m.alphas+1)+a]/m.column.total[w])
}

// walk goes through the looks. At each it asks for the critical value of every alpha, numbered from
// 0, given what was spent before and the mass that has not crossed; paths at or below it have crossed
// from then on.
func walk(columns []*column, alphas int, choose func(c *column, a int, spent float64, m mass) Critical) []stage {
	words := (alphas + 63) / 64
	crossed := make([]uint64, words*len(columns[0].least)) // by path: a bit for each alpha
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

// uncrossed adds up the weights of the paths that have not crossed. A path crosses for large alphas
// and not for small ones, with few exceptions: so it is filed at the alphas where that changes, and
// the sums over these are taken at the end.
func (c *column) uncrossed(crossed []uint64, alphas int) mass {
	words, row := (alphas+63)/64, alphas+1
	m := mass{c, alphas, make([]float64, row*len(c.exact))}
	for i, w := range c.least {
		weight, at := c.weight[c.plus[i]], m.weight[int(w)*row:][:row]
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
	for i, w := range c.least {
		for k := range words {
			crossed[i*words+k] |= crosses[int(w)*words+k]
		}
	}
}
