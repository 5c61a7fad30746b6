package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// Thresholds of warnings. No verdict depends on them.
const (
	manyInvalid  = 0.2  // share of one side's runs
	orderP       = 0.01 // level of the tests for effects of the order within a block, all comparisons together
	minPerOrder  = 4    // blocks of each order before they are tested
	maxRunDoubts = 3    // distinct warnings of runs that a row repeats
)

// addDoubts adds warnings about the runs of a row beyond those of the estimate itself.
func (t *runTable) addDoubts(r *Row, s sides, a, b map[int]*result.Run) {
	shared, ofTarget := t.tableOf(r.Baseline).sharedWarnings, t.tableOf(r.Target).sharedWarnings
	if t.paired() {
		t.warnBlocks(r, s)
		t.warnInvalid(r)
		if !t.e.Design.Parallel {
			warnOrder(r, s, a, b, orderP/float64(max(1, countPlanned(t.e))))
		}
	}
	runs := slices.AppendSeq(slices.Collect(maps.Values(a)), maps.Values(b))
	x, y := constantFacts(a)[factLoop], constantFacts(b)[factLoop]
	switch {
	case !t.paired() && x != "" && y != "" && x != y:
		r.warn(Warning{Code: LoopsDiffer, Loops: []string{x, y}})
	case !t.closedLoop && (t.paired() && closedLoop(runs) || !t.paired() && x == "closed"):
		r.warn(Warning{Code: ClosedLoop})
	}
	warnGeneratorLimit(r, a, b)
	if t.paired() && slices.ContainsFunc(runs, unpaced) {
		r.warn(Warning{Code: Unpaced})
	}
	known := func(k result.Kind) bool { return shared[k].count > 0 && ofTarget[k].count > 0 }
	r.Warnings = append(r.Warnings, runWarnings(*r, a, b, known)...)
}

// warnBlocks warns of few blocks, and of a case that ended before all of them.
func (t *runTable) warnBlocks(r *Row, s sides) {
	few := Warning{Code: FewOfPlanned, Count: len(s.blocks) + s.unused, Of: t.e.Design.Blocks}
	if len(t.e.Design.Looks) > 0 {
		few.Code, few.Of = FewOfMeasured, t.lastBlock(r.Case)
	}
	switch {
	case len(s.blocks) == 0:
		r.warn(Warning{Code: NoPairedRuns, Metrics: []string{r.Metric}})
	case len(s.blocks) == 1:
		r.warn(Warning{Code: OneRun})
	case few.Count < few.Of && s.awaited == 0:
		r.warn(few)
	}
	t.warnEnd(r)
	if end := t.stoppedAfter[r.Case]; end > 0 && end < t.e.Design.Blocks && r.CI.Excludes(0) {
		r.warn(Warning{Code: StoppedEarly})
	}
}

// Facts of runs that warnings depend on; tools record them.
const (
	factLoop    = "loop"              // open or closed
	factPacing  = "udp.pacing"        // none, or what limits the sender's rate
	factLimited = "generator.limited" // yes or no
	factShared  = "cpu.shared"        // true if both sides run on one machine
)

// unpaced reports whether only the sender's CPU limits the rate of a run.
func unpaced(r *result.Run) bool { return r.Fact(factPacing) == "none" }

// closedLoop reports whether at least one run records a loop, and every recorded loop is closed.
func closedLoop(runs []*result.Run) bool {
	closed := 0
	for _, r := range runs {
		switch r.Fact(factLoop) {
		case "":
		case "closed":
			closed++
		default:
			return false
		}
	}
	return closed > 0
}

// warnGeneratorLimit warns of runs in which the generator had no CPU left. If both sides share a machine, its CPU does
// the path's work too: the costlier the path, the less is left for the generator.
func warnGeneratorLimit(r *Row, a, b map[int]*result.Run) {
	limited := [2]int{}
	code := GeneratorLimit
	for side, runs := range []map[int]*result.Run{a, b} {
		for _, run := range runs {
			if run.Fact(factLimited) == "yes" {
				limited[side]++
			}
			if run.Fact(factShared) == "true" {
				code = SharedGeneratorLimit
			}
		}
	}
	if limited[0]+limited[1] > 0 {
		r.warn(Warning{Code: code, Counts: r.counts(limited[0], len(a), limited[1], len(b))})
	}
}

