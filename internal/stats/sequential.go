package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// ErrLooks is wrapped by errors about invalid looks of a [GroupSequential].
var ErrLooks = errors.New("looks of a sequential design")

// leastLook and mostLook limit the numbers of pairs of a [GroupSequential].
const leastLook, mostLook = 2, exactPairs

// A GroupSequential is a design with several looks declared beforehand, at each of which the experiment may stop. Its
// intervals are repeated confidence intervals: with probability 1 - alpha all of them cover the true shift, so that one
// may stop at any look for any reason (Jennison and Turnbull, Group Sequential Methods, 2000, chapter 9).
//
// Up to the look after n pairs it may spend alpha ln(1 + (e-1) n/last) of the error probability, the Pocock-type
// function of Lan and DeMets (Discrete Sequential Boundaries for Clinical Trials, Biometrika 70, 1983). The joint null
// distribution of the looks is that of ranks that arrive in random order, each with a fair coin for its sign. It holds
// for every symmetric distribution of the differences that stays the same from pair to pair. Noise that grows fourfold
// during the experiment turns an alpha of 5 % into 5.6 %; shrinking noise, bursts and heavy tails have no effect. The
// distribution is simulated with a fixed seed at first use, which takes about a tenth of a second and some megabytes
// for looks up to 30. The resulting error probabilities are accurate to 1 % of their value up to 30 pairs, so a
// critical value that is that close to its limit may be off by one.
//
// A GroupSequential is safe for concurrent use and must not be copied.
type GroupSequential struct {
	looks []int

	mu         sync.Mutex // guards the caches below
	columns    map[int]*column
	boundaries map[boundaryKey]Critical
	repeated   map[int]repeatedGrid
}

// A boundaryKey identifies a cached critical value.
type boundaryKey struct {
	n     int
	alpha float64
}

// NewGroupSequential returns the design with looks after these numbers of pairs, which must ascend, each from 2 to 100.
// The error wraps [ErrLooks].
func NewGroupSequential(looks []int) (*GroupSequential, error) {
	if len(looks) == 0 {
		return nil, fmt.Errorf("%w: there is none; give the numbers of pairs to look at", ErrLooks)
	}
	for i, n := range looks {
		switch {
		case n < leastLook || n > mostLook:
			return nil, fmt.Errorf("%w: a look after %d pairs is not from %d to %d", ErrLooks, n, leastLook, mostLook)
		case i > 0 && n <= looks[i-1]:
			return nil, fmt.Errorf("%w: %d comes after %d; they must ascend", ErrLooks, n, looks[i-1])
		}
	}
	return &GroupSequential{
		looks: slices.Clone(looks), columns: map[int]*column{},
		boundaries: map[boundaryKey]Critical{}, repeated: map[int]repeatedGrid{},
	}, nil
}

// Looks returns the declared numbers of pairs.
func (g *GroupSequential) Looks() []int { return slices.Clone(g.looks) }

// last returns the largest number of pairs.
func (g *GroupSequential) last() int { return g.looks[len(g.looks)-1] }

// Critical returns the critical value at the look after n pairs: the largest c for which the probability of crossing
// here, min(W+, W-) <= c, and at no earlier look is at most the spending allowed up to here minus the actual spending
// of the earlier looks, each with its own critical value. Alpha of the result is the spending of all looks up to this
// one.
//
// If n lies between two looks, the experiment ended early: n counts as the last look after those before it, and the
// experiment cannot continue from there. Beyond the last look, and below 1, nothing can be rejected.
func (g *GroupSequential) Critical(n int, alpha float64) Critical {
	if n < 1 || n > g.last() || !(alpha > 0 && alpha < 1) {
		return Critical{W: -1}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, known := g.boundaries[boundaryKey{n, alpha}]; known {
		return c
	}
	end := n
	if slices.Contains(g.looks, n) {
		end = g.last() // all looks at once: they share the work
	}
	for _, s := range g.greedy(g.stages(end), []float64{alpha}) {
		g.boundaries[boundaryKey{s.n, alpha}] = s.at[0]
	}
	return g.boundaries[boundaryKey{n, alpha}]
}

// stages returns the columns of the looks up to n pairs, and of n.
func (g *GroupSequential) stages(n int) []*column {
	var list []*column
	for _, look := range upTo(g.looks, n) {
		list = append(list, g.column(look))
	}
	return list
}

// upTo returns the looks below n, and n.
func upTo(looks []int, n int) []int {
	i, _ := slices.BinarySearch(looks, n)
	return append(slices.Clone(looks[:i]), n)
}

// spendable returns the error probability that may be spent up to n pairs.
func (g *GroupSequential) spendable(n int, alpha float64) float64 {
	return math.Min(alpha, alpha*math.Log1p((math.E-1)*float64(n)/float64(g.last())))
}

// A stage is a look with its critical values, one for each alpha.
type stage struct {
	n  int
	at []Critical
}

// greedy computes the critical values look by look, each as large as the spending allows.
func (g *GroupSequential) greedy(columns []*column, alphas []float64) []stage {
	return processLooks(columns, len(alphas), func(c *column, a int, spent float64, m mass) Critical {
		crit := Critical{W: -1, Alpha: spent}
		for w := range c.exact {
			spent += m.crossing(w, a)
			if spent > g.spendable(c.n, alphas[a]) {
				break
			}
			crit = Critical{W: w, Alpha: spent}
		}
		return crit
	})
}
