package compare

import (
	"cmp"
	"fmt"
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

// addDoubts adds warnings about a row beyond those of the estimate itself.
func (t *runTable) addDoubts(r *Row, s sides) {
	a, b := t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target)
	planned, kind := t.e.Design.Blocks, "planned"
	if len(t.e.Design.Looks) > 0 {
		planned, kind = t.lastBlock(r.Case), "measured"
	}
	switch {
	case len(s.blocks) == 0:
		r.warn("No block has a valid run with %s on both sides.", r.Metric)
	case len(s.blocks) == 1:
		r.warn("One run is no basis for a comparison.")
	case len(s.blocks)+s.unused < planned:
		r.warn("Only %d of the %d blocks %s have a valid run on both sides.", len(s.blocks)+s.unused, planned, kind)
	}
	if words := t.endWarning(*r); words != "" {
		r.Warnings = append(r.Warnings, words)
	}
	if end := t.stoppedAfter[r.Case]; end > 0 && end < t.e.Design.Blocks && r.CI.Excludes(0) {
		r.Warnings = append(r.Warnings, earlyWords)
	}
	t.warnInvalid(r)
	if !t.e.Design.Parallel {
		warnOrder(r, s, a, b, orderP/float64(max(1, countPlanned(t.e))))
	}
	runs := slices.AppendSeq(slices.Collect(maps.Values(a)), maps.Values(b))
	if !t.closedLoop && closedLoop(runs) {
		r.Warnings = append(r.Warnings, closedWords)
	}
	warnGeneratorLimit(r, a, b)
	if slices.ContainsFunc(runs, unpaced) {
		r.Warnings = append(r.Warnings, unpacedWords)
	}
	r.Warnings = append(r.Warnings, t.runWarnings(*r, a, b)...)
}

// Facts of runs that warnings depend on; tools record them.
const (
	factLoop    = "loop"              // open or closed
	factPacing  = "udp.pacing"        // none, or what limits the sender's rate
	factLimited = "generator.limited" // yes or no
	factShared  = "cpu.shared"        // true if both sides run on one machine
)

// earlyWords warns about the estimate of a case that stopped at a look because it was decided.
const earlyWords = "The case stopped early, and what stops early is more often overestimated than not: trust the " +
	"interval more than the estimate."

// closedWords warns about closed loops.
const closedWords = "Closed loop: a request waits for the answer to the one before, so the time in which a server " +
	"stalls is hardly sampled."

// Standing reports whether a warning holds for every experiment of its kind, and not for this one in particular.
func Standing(warning string) bool {
	return slices.Contains([]string{closedWords, oneMachineWords, inTurnWords}, warning)
}

// unpacedWords warns about datagrams that are sent as fast as the sender can.
const unpacedWords = "Unpaced: the sender sends as many datagrams as its CPU can, and throughput is what is left of " +
	"them at the receiver. It depends on the sender as much as on the path; read it together with throughput-sent and " +
	"loss, which is what the path or the receiver's buffer dropped."

// unpaced reports whether only the sender's CPU limits the rate of a run.
func unpaced(r *result.Run) bool { return r.Fact(factPacing) == "none" }

// parallelWords warns about experiments that measure all targets of a block at the same time.
const parallelWords = "The runs of a case in a block were measured at the same time, each on a target that shares " +
	"nothing with the others: what disturbs all of them cancels out, but no random order tells a target from what " +
	"happens to its own machines."

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
	means := "what was measured there is the generator, not the path"
	for side, runs := range []map[int]*result.Run{a, b} {
		for _, run := range runs {
			if run.Fact(factLimited) == "yes" {
				limited[side]++
			}
			if run.Fact(factShared) == "true" {
				means = "its CPU does the work of the path too, so it is the cost of both that shows"
			}
		}
	}
	if limited[0]+limited[1] > 0 {
		r.warn("The generator was the limit in %d of %d runs on %s and %d of %d on %s: %s.",
			limited[0], len(a), r.Baseline, limited[1], len(b), r.Target, means)
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
	counts := fmt.Sprintf("%d of %d runs on %s and %d of %d on %s were invalid",
		badA, len(runsA), r.Baseline, badB, len(runsB), r.Target)
	switch {
	case max(badA, badB) >= 3 && max(badA, badB) >= 3*min(badA, badB):
		r.warn("%s; a difference in that may itself be what the targets differ in.", counts)
	case float64(badA) > manyInvalid*float64(len(runsA)) || float64(badB) > manyInvalid*float64(len(runsB)):
		r.warn("%s; the blocks that are left may be the easy ones.", counts)
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
	what := "runs disturb those that follow"
	if a[s.blocks[0]].Visit > 0 {
		what = "visits leave something behind for those that follow"
	}
	if both := stats.Settle(before, after); stats.Unpaired(both[0], both[1], alpha).P <= alpha {
		r.warn("The order matters: where %s ran after %s the change is %s, where it ran before it is %s; %s.",
			r.Target, r.Baseline, signed(fraction(stats.Median(after))), signed(fraction(stats.Median(before))), what)
	}
}

// runWarnings returns the warnings of the runs themselves, without those that all runs of the experiment share.
func (t *runTable) runWarnings(r Row, a, b map[int]*result.Run) []string {
	both, first := warningCounts{}, warningCounts{}
	for side, runs := range []map[int]*result.Run{a, b} {
		for _, block := range slices.Sorted(maps.Keys(runs)) {
			warnings := about(r.Metric, runs[block].Warnings)
			both.add(warnings)
			if side == 0 {
				first.add(warnings)
			}
		}
	}
	maps.DeleteFunc(both, func(k result.Kind, _ countedWarning) bool { return t.sharedWarnings[k].count > 0 })
	found := slices.SortedFunc(maps.Keys(both), func(x, y result.Kind) int {
		return cmp.Or(cmp.Compare(both[y].count, both[x].count), compareKinds(x, y))
	})
	var sentences []string
	for i, k := range found {
		if i == maxRunDoubts {
			sentences = append(sentences, fmt.Sprintf("The runs have %d more warnings.", len(found)-i))
			break
		}
		who, onA, onB := "All runs", first[k].count, both[k].count-first[k].count
		if onA != len(a) || onB != len(b) {
			who = fmt.Sprintf("%d of %d runs on %s and %d of %d on %s", onA, len(a), r.Baseline, onB, len(b), r.Target)
		}
		sentences = append(sentences, both[k].sentence(who))
	}
	return sentences
}

// about removes the warnings that are about another metric.
func about(metric string, warnings []result.Warning) []result.Warning {
	other := func(w result.Warning) bool { return w.Metric != "" && w.Metric != metric }
	return slices.DeleteFunc(slices.Clone(warnings), other)
}
