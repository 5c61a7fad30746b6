package compare

import (
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// defaultPower is the probability of detecting a change that is called detectable.
const defaultPower = 0.8

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
func (t *runTable) compareCase(rc result.Case, of targetPair) []Row {
	a, b := t.valid(rc.Name, of.baseline), t.valid(rc.Name, of.target)
	found, comparable := t.comparedMetrics(rc, of, a, b)
	if !comparable {
		return nil
	}
	// A verdict that is planned is never missing from the table.
	if rc.Role == result.Primary && (len(found) == 0 || found[0].Metric != rc.Metric) {
		found = slices.Insert(found, 0, result.Value{Metric: rc.Metric})
	}
	var rows []Row
	for _, v := range found {
		r := newRow(t.e.Design, rc, v, of)
		r.atLastLook = t.paired() && t.isLastLook(rc.Name)
		var s sides
		if !t.paired() && v.Better == metric.Neutral {
			r.warn(Warning{Code: MetricNotShared, Metrics: []string{v.Metric}})
		} else if have, ok := t.sides(&r); ok {
			s = have
			r.fill(s, r.intervalAlpha(t.e.Design, t.primaries), t.e.Design.Delta)
			r.UpperBound = t.upperBound(rc, r)
		}
		if r.Metric == rc.Metric {
			t.addDoubts(&r, s, a, b)
		}
		r.Warnings = append(r.Warnings, t.auditWarnings(r)...)
		rows = append(rows, r)
	}
	return rows
}

// comparedMetrics returns the metrics by which a case is compared; ok is false if two targets cannot be compared in it.
// Unpaired runs may be another tool's: metrics that only one side has are noted as unmatched.
func (t *runTable) comparedMetrics(rc result.Case, of targetPair, a, b map[int]*result.Run) (
	found []result.Value, ok bool,
) {
	givenUp := !isMeasured(t.e, rc.Name, of.target) || !isMeasured(t.e, rc.Name, of.baseline)
	if t.paired() {
		// A case that was given up later keeps its earlier blocks.
		return metrics(rc.Metric, a, b), !givenUp || len(blocks(a, b)) > 0
	}
	both := len(a) > 0 && len(b) > 0
	found, alone := commonMetrics(rc.Metric, a, b)
	for _, v := range alone {
		if both {
			t.unmatched[Unmatched{rc.Name, v.Metric, v.Unit}] = true
		}
	}
	return found, both || !givenUp && rc.Role == result.Primary
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
func (t *runTable) addDetectable(rows []Row) {
	for i := range rows {
		if r := &rows[i]; r.Spread.Known() {
			r.Detectable = t.detectable(float64(r.Spread), r.intervalAlpha(t.e.Design, t.primaries))
		}
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

// fill sets all fields that follow from the values of both sides.
func (r *Row) fill(s sides, alpha, delta float64) {
	r.describe(s)
	if !s.paired() && r.Blocks < minUnpaired {
		r.warn(Warning{Code: FewRuns, Count: len(s.baseline), Of: len(s.target), Needed: minUnpaired})
	}
	e, ratio := s.ratio(alpha)
	switch {
	case r.Blocks == 0 && s.paired():
		r.estimate(stats.Paired(nil, alpha, s.look), alpha, delta)
		r.P = Missing()
		return
	case r.Blocks == 0:
		return
	case !ratio:
		r.estimateShift(s, alpha)
		return
	}
	r.estimate(e, alpha, delta)
	if !s.paired() {
		if f := stats.Inflation(logarithms(s.baseline), logarithms(s.target)); f >= muchWider {
			r.warn(Warning{Code: RunsDepend, Factor: Number(f)})
		}
		if r.drifts = s.drift(); r.drifts {
			r.warn(Warning{Code: Drift})
		}
		if r.Blocks < minUnpaired || r.drifts {
			r.P = Missing()
			return
		}
	}
	r.decidePrimary(delta)
	r.equivalenceP = s.equivalenceP(e.Shift, delta)
	if !s.paired() {
		return
	}
	r.Spread = Number(e.Spread)
	if v, _ := r.decide(delta); v == Undecided && r.step <= delta && s.awaited == 0 {
		r.BlocksNeeded = stats.PairsToDecide(e, math.Log1p(delta), alpha, s.look)
	}
	if e.Spread > 0.1 {
		r.warn(Warning{Code: WideSpread, Spread: r.Spread})
	}
}

// estimateRatio sets the change, interval and both p of a row, without a verdict; false if the sides have no ratio.
func (r *Row) estimateRatio(s sides, alpha, delta float64) bool {
	e, ok := s.ratio(alpha)
	if ok {
		r.estimate(e, alpha, delta)
		r.equivalenceP = s.equivalenceP(e.Shift, delta)
	}
	return ok
}

// describe sets the medians, the quartiles and the pairs.
func (r *Row) describe(s sides) {
	a, b := stats.Summarise(s.baseline), stats.Summarise(s.target)
	r.Blocks = min(a.N, b.N)
	r.BaselineMedian, r.TargetMedian = Number(a.Median), Number(b.Median)
	r.BaselineQuartiles = [2]Number{Number(a.Q1), Number(a.Q3)}
	r.TargetQuartiles = [2]Number{Number(b.Q1), Number(b.Q3)}
	logs, _ := s.logRatios()
	for i, n := range s.blocks {
		r.Pairs = append(r.Pairs, Pair{n, Number(s.baseline[i]), Number(s.target[i]), Number(fraction(logs[i]))})
	}
}

// estimateShift analyses values that are not all above 0, such as loss and retransmits, so that some of them have no
// ratio. It estimates the difference without a verdict, because delta is a fraction.
func (r *Row) estimateShift(s sides, alpha float64) {
	e := s.shift(alpha)
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
