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

// Visible is what a primary comparison shows if the difference of a pair of runs has this standard deviation.
type Visible struct {
	Spread float64 `json:"spread"` // of a pair's log ratio
	// Change is the smallest that is shown with a probability of 80 %, as a fraction. Null: these
	// blocks can show nothing.
	Change compare.Number `json:"change"`
	// The blocks that are expected until there is a verdict, if the targets are alike and if they differ by delta.
	BlocksAlike     compare.Number `json:"blocks_alike"`
	BlocksDifferent compare.Number `json:"blocks_different"`
}

// Power is the probability with which a change has to be shown.
const Power = 0.8

// examples are the spreads of a quiet, a usual and a noisy path: how much pairs of runs differ is known only once some
// have been measured.
var examples = []float64{0.005, 0.02, 0.05}

// A test is how the comparisons of an experiment will be decided.
type test struct {
	design result.Design
	looks  stats.Design
}

func newTest(e result.Experiment) (test, error) {
	t := test{e.Design, stats.OneLook{}}
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

// at is what a comparison at error probability alpha sees at a spread.
func (t test) at(spread, alpha float64) Visible {
	v := Visible{Spread: spread, Change: t.change(spread, alpha, t.design.Blocks)}
	v.BlocksAlike, v.BlocksDifferent = compare.Number(t.design.Blocks), compare.Number(t.design.Blocks)
	if len(t.design.Looks) > 0 {
		margin := math.Log1p(t.design.Delta)
		v.BlocksAlike = compare.Number(stats.ExpectedPairs(spread, 0, margin, alpha, t.looks))
		v.BlocksDifferent = compare.Number(stats.ExpectedPairs(spread, margin, margin, alpha, t.looks))
	}
	return v
}

// change is the smallest that so many blocks show with a probability of 80 %.
func (t test) change(spread, alpha float64, blocks int) compare.Number {
	return compare.Number(math.Expm1(spread * stats.DetectableShift(blocks, alpha, Power, t.looks)))
}

// enough is the number of blocks, fixed beforehand, that shows delta with a probability of 80 %; 0 if
// no number that an experiment may have does.
func (t test) enough(spread, alpha float64) int {
	margin := math.Log1p(t.design.Delta)
	n := 1 + sort.Search(MaxBlocks, func(i int) bool {
		return spread*stats.DetectableShift(1+i, alpha, Power, stats.OneLook{}) <= margin
	})
	if n > MaxBlocks {
		return 0
	}
	return n
}

// Comparisons is the number of primary comparisons, among which alpha is shared.
func Comparisons(e result.Experiment) int {
	contests := len(e.Targets) - 1
	if e.Design.AllPairs {
		contests = len(e.Targets) * (len(e.Targets) - 1) / 2
	}
	n := 0
	for _, c := range e.Cases {
		if c.Role == result.Primary {
			n += contests
		}
	}
	return n
}

// TooFew is a warning about a design in which no primary comparison can get a verdict, whatever is measured; empty
// where one can.
func TooFew(e result.Experiment) (string, error) {
	n := Comparisons(e)
	if n == 0 {
		return "", nil
	}
	t, err := newTest(e)
	if err != nil {
		return "", err
	}
	alpha := e.Design.Alpha / float64(n)
	if first := stats.MinPairs(alpha, t.looks); first > 0 && first <= e.Design.Blocks {
		return "", nil
	}
	what, instead := "the primary comparison", "--blocks"
	if n > 1 {
		what = fmt.Sprintf("any of the %d primary comparisons, which share alpha", n)
	}
	if len(e.Design.Looks) > 0 {
		instead = "a last look after"
	}
	// The last of several looks may spend all of alpha where none before it can decide anything, as a single one may.
	least := stats.MinPairs(alpha, stats.OneLook{})
	if least == 0 {
		return fmt.Sprintf("no number of blocks gives a verdict on %s, at --alpha %g; take a larger one",
			what, e.Design.Alpha), nil
	}
	return fmt.Sprintf("%s cannot give a verdict on %s; it takes %s %d or more",
		unit.Plural(e.Design.Blocks, "block"), what, instead, least), nil
}
