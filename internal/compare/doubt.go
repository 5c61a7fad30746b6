package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// Thresholds of warnings. They decide nothing, they only make a reader look.
const (
	manyInvalid  = 0.2  // share of a side's runs
	orderP       = 0.01 // of the order within a block changing the result, for all comparisons together
	minPerOrder  = 4    // blocks of each order before it is looked at
	maxRunDoubts = 3    // different warnings of runs that are repeated beside a row
)

// doubt adds what speaks against believing a row, beyond what the estimate itself says.
func (t *trial) doubt(r *Row, s sides) {
	a, b := t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target)
	planned, kind := t.e.Design.Blocks, "planned"
	if len(t.e.Design.Looks) > 0 {
		planned, kind = t.ran(r.Case), "measured"
	}
	switch {
	case len(s.blocks) == 0:
		r.warn("No block has a valid run with %s on both sides.", r.Metric)
	case len(s.blocks) == 1:
		r.warn("One run is no basis for a comparison.")
	case len(s.blocks)+s.spare < planned:
		r.warn("Only %d of the %d blocks %s have a valid run on both sides.", len(s.blocks)+s.spare, planned, kind)
	}
	if words := t.endWords(*r); words != "" {
		r.Warnings = append(r.Warnings, words)
	}
	if end := t.stopped[r.Case]; end > 0 && end < t.e.Design.Blocks && r.CI.Excludes(0) {
		r.Warnings = append(r.Warnings, earlyWords)
	}
	t.doubtInvalid(r)
	if !t.e.Design.Parallel {
		doubtOrder(r, s, a, b, orderP/float64(max(1, compared(t.e))))
	}
	runs := slices.AppendSeq(slices.Collect(maps.Values(a)), maps.Values(b))
	if !t.closed && closedLoop(runs) {
		r.Warnings = append(r.Warnings, closedWords)
	}
	doubtLimit(r, a, b)
	if slices.ContainsFunc(runs, unpaced) {
		r.Warnings = append(r.Warnings, unpacedWords)
	}
	r.Warnings = append(r.Warnings, t.runDoubts(*r, a, b)...)
}

// The facts of runs that are understood here; tools record them.
const (
	factLoop    = "loop"              // open or closed
	factPacing  = "udp.pacing"        // none, or what the sender keeps to
	factLimited = "generator.limited" // yes or no
	factShared  = "cpu.shared"        // true if both sides run on one machine
)

// earlyWords are about the estimate of a case that stopped at a look because it was decided.
const earlyWords = "The case stopped early, and what stops early is more often overestimated than not: trust the " +
	"interval more than the estimate."

// closedWords labels closed loops.
const closedWords = "Closed loop: a request waits for the answer to the one before, so the time in which a server " +
	"stalls is hardly sampled."

// Standing says whether a warning is about every experiment of its kind, and not about this one in particular.
func Standing(warning string) bool {
	return slices.Contains([]string{closedWords, oneMachineWords, inTurnWords}, warning)
}

// unpacedWords label streams of datagrams that the sender sends as fast as it can.
const unpacedWords = "Unpaced: the sender sends as many datagrams as its CPU can, and throughput is what is left of " +
	"them at the receiver. It depends on the sender as much as on the path; read it together with throughput-sent and " +
	"loss, which is what the path or the receiver's buffer dropped."

// unpaced says whether nothing but the sender's CPU limits how much a run sends.
func unpaced(r *result.Run) bool { return r.Fact(factPacing) == "none" }

// parallelWords say what an experiment without an order cannot tell.
const parallelWords = "The runs of a case in a block were measured at the same time, each on a target that shares " +
	"nothing with the others: what disturbs all of them cancels out, but no random order tells a target from what " +
	"happens to its own machines."

// closedLoop says whether all runs that have a loop, and there are some, have a closed one.
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

// doubtLimit warns of runs in which the generator had no CPU left. Where both sides are on one machine, that CPU does
// the work of the path too, and less of it is left for the generator the more the path takes.
func doubtLimit(r *Row, a, b map[int]*result.Run) {
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

// oneMachine says whether all runs had both sides on one machine.
func (t *trial) oneMachine() bool {
	shared := 0
	for _, byBlock := range t.last {
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

// doubtInvalid warns of many invalid runs, and of sides that differ in how many. Where only one side has any,
// [selections] warns.
func (t *trial) doubtInvalid(r *Row) {
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

// doubtOrder warns if the change depends on which side ran first: then runs, or visits, disturb those that
// follow. The random order keeps the verdict right all the same, but less sharp. alpha is the share that this
// comparison has of the error of all.
func doubtOrder(r *Row, s sides, a, b map[int]*result.Run, alpha float64) {
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

// runDoubts repeats the warnings of the runs themselves, but those that all runs of the experiment
// have, which are said once.
func (t *trial) runDoubts(r Row, a, b map[int]*result.Run) []string {
	both, first := chorus{}, chorus{}
	for side, runs := range []map[int]*result.Run{a, b} {
		for _, block := range slices.Sorted(maps.Keys(runs)) {
			warnings := about(r.Metric, runs[block].Warnings)
			both.add(warnings)
			if side == 0 {
				first.add(warnings)
			}
		}
	}
	maps.DeleteFunc(both, func(k result.Kind, _ heard) bool { return t.common[k].n > 0 })
	found := slices.SortedFunc(maps.Keys(both), func(x, y result.Kind) int {
		return cmp.Or(cmp.Compare(both[y].n, both[x].n), compareKinds(x, y))
	})
	var sentences []string
	for i, k := range found {
		if i == maxRunDoubts {
			sentences = append(sentences, fmt.Sprintf("The runs have %d more warnings.", len(found)-i))
			break
		}
		who, onA, onB := "All runs", first[k].n, both[k].n-first[k].n
		if onA != len(a) || onB != len(b) {
			who = fmt.Sprintf("%d of %d runs on %s and %d of %d on %s", onA, len(a), r.Baseline, onB, len(b), r.Target)
		}
		sentences = append(sentences, both[k].from(who))
	}
	return sentences
}

// about leaves out the warnings that are about another metric alone.
func about(metric string, warnings []result.Warning) []result.Warning {
	other := func(w result.Warning) bool { return w.Metric != "" && w.Metric != metric }
	return slices.DeleteFunc(slices.Clone(warnings), other)
}
