package plan

import (
	"fmt"
	"math"
	"sort"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Detectable is what a primary comparison can detect, given the spread of its pairs: the two runs of a case on two
// targets in one block.
type Detectable struct {
	Spread float64 `json:"spread"` // standard deviation of the logarithm of a pair's ratio
	// Change is the smallest change that is detected with a probability of 80 %, as a fraction; null in JSON if no change
	// can be detected, however large.
	Change compare.Number `json:"change"`
	// The expected number of blocks after which the comparison ends, if the targets are alike or differ by delta, the
	// smallest change that matters. Without looks it is the planned number.
	BlocksAlike     compare.Number `json:"blocks_alike"`
	BlocksDifferent compare.Number `json:"blocks_different"`
}

// Power is the probability with which [Detectable.Change] is detected.
const Power = 0.8

// exampleSpreads are those of a quiet, a usual and a noisy network path, for plans without earlier results.
var exampleSpreads = []float64{0.005, 0.02, 0.05}

// A verdictTest is the statistical test by which the comparisons of an experiment will be decided.
type verdictTest struct {
	design result.Design
	looks  stats.Design // after how many pairs the data are analysed
}

func newVerdictTest(e result.Experiment) (verdictTest, error) {
	t := verdictTest{e.Design, stats.OneLook{}}
	if len(e.Design.Looks) == 0 {
		return t, nil
	}
	g, err := stats.NewGroupSequential(e.Design.Looks)
	if err != nil {
		return t, fmt.Errorf("--looks: %w", err)
	}
	t.looks = g
	return t, nil
}

// detectable returns what a comparison at error probability alpha can detect, given the spread of its pairs.
func (t verdictTest) detectable(spread, alpha float64) Detectable {
	v := Detectable{Spread: spread, Change: t.change(spread, alpha, t.design.Blocks)}
	v.BlocksAlike, v.BlocksDifferent = compare.Number(t.design.Blocks), compare.Number(t.design.Blocks)
	if len(t.design.Looks) > 0 {
		margin := math.Log1p(t.design.Delta)
		v.BlocksAlike = compare.Number(stats.ExpectedPairs(spread, 0, margin, alpha, t.looks))
		v.BlocksDifferent = compare.Number(stats.ExpectedPairs(spread, margin, margin, alpha, t.looks))
	}
	return v
}

// change returns the smallest change that a number of blocks detects with a probability of 80 %, as a fraction.
func (t verdictTest) change(spread, alpha float64, blocks int) compare.Number {
	return compare.Number(math.Expm1(spread * stats.DetectableShift(blocks, alpha, Power, t.looks)))
}

// sufficientBlocks returns the number of blocks, without looks, that detects delta with a probability of 80 %; 0 if
// it is more than MaxBlocks.
func (t verdictTest) sufficientBlocks(spread, alpha float64) int {
	margin := math.Log1p(t.design.Delta)
	n := 1 + sort.Search(MaxBlocks, func(i int) bool {
		return spread*stats.DetectableShift(1+i, alpha, Power, stats.OneLook{}) <= margin
	})
	if n > MaxBlocks {
		return 0
	}
	return n
}

// Comparisons returns the number of primary comparisons, over which alpha is divided evenly.
func Comparisons(e result.Experiment) int {
	perCase := len(e.Targets) - 1 // every other target with the baseline
	if e.Design.AllPairs {
		perCase = len(e.Targets) * (len(e.Targets) - 1) / 2
	}
	n := 0
	for _, c := range e.Cases {
		if c.Role == result.Primary {
			n += perCase
		}
	}
	return n
}

// TooFew returns a warning if no primary comparison can get a verdict with this design, whatever is measured; else it
// returns the empty string.
func TooFew(e result.Experiment) (string, error) {
	n := Comparisons(e)
	if n == 0 {
		return "", nil
	}
	t, err := newVerdictTest(e)
	if err != nil {
		return "", err
	}
	alpha := e.Design.Alpha / float64(n)
	// first is the first look at which a verdict is possible.
	if first := stats.MinPairs(alpha, t.looks); first > 0 && first <= e.Design.Blocks {
		return "", nil
	}
	what, remedy := "the primary comparison", "--blocks"
	if n > 1 {
		what = fmt.Sprintf("any of the %d primary comparisons, which share alpha", n)
	}
	if len(e.Design.Looks) > 0 {
		remedy = "a last look after"
	}
	// If no earlier look can decide anything, the last one may use the whole error probability, like a single look.
	least := stats.MinPairs(alpha, stats.OneLook{})
	if least == 0 {
		return fmt.Sprintf("no number of blocks gives a verdict on %s, at --alpha %g; take a larger alpha",
			what, e.Design.Alpha), nil
	}
	return fmt.Sprintf("%s cannot give a verdict on %s; it takes %s %d or more",
		unit.Plural(e.Design.Blocks, "block"), what, remedy, least), nil
}
