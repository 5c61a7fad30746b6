package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// minUnpaired is the number of runs on each side below which an unpaired comparison has no verdict.
const minUnpaired = 6

// An unpaired compares targets whose runs are not paired by blocks: by the Mann-Whitney test of the logarithms and its
// shift interval, which is wider where successive runs resemble each other. There is no verdict where runs drift.
type unpaired struct {
	*runTable
	primaries int
	unmatched map[Unmatched]bool // metrics that are compared with nothing
}

// numberRuns numbers imported runs, which have no blocks, among those of their case and target, so that all of them
// count.
func numberRuns(r result.Results) result.Results {
	if r.Experiment.Imported == "" {
		return r
	}
	r.Runs = slices.Clone(r.Runs)
	next := map[[2]string]int{}
	for i := range r.Runs {
		run := &r.Runs[i]
		at := [2]string{run.Case, run.Target}
		next[at]++
		run.Block, run.Attempt, run.Slot = next[at], 1, 0
	}
	return r
}

// compareCase returns a row for each metric of a case that two targets share.
func (u unpaired) compareCase(rc result.Case, of targetPair) []Row {
	a, b := u.valid(rc.Name, of.baseline), u.valid(rc.Name, of.target)
	givenUp := !isMeasured(u.e, rc.Name, of.baseline) || !isMeasured(u.e, rc.Name, of.target)
	if (givenUp || rc.Role != result.Primary) && (len(a) == 0 || len(b) == 0) {
		return nil
	}
	found, alone := commonMetrics(rc.Metric, a, b)
	found = withPlanned(rc, found)
	if len(a) > 0 && len(b) > 0 {
		for _, v := range alone {
			u.unmatched[Unmatched{rc.Name, v.Metric, v.Unit}] = true
		}
	}
	var rows []Row
	for _, v := range found {
		r := newRow(u.e.Design, rc, v, of)
		if v.Better == metric.Neutral {
			r.warn(Warning{Code: MetricNotShared, Metrics: []string{v.Metric}})
		} else {
			r.fillUnpaired(v, a, b, r.intervalAlpha(u.e.Design, u.primaries), u.e.Design.Delta)
		}
		if v.Metric == rc.Metric {
			r.UpperBound = upperBound(rc, r, of, u.runTable)
			u.addDoubts(&r, a, b)
		}
		found := append(u.tableOf(of.baseline).auditWarnings(rc.Name, v.Metric, of.baseline, of.baseline),
			u.tableOf(of.target).auditWarnings(rc.Name, v.Metric, of.target, of.target)...)
		r.Warnings = append(r.Warnings, slices.CompactFunc(found, Warning.Equal)...)
		rows = append(rows, r)
	}
	return rows
}

// addDoubts adds the warnings about the runs of a row.
func (u unpaired) addDoubts(r *Row, a, b map[int]*result.Run) {
	x, y := constantFacts(a)[factLoop], constantFacts(b)[factLoop]
	switch {
	case x != "" && y != "" && x != y:
		r.warn(Warning{Code: LoopsDiffer, Loops: []string{x, y}})
	case x == "closed" && !u.closedLoop:
		r.warn(Warning{Code: ClosedLoop})
	}
	warnGeneratorLimit(r, a, b)
	both, other := maps.Clone(u.tableOf(r.Baseline).sharedWarnings), u.tableOf(r.Target).sharedWarnings
	maps.DeleteFunc(both, func(kind result.Kind, _ countedWarning) bool { return other[kind].count == 0 })
	r.Warnings = append(r.Warnings, (&runTable{sharedWarnings: both}).runWarnings(*r, a, b)...)
}

// upperBound compares a row of a case's own metric with the case's reference, each side with the reference on its own
// underlay in its own experiment; it returns nil if neither has one. Other metrics get no share: a slower path may well
// have fewer retransmits.
func upperBound(rc result.Case, r Row, of targetPair, t *runTable) *UpperBound {
	if r.Metric != rc.Metric {
		return nil
	}
	nameA, boundA := t.boundOf(r, of.baseline)
	nameB, boundB := t.boundOf(r, of.target)
	if len(boundA)+len(boundB) == 0 {
		return nil
	}
	bound := UpperBound{Case: cmp.Or(nameA, nameB), Median: Number(stats.Median(boundA)),
		TargetMedian: Number(stats.Median(boundB))}
	bound.BaselineShare = share(r.Better, r.BaselineMedian, stats.Median(boundA))
	bound.TargetShare = share(r.Better, r.TargetMedian, stats.Median(boundB))
	return &bound
}

