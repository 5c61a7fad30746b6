package compare

import (
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// defaultPower is the probability of detecting a change that is called detectable.
const defaultPower = 0.8

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

// A targetPair is two targets that are compared.
type targetPair struct{ baseline, target string }

// plannedPairs lists the planned pairs of targets, those with the baseline first. Of two other targets, the one that
// the plan names first takes the role of the baseline.
func plannedPairs(e result.Experiment) []targetPair {
	var others []string
	var all []targetPair
	for _, x := range e.Targets {
		if x.Name != e.Baseline {
			others = append(others, x.Name)
			all = append(all, targetPair{e.Baseline, x.Name})
		}
	}
	if !e.Design.AllPairs {
		return all
	}
	for i, first := range others {
		for _, second := range others[i+1:] {
			all = append(all, targetPair{first, second})
		}
	}
	return all
}

// compareCase returns a row for each metric of a case on two targets.
func (t *runTable) compareCase(rc result.Case, v targetPair) []Row {
	a, b := t.valid(rc.Name, v.baseline), t.valid(rc.Name, v.target)
	// A case that was given up later keeps its earlier blocks.
	if (!isMeasured(t.e, rc.Name, v.target) || !isMeasured(t.e, rc.Name, v.baseline)) && !shareBlock(a, b) {
		return nil
	}
	var rows []Row
	for _, value := range withPlanned(rc, metrics(rc.Metric, a, b)) {
		r := newRow(t.e.Design, rc, value, v)
		alpha := r.intervalAlpha(t.e.Design, countPrimaryPlanned(t.e))
		r.atLastLook = t.isLastLook(rc.Name)
		s, ok := t.pair(&r, value, a, b)
		if ok {
			r.fill(s, alpha, t.e.Design.Delta)
			r.UpperBound = upperBound(rc, r, v, t)
		}
		if r.Metric == rc.Metric {
			t.addDoubts(&r, s)
		}
		r.Warnings = append(r.Warnings, t.auditWarnings(rc.Name, r.Metric, "", v.baseline, v.target)...)
		rows = append(rows, r)
	}
	return rows
}

// withPlanned adds the case's own metric if a verdict is planned on it, so that it is never missing from the table.
func withPlanned(rc result.Case, found []result.Value) []result.Value {
	if rc.Role == result.Primary && (len(found) == 0 || found[0].Metric != rc.Metric) {
		return slices.Insert(found, 0, result.Value{Metric: rc.Metric})
	}
	return found
}

// newRow returns a row without data.
func newRow(d result.Design, rc result.Case, v result.Value, of targetPair) Row {
	r := Row{
		Case: rc.Name, Metric: v.Metric, Unit: v.Unit, Better: v.Better, Role: result.Exploratory,
		Target: of.target, Baseline: of.baseline,
		BaselineMedian: Missing(), TargetMedian: Missing(), Change: Missing(), CI: unbounded(),
		Verdict: Undecided, Direction: None, Warnings: []Warning{}, Level: 1 - d.Alpha, Attained: 1,
		P: Missing(), Q: Missing(), Spread: Missing(), Detectable: Missing(), Pairs: []Pair{}, equivalenceP: 1,
		BaselineQuartiles: [2]Number{Missing(), Missing()}, TargetQuartiles: [2]Number{Missing(), Missing()},
	}
	if rc.Role == result.Primary && v.Metric == rc.Metric {
		r.Role = result.Primary
	}
	return r
}

// Reversed returns the row with baseline and target exchanged. The log ratio, and so its estimate and interval, changes
// only its sign, and the verdict stays, except where the inverse of an equivalent change exceeds delta: -1.99 % becomes
// +2.03 %. The result has no pairs, sentence or reference, and no warnings but that of [Row.Withheld].
func (r Row) Reversed(delta float64) Row {
	reason, withheld := r.Withheld()
	r.Baseline, r.Target = r.Target, r.Baseline
	r.BaselineMedian, r.TargetMedian = r.TargetMedian, r.BaselineMedian
	r.BaselineQuartiles, r.TargetQuartiles = r.TargetQuartiles, r.BaselineQuartiles
	inverse := func(change float64) float64 {
		switch {
		case change <= -1: // also for an unbounded end
			return math.Inf(1)
		case math.IsInf(change, 1):
			return math.Inf(-1)
		}
		return 1/(1+change) - 1
	}
	r.Change = Number(inverse(float64(r.Change)))
	r.CI.Lo, r.CI.Hi = inverse(r.CI.Hi), inverse(r.CI.Lo)
	if r.Shift != nil {
		r.Shift = &Shift{-r.Shift.Estimate, Interval{-r.Shift.CI.Hi, -r.Shift.CI.Lo}}
	}
	switch r.Direction {
	case BetterThan:
		r.Direction = WorseThan
	case WorseThan:
		r.Direction = BetterThan
	}
	if r.Verdict == Equivalent && !r.CI.Within(delta) {
		r.Verdict = Undecided
		if r.Direction != None && r.CI.Excludes(0) {
			r.Verdict = Different
		}
	}
	r.Pairs, r.Warnings, r.Sentence, r.UpperBound = nil, nil, "", nil
	if withheld {
		if reason.Code == FewRuns {
			reason.Count, reason.Of = reason.Of, reason.Count
		}
		r.Warnings = []Warning{reason}
	}
	return r
}

// Withheld returns the warning that explains why a row is undecided although its interval excludes zero; false for
// other rows.
func (r Row) Withheld() (Warning, bool) {
	if !r.undecidedBeyondZero() {
		return Warning{}, false
	}
	i := slices.IndexFunc(r.Warnings, func(w Warning) bool {
		return w.Code == FewRuns || w.Code == Drift || w.Code == OneOfMany || w.Code == NoRatio
	})
	if i < 0 {
		return Warning{}, false
	}
	return r.Warnings[i], true
}

// undecidedBeyondZero reports whether the row is undecided although its interval excludes zero.
func (r Row) undecidedBeyondZero() bool {
	return r.Verdict == Undecided && (r.CI.Excludes(0) || r.Shift != nil && r.Shift.CI.Excludes(0))
}

// intervalAlpha returns the error probability of the row's interval.
func (r Row) intervalAlpha(d result.Design, primaries int) float64 {
	if r.Role == result.Primary {
		return d.Alpha / float64(primaries)
	}
	return d.Alpha
}

// addDetectable sets the smallest change that the planned blocks detect with the default power, at the observed spread
// of the pairs.
func addDetectable(rows []Row, t *runTable, primaries int) {
	for i := range rows {
		r := &rows[i]
		if !r.Spread.Known() {
			continue
		}
		r.Detectable = t.detectable(float64(r.Spread), r.intervalAlpha(t.e.Design, primaries))
	}
}

// detectable returns the smallest change that the planned blocks detect with the default power, missing if there is
// none. In standard deviations it depends only on the number of blocks and alpha; it is simulated once for each alpha.
func (t *runTable) detectable(spread, alpha float64) Number {
	shift, seen := t.detectableShifts[alpha]
	if !seen {
		shift = stats.DetectableShift(t.e.Design.Blocks, alpha, defaultPower, t.look)
		t.detectableShifts[alpha] = shift
	}
	if least := Number(fraction(shift * spread)); least.Known() {
		return least
	}
	return Missing()
}

// pair collects the values of a metric from the blocks with a valid run on both sides. It is not ok if the sides do not
// measure the same thing.
func (t *runTable) pair(r *Row, v result.Value, a, b map[int]*result.Run) (s sides, ok bool) {
	broken := 0
	var steps []float64
	for _, n := range blocks(a, b) {
		x, y := result.Value{}, result.Value{}
		x, okX := a[n].Value(v.Metric)
		y, okY := b[n].Value(v.Metric)
		if okX && !sameUnitAndDirection(x, v) || okY && !sameUnitAndDirection(y, v) {
			r.warn(Warning{Code: BlockUnitDiffers, Block: n, Metrics: []string{v.Metric}, Units: []unit.Unit{x.Unit, y.Unit}})
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
		r.warn(Warning{Code: BlocksUnusable, Count: broken, Metrics: []string{v.Metric}})
	}
	s = t.upToLook(s.settle(), r.Case, r.Baseline, r.Target)
	r.step = stepOf(steps, s.baseline, s.target)
	r.awaited = s.awaited
	if s.unused > 0 {
		r.warn(Warning{Code: PairsPastLook, Count: len(s.blocks), Of: len(s.blocks) + s.unused})
	}
	return s, true
}

func sameUnitAndDirection(a, b result.Value) bool { return a.Unit == b.Unit && a.Better == b.Better }

// fill sets all fields that follow from the pairs of values.
func (r *Row) fill(s sides, alpha, delta float64) {
	r.describe(s)
	logs, ratio := s.logRatios()
	r.Pairs = s.pairs(logs)
	if !ratio {
		r.estimateShift(s, alpha)
		return
	}
	e := stats.Paired(logs, alpha, s.look)
	r.estimate(e, alpha, delta)
	if r.Blocks == 0 {
		r.P = Missing()
		return
	}
	r.Spread = Number(e.Spread)
	r.decidePrimary(delta)
	r.equivalenceP = equivalenceP(logs, e.Shift, delta, s.look)
	if v, _ := r.decide(delta); v == Undecided && r.step <= delta && s.awaited == 0 {
		r.BlocksNeeded = stats.PairsToDecide(e, math.Log1p(delta), alpha, s.look)
	}
	if e.Spread > 0.1 {
		r.warn(Warning{Code: WideSpread, Spread: r.Spread})
	}
}

// describe sets the medians and quartiles.
func (r *Row) describe(s sides) {
	a, b := stats.Summarise(s.baseline), stats.Summarise(s.target)
	r.Blocks = min(a.N, b.N)
	r.BaselineMedian, r.TargetMedian = Number(a.Median), Number(b.Median)
	r.BaselineQuartiles = [2]Number{Number(a.Q1), Number(a.Q3)}
	r.TargetQuartiles = [2]Number{Number(b.Q1), Number(b.Q3)}
}

// estimateShift analyses values that are not all above 0, such as loss and retransmits, so that some pairs have no
// ratio. It estimates the difference without a verdict, because delta is a fraction.
func (r *Row) estimateShift(s sides, alpha float64) {
	differences := make([]float64, len(s.blocks))
	for i := range differences {
		differences[i] = s.target[i] - s.baseline[i]
	}
	e := stats.Paired(differences, alpha, s.look)
	r.setShift(s, e, alpha)
}

// setShift sets the estimate of differences.
func (r *Row) setShift(s sides, e stats.Estimate, alpha float64) {
	r.Level, r.Attained = 1-alpha, e.Attained
	if all := slices.Concat(s.baseline, s.target); slices.Min(all) == 0 && slices.Max(all) == 0 {
		r.warn(Warning{Code: OnlyZeros})
		return
	}
	r.Shift = &Shift{Number(e.Shift), Interval{e.Lo, e.Hi}}
	zeros := notPositive(s.baseline) + notPositive(s.target)
	r.warn(Warning{Code: NoRatio, Count: zeros, Of: len(s.baseline) + len(s.target)})
	r.remark(e)
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

// ratio estimates the logarithm of target / baseline. It is not ok without values, or if a value is not above 0.
func (s sides) ratio(alpha float64) (e stats.Estimate, ok bool) {
	if len(s.baseline) == 0 || len(s.target) == 0 || notPositive(s.baseline)+notPositive(s.target) > 0 {
		return e, false
	}
	if s.look == nil {
		return stats.UnpairedSeries(logarithms(s.baseline), logarithms(s.target), alpha), true
	}
	logs, _ := s.logRatios()
	return stats.Paired(logs, alpha, s.look), true
}

func (s sides) pairs(logs []float64) []Pair {
	pairs := make([]Pair, len(s.blocks))
	for i, n := range s.blocks {
		pairs[i] = Pair{n, Number(s.baseline[i]), Number(s.target[i]), Number(fraction(logs[i]))}
	}
	return pairs
}

// equivalenceP returns the p of the hypothesis that the change is delta or more in either direction: the larger p of
// the two tests against the margins, each two-sided so that it agrees with the interval. shift is the estimate.
func equivalenceP(logs []float64, shift, delta float64, look stats.Design) float64 {
	upper, lower := math.Log1p(delta), math.Log1p(-delta)
	if !(shift > lower && shift < upper) {
		return 1
	}
	return math.Max(stats.SignP(logs, upper, look), stats.SignP(logs, lower, look))
}
