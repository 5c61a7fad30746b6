package compare

import (
	"math"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// minUnpaired is the number of runs on each side below which an unpaired comparison has no verdict.
const minUnpaired = 6

// muchWider is the factor from which on a row says how much wider its interval is because its runs are not independent.
const muchWider = 1.5

// A sides holds the values of one metric on the baseline and on a target. Paired values are in the order of blocks, and
// both slices have the same length.
type sides struct {
	blocks           []int
	baseline, target []float64
	look             stats.Design // design of the looks; nil if the values are not paired
	unused           int          // pairs after the look, which do not count
	awaited          int          // planned blocks, if the experiment ended before its single look; otherwise 0
}

// settle returns s with values made equal that differ only in their last bits.
func (s sides) settle() sides {
	both := stats.EqualiseRounding(s.baseline, s.target)
	s.baseline, s.target = both[0], both[1]
	return s
}

// firstPairs returns s with its first n pairs only.
func (s sides) firstPairs(n int) sides {
	s.unused = len(s.blocks) - n
	s.blocks, s.baseline, s.target = s.blocks[:n], s.baseline[:n], s.target[:n]
	return s
}

// upToLook returns s with the pairs of a case on two or more targets that count, and sets the design. Looks are numbers
// of pairs, and a case may have fewer pairs than blocks. If the case stopped or is analysed at a look before the last,
// the first pairs count, up to the last look that there are enough pairs for; below the first look there is no
// interval. If the case has all planned blocks, or the experiment with looks ended before it was decided, all pairs
// count, as at a last look. A fixed number of blocks is a single look: before it there is no interval.
func (t *runTable) upToLook(s sides, caseName string, targets ...string) sides {
	s.look = t.look
	if len(t.e.Design.Looks) == 0 {
		if !t.hasAllBlocks(caseName, targets...) {
			s.look, s.awaited = stats.PlannedPairs(t.e.Design.Blocks), t.e.Design.Blocks
		}
		return s
	}
	at := t.lookBlocks
	if end := t.stoppedAfter[caseName]; end != 0 {
		at = end
	}
	if at == 0 || at >= t.e.Design.Blocks {
		return s
	}
	reached := stats.Reached(t.look, len(s.blocks))
	if reached == 0 {
		s.look = stats.DesignFromFirstLook{Design: t.look}
		return s
	}
	return s.firstPairs(reached)
}

// hasAllBlocks reports whether a case gets no more blocks on these targets: it was measured on each of them in the last
// planned block, or is given up.
func (t *runTable) hasAllBlocks(caseName string, targets ...string) bool {
	last := t.lastAttempt[caseName][t.e.Design.Blocks]
	all := true
	for _, name := range targets {
		if !isMeasured(t.e, caseName, name) {
			return true
		}
		r, measured := last[name]
		all = all && measured && r.Valid()
	}
	return all
}

// sides collects the values of a row's metric from the valid runs of its case: those of the blocks that both targets
// have, or all of them if runs are not paired. It is not ok if the sides do not measure the same thing.
func (t *runTable) sides(r *Row) (s sides, ok bool) {
	a, b := t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target)
	if t.paired() {
		return t.pairs(r, a, b)
	}
	x, okX := r.values(a)
	y, okY := r.values(b)
	s = sides{baseline: x, target: y}.settle()
	var steps []float64
	for _, runs := range []map[int]*result.Run{a, b} {
		for _, run := range runs {
			if v, has := valueIn(run, r.quantity()); has {
				steps = append(steps, v.Step)
			}
		}
	}
	r.step = stepOf(steps, s.baseline, s.target)
	return s, okX && okY
}

// pairs collects the values of a row's metric from the blocks with a valid run on both sides.
func (t *runTable) pairs(r *Row, a, b map[int]*result.Run) (s sides, ok bool) {
	broken := 0
	var steps []float64
	same := func(v result.Value) bool { return v.Unit == r.Unit && v.Better == r.Better }
	for _, n := range blocks(a, b) {
		x, okX := a[n].Value(r.Metric)
		y, okY := b[n].Value(r.Metric)
		if okX && !same(x) || okY && !same(y) {
			r.warn(Warning{Code: BlockUnitDiffers, Block: n, Metrics: []string{r.Metric}, Units: []unit.Unit{x.Unit, y.Unit}})
			return sides{}, false
		}
		if !okX || !okY || !x.Usable() || !y.Usable() {
			broken++
			continue
		}
		s.blocks = append(s.blocks, n)
		s.baseline = append(s.baseline, x.Number)
		s.target = append(s.target, y.Number)
		steps = append(steps, x.Step, y.Step)
	}
	if broken > 0 {
		r.warn(Warning{Code: BlocksUnusable, Count: broken, Metrics: []string{r.Metric}})
	}
	s = t.upToLook(s.settle(), r.Case, r.Baseline, r.Target)
	r.step = stepOf(steps, s.baseline, s.target)
	r.awaited = s.awaited
	if s.unused > 0 {
		r.warn(Warning{Code: PairsPastLook, Count: len(s.blocks), Of: len(s.blocks) + s.unused})
	}
	return s, true
}