// oneMachine reports whether all runs had both sides on one machine.
func (t *runTable) oneMachine() bool {
	shared := 0
	for _, byBlock := range t.lastAttempt {
		for _, have := range byBlock {
			for _, run := range have {
				if run.Fact(factShared) != "true" {
					return false
				}
				shared++
			}
		}
	}
	return shared > 0
}

// warnInvalid warns of many invalid runs, and of sides with different shares of them. If only one side has any,
// [runTable.selectionWarnings] warns.
func (t *runTable) warnInvalid(r *Row) {
	runsA, runsB := t.all[r.Case][r.Baseline], t.all[r.Case][r.Target]
	badA, badB := invalid(runsA), invalid(runsB)
	if badA == 0 || badB == 0 {
		return
	}
	counts := r.counts(badA, len(runsA), badB, len(runsB))
	switch {
	case max(badA, badB) >= 3 && max(badA, badB) >= 3*min(badA, badB):
		r.warn(Warning{Code: InvalidSharesDiffer, Counts: counts})
	case float64(badA) > manyInvalid*float64(len(runsA)) || float64(badB) > manyInvalid*float64(len(runsB)):
		r.warn(Warning{Code: ManyInvalid, Counts: counts})
	}
}

func invalid(runs []*result.Run) int {
	n := 0
	for _, r := range runs {
		if !r.Valid() {
			n++
		}
	}
	return n
}

// warnOrder warns if the change depends on which side ran first: then runs, or visits, disturb those that follow. The
// random order keeps the verdict correct, but with less power. alpha is this comparison's share of the error of all.
func warnOrder(r *Row, s sides, a, b map[int]*result.Run, alpha float64) {
	logs, ratio := s.logRatios()
	if !ratio {
		return
	}
	var before, after []float64
	for i, n := range s.blocks {
		switch {
		case b[n].Slot < a[n].Slot:
			before = append(before, logs[i])
		case b[n].Slot > a[n].Slot:
			after = append(after, logs[i])
		}
	}
	if len(before) < minPerOrder || len(after) < minPerOrder {
		return
	}
	code := OrderOfRuns
	if a[s.blocks[0]].Visit > 0 {
		code = OrderOfVisits
	}
	if both := stats.EqualiseRounding(before, after); stats.Unpaired(both[0], both[1], alpha).P <= alpha {
		r.warn(Warning{Code: code, Targets: []string{r.Target, r.Baseline},
			After: Number(fraction(stats.Median(after))), Before: Number(fraction(stats.Median(before)))})
	}
}

// runWarnings returns the warnings of the runs themselves, without those of a known kind.
func runWarnings(r Row, a, b map[int]*result.Run, known func(result.Kind) bool) []Warning {
	both, first := warningCounts{}, warningCounts{}
	for side, runs := range []map[int]*result.Run{a, b} {
		for _, block := range slices.Sorted(maps.Keys(runs)) {
			warnings := warningsAbout(r.Metric, runs[block].Warnings)
			both.add(warnings)
			if side == 0 {
				first.add(warnings)
			}
		}
	}
	maps.DeleteFunc(both, func(k result.Kind, _ countedWarning) bool { return known(k) })
	found := slices.SortedFunc(maps.Keys(both), func(x, y result.Kind) int {
		return cmp.Or(cmp.Compare(both[y].count, both[x].count), compareKinds(x, y))
	})
	var list []Warning
	for i, k := range found {
		if i == maxRunDoubts {
			list = append(list, Warning{Code: RunsWarnMore, Count: len(found) - i})
			break
		}
		w := both[k].warning(RunsWarn)
		if onA, onB := first[k].count, both[k].count-first[k].count; onA != len(a) || onB != len(b) {
			w.Counts = r.counts(onA, len(a), onB, len(b))
		}
		list = append(list, w)
	}
	return list
}

// counts returns counts of runs on both sides.
func (r Row) counts(baseline, ofBaseline, target, ofTarget int) []TargetCount {
	return []TargetCount{{r.Baseline, baseline, ofBaseline}, {r.Target, target, ofTarget}}
}

// warningsAbout returns the warnings without those about another metric.
func warningsAbout(metric string, warnings []result.Warning) []result.Warning {
	other := func(w result.Warning) bool { return w.Metric != "" && w.Metric != metric }
	return slices.DeleteFunc(slices.Clone(warnings), other)
}