// share returns the share of a bound that a median reaches.
func share(better metric.Better, median Number, bound float64) Number {
	if better == metric.Lower {
		return Number(bound / float64(median))
	}
	return Number(float64(median) / bound)
}

// boundOf returns the name of the case that is the reference of the row's case, and its values above 0 on the underlay
// of a target.
func (t *runTable) boundOf(r Row, target string) (name string, values []float64) {
	t = t.tableOf(target)
	rc, _ := t.e.Case(r.Case)
	runs := t.valid(rc.Bound, t.e.BoundsOf(target))
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		v, has := valueIn(runs[n], result.Value{Metric: r.Metric, Unit: r.Unit})
		if has && v.Unit == r.Unit && v.Usable() && v.Number > 0 {
			values = append(values, v.Number)
		}
	}
	return rc.Bound, values
}

// fillUnpaired sets all fields that follow from the values of a metric.
func (r *Row) fillUnpaired(v result.Value, a, b map[int]*result.Run, alpha, delta float64) {
	s, ok := r.samples(v, a, b)
	if !ok {
		return
	}
	r.describe(s)
	if r.Blocks < minUnpaired {
		r.warn(Warning{Code: FewRuns, Count: len(s.baseline), Of: len(s.target), Needed: minUnpaired})
	}
	if r.Blocks == 0 {
		return
	}
	e, ok := s.ratio(alpha)
	if !ok {
		r.setShift(s, stats.UnpairedSeries(s.baseline, s.target, alpha), alpha)
		return
	}
	r.estimate(e, alpha, delta)
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
	r.decidePrimary(delta)
	r.equivalenceP = equivalencePUnpaired(logarithms(s.baseline), logarithms(s.target), e.Shift, delta)
}

// muchWider is the factor from which on a row says how much wider its interval is because its runs are not independent.
const muchWider = 1.5

// drift reports whether the runs of unpaired sides rise or fall from run to run, on one side or on both alike, which no
// interval covers: what goes on from the one to the other looks like a difference. Each of the three tests is at
// driftAlpha; together they find a drift in about 2.5 % of steady rows.
func (s sides) drift() bool {
	return min(stats.TrendP(s.baseline), stats.TrendP(s.target), stats.TrendP(s.baseline, s.target)) <= driftAlpha
}

// drift returns a warning about the cases in which a row of the case's own metric drifts, if there are any.
func (u unpaired) drift(rows []Row) []Warning {
	var names []string
	for _, r := range rows {
		if rc, _ := u.e.Case(r.Case); r.drifts && r.Metric == rc.Metric {
			names = append(names, r.Case)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Warning{{Code: Trend, Cases: distinct(names)}}
}

// samples collects a metric from the runs of both sides. It is not ok if they do not measure the same thing.
func (r *Row) samples(v result.Value, a, b map[int]*result.Run) (s sides, ok bool) {
	x, okX := r.values(v, a)
	y, okY := r.values(v, b)
	s = sides{baseline: x, target: y}.settle()
	r.step = stepOf(stepsOf(v, a, b), s.baseline, s.target)
	return s, okX && okY
}

// values collects a metric from runs in order of blocks. It is not ok if runs disagree on the unit.
func (r *Row) values(v result.Value, runs map[int]*result.Run) (values []float64, ok bool) {
	var without []string
	for _, n := range blocks(runs, runs) {
		x, has := valueIn(runs[n], v)
		switch {
		case !has || !x.Usable():
			without = append(without, runs[n].ID)
		case !matches(x, v):
			r.warn(Warning{Code: RunUnitDiffers, Runs: []string{runs[n].ID}, Metrics: []string{v.Metric},
				Units: []unit.Unit{x.Unit, v.Unit}})
			return nil, false
		default:
			values = append(values, x.Number)
		}
	}
	if len(without) > 0 {
		r.warn(Warning{Code: RunsUnusable, Runs: without, Metrics: []string{v.Metric}})
	}
	return values, true
}

func logarithms(values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return logs
}

// equivalencePUnpaired returns the p of the same hypothesis as equivalenceP, for two unpaired samples of logarithms.
func equivalencePUnpaired(x, y []float64, shift, delta float64) float64 {
	p := 0.0
	if !(shift > math.Log1p(-delta) && shift < math.Log1p(delta)) {
		return 1
	}
	for _, at := range []float64{math.Log1p(delta), math.Log1p(-delta)} {
		moved := make([]float64, len(y))
		for i, v := range y {
			moved[i] = v - at
		}
		p = math.Max(p, stats.UnpairedSeries(x, moved, 0.5).P)
	}
	return p
}