// values collects a row's metric from runs in order of blocks. It is not ok if runs disagree on the unit.
func (r *Row) values(runs map[int]*result.Run) (values []float64, ok bool) {
	var without []string
	for _, n := range blocks(runs, runs) {
		v, has := valueIn(runs[n], r.quantity())
		switch {
		case !has || !v.Usable():
			without = append(without, runs[n].ID)
		case !matches(v, r.quantity()):
			r.warn(Warning{Code: RunUnitDiffers, Runs: []string{runs[n].ID}, Metrics: []string{r.Metric},
				Units: []unit.Unit{v.Unit, r.Unit}})
			return nil, false
		default:
			values = append(values, v.Number)
		}
	}
	if len(without) > 0 {
		r.warn(Warning{Code: RunsUnusable, Runs: without, Metrics: []string{r.Metric}})
	}
	return values, true
}

// quantity identifies what the row is about: its metric in its unit.
func (r *Row) quantity() result.Value {
	return result.Value{Metric: r.Metric, Unit: r.Unit, Better: r.Better}
}

func (s sides) paired() bool { return s.look != nil }

// logRatios returns ln(target / baseline) of each pair, NaN if a value is not above 0; all reports whether every pair
// has one.
func (s sides) logRatios() (logs []float64, all bool) {
	logs, all = make([]float64, len(s.blocks)), true
	for i := range logs {
		logs[i] = math.NaN()
		if s.baseline[i] > 0 && s.target[i] > 0 {
			// Not the logarithm of the quotient, which may overflow.
			logs[i] = math.Log(s.target[i]) - math.Log(s.baseline[i])
		}
		all = all && !math.IsNaN(logs[i])
	}
	return logs, all
}

// ratio estimates the logarithm of target / baseline: paired by blocks, or unpaired by the Mann-Whitney test and its
// shift interval, which is wider where successive runs resemble each other. It is not ok without values, or if a value
// is not above 0.
func (s sides) ratio(alpha float64) (e stats.Estimate, ok bool) {
	if len(s.baseline) == 0 || len(s.target) == 0 || notPositive(s.baseline)+notPositive(s.target) > 0 {
		return e, false
	}
	if !s.paired() {
		return stats.UnpairedSeries(logarithms(s.baseline), logarithms(s.target), alpha), true
	}
	logs, _ := s.logRatios()
	return stats.Paired(logs, alpha, s.look), true
}

// shift estimates target - baseline, as ratio does.
func (s sides) shift(alpha float64) stats.Estimate {
	if !s.paired() {
		return stats.UnpairedSeries(s.baseline, s.target, alpha)
	}
	differences := make([]float64, len(s.blocks))
	for i := range differences {
		differences[i] = s.target[i] - s.baseline[i]
	}
	return stats.Paired(differences, alpha, s.look)
}

// equivalenceP returns the p of the hypothesis that the change is delta or more in either direction: the larger p of
// the two tests against the margins, each two-sided so that it agrees with the interval. shift is the estimate.
func (s sides) equivalenceP(shift, delta float64) float64 {
	upper, lower := math.Log1p(delta), math.Log1p(-delta)
	if !(shift > lower && shift < upper) {
		return 1
	}
	return math.Max(s.ratioP(upper), s.ratioP(lower))
}

// ratioP returns the p of the hypothesis that the logarithm of target / baseline has the value at.
func (s sides) ratioP(at float64) float64 {
	if s.paired() {
		logs, _ := s.logRatios()
		return stats.SignP(logs, at, s.look)
	}
	moved := logarithms(s.target)
	for i := range moved {
		moved[i] -= at
	}
	return stats.UnpairedSeries(logarithms(s.baseline), moved, 0.5).P
}

// decidable reports whether the sides may give a verdict: unpaired ones only if there are enough of them and none
// drift.
func (s sides) decidable() bool {
	return s.paired() || min(len(s.baseline), len(s.target)) >= minUnpaired && !s.drift()
}

// drift reports whether the runs of unpaired sides rise or fall from run to run, on one side or on both alike, which no
// interval covers: what goes on from the one to the other looks like a difference. Each of the three tests is at
// driftAlpha; together they find a drift in about 2.5 % of steady rows.
func (s sides) drift() bool {
	return min(stats.TrendP(s.baseline), stats.TrendP(s.target), stats.TrendP(s.baseline, s.target)) <= driftAlpha
}

func notPositive(values []float64) int {
	n := 0
	for _, v := range values {
		if v <= 0 {
			n++
		}
	}
	return n
}

func logarithms(values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return logs
}
