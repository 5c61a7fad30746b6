package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// An analysisPlan holds what is computed once from the design of an experiment: what is costly or may be invalid.
type analysisPlan struct {
	look             stats.Design
	gates            []Gate
	detectableShifts map[float64]float64 // cache of detectable shifts by alpha
}

// newAnalysisPlan checks the plan of e. It returns an error that wraps ErrExperiment if the plan allows no comparison.
func newAnalysisPlan(e result.Experiment) (analysisPlan, error) {
	if err := check(e); err != nil {
		return analysisPlan{}, err
	}
	gates, err := parseGates(e.Gates...)
	if err != nil {
		return analysisPlan{}, err
	}
	look, err := lookDesign(e.Design)
	return analysisPlan{look, gates, map[float64]float64{}}, err
}

// Stopping returns the function that decides after each block which cases continue, for the runner. The experiment is
// passed to it again because the list of what is not measured grows. An error wraps [ErrExperiment].
//
// Without looks every case has all blocks. With looks, every case that continues does so up to the next look. There a
// case stops when each comparison of its own metric is different or equivalent: a primary one by its repeated interval
// at 1 - alpha / m; any other by that at 1 - alpha, and under control of the false discovery rate among all comparisons
// that are not primary. Each gate on the case must have passed or failed as well. Everything stops when all primary
// comparisons are decided, or all others if none is primary, and all gates. Comparisons that can get no more data do
// not keep a case going; values without a ratio do, up to the last look. A comparison that lacks pairs is judged at the
// last look that its pairs are enough for. A bound continues as long as a case that refers to it.
//
// The function keeps no state: it repeats all looks from the first one, each with the runs up to it, so that a resumed
// experiment takes the same decisions as before.
func Stopping(e result.Experiment) (func(e result.Experiment, done int, runs []result.Run) []string, error) {
	p, err := newAnalysisPlan(e)
	if err != nil {
		return nil, err
	}
	return p.remainingAfter, nil
}

// remainingAfter returns the cases that continue after done blocks, nil after the last.
func (p analysisPlan) remainingAfter(e result.Experiment, done int, runs []result.Run) []string {
	if done >= e.Design.Blocks {
		return nil
	}
	if len(e.Design.Looks) == 0 || done < e.Design.Looks[0] {
		return remainingCases(e, nil)
	}
	return remainingCases(e, p.replayLooks(e, done, runs, checkRuns(e, runs)))
}

// A stopBlocks maps a case to the number of blocks after which it stopped; cases that continue are missing.
type stopBlocks map[string]int

// remainingCases lists the cases that continue, in the order of the plan.
func remainingCases(e result.Experiment, stopped stopBlocks) []string {
	bounds, needed := map[string]bool{}, map[string]bool{}
	over := slices.ContainsFunc(e.Cases, func(rc result.Case) bool { return rc.Role != result.Bound })
	for _, rc := range e.Cases {
		if rc.Role == result.Bound {
			continue
		}
		bounds[rc.Bound] = true
		if stopped[rc.Name] == 0 {
			needed[rc.Name], needed[rc.Bound], over = true, true, false
		}
	}
	var names []string
	for _, rc := range e.Cases {
		// A bound that no case refers to continues with the rest.
		if needed[rc.Name] || rc.Role == result.Bound && !bounds[rc.Name] && !over {
			names = append(names, rc.Name)
		}
	}
	return names
}

// replayLooks repeats the decisions of all looks up to done blocks. The runs with errors in wrong are left out.
func (p analysisPlan) replayLooks(e result.Experiment, done int, runs []result.Run, wrong auditErrors) stopBlocks {
	stopped := stopBlocks{}
	for _, at := range e.Design.Looks {
		if at > done || len(stopped) > 0 && len(remainingCases(e, stopped)) == 0 {
			break
		}
		t := p.interimTable(e, at, runs, stopped)
		t.auditErrors = wrong
		t.addDecided(stopped, t.gateChecks(p.gates))
	}
	return stopped
}

// addDecided records the cases that are decided at this look.
func (t *runTable) addDecided(stopped stopBlocks, checks []gateCheck) {
	open, rows := t.openCases()
	gated := map[string]bool{}
	for _, rc := range t.e.Cases {
		gated[rc.Name] = t.gatesDecided(rc, checks)
	}
	t.addUndecidedExploratory(rows, open, func(name string) bool {
		return stopped[name] != 0 || !open[name] && gated[name]
	})
	primaries, all := true, true
	isPlanned := slices.ContainsFunc(t.e.Cases, func(rc result.Case) bool { return rc.Role == result.Primary })
	var stopping []string
	for _, rc := range t.e.Cases {
		if rc.Role == result.Bound || stopped[rc.Name] != 0 {
			continue
		}
		compared, gated := !open[rc.Name], gated[rc.Name]
		if compared && gated {
			stopping = append(stopping, rc.Name)
		}
		all = all && compared && gated
		primaries = primaries && gated && (compared || rc.Role != result.Primary)
	}
	if all || isPlanned && primaries {
		stopping = nil
		for _, rc := range t.e.Cases {
			if rc.Role != result.Bound && stopped[rc.Name] == 0 {
				stopping = append(stopping, rc.Name)
			}
		}
	}
	for _, name := range stopping {
		stopped[name] = t.lookBlocks
	}
}

// interimTable returns the runs that are known at the look after at blocks. A case that stopped earlier has only the
// blocks up to its end.
func (p analysisPlan) interimTable(e result.Experiment, at int, runs []result.Run, stopped stopBlocks) *runTable {
	var known []result.Run
	for _, r := range runs {
		if end := stopped[r.Case]; r.Block <= at && (end == 0 || r.Block <= end) {
			known = append(known, r)
		}
	}
	t := newRunTable(e, known)
	t.look, t.stoppedAfter, t.lookBlocks = p.look, stopped, at
	return t
}

// openCases returns the cases that cannot stop yet, before exploratory comparisons are judged: those with an undecided
// primary comparison, or with a comparison that more blocks may make possible. It also returns the rows of the
// exploratory comparisons.
func (t *runTable) openCases() (open map[string]bool, rows map[comparisonKey]Row) {
	open, rows = map[string]bool{}, map[comparisonKey]Row{}
	for _, rc := range t.e.Cases {
		for _, v := range plannedPairs(t.e) {
			if rc.Role == result.Bound || t.isGivenUp(rc, v) {
				continue
			}
			r, judged, pending := t.row(rc, v)
			open[rc.Name] = open[rc.Name] || pending || judged && r.Role == result.Primary && r.Verdict == Undecided
			if judged && r.Role != result.Primary {
				rows[comparisonKey{rc.Name, v}] = r
			}
		}
	}
	return open, rows
}

// addUndecidedExploratory adds the cases with an undecided exploratory comparison to the open ones. final reports
// whether a case gets no more blocks. In the report, a case that stops here is judged together with cases that had more
// blocks, whose p may rise until then. So each comparison of a case that is not final counts with a p of 1, and a
// decision made here can only become clearer.
func (t *runTable) addUndecidedExploratory(rows map[comparisonKey]Row, open map[string]bool,
	final func(name string) bool) {
	family := t.plannedExploratory()
	known := make([]Row, len(family))
	for i, x := range family {
		r, has := rows[x]
		if !has { // compared for letters alone, or given up
			rc, _ := t.e.Case(x.caseName)
			r, has, _ = t.row(result.Case{Name: rc.Name, Metric: rc.Metric}, x.targetPair)
		}
		if known[i] = r; !has {
			known[i] = Row{P: Missing(), equivalenceP: 1}
		}
	}
	for again := true; again; {
		now := make([]*Row, len(family))
		for i, x := range family {
			r := known[i]
			if !final(x.caseName) {
				r.P, r.equivalenceP = Missing(), 1
			}
			now[i] = &r
		}
		decideTogether(now, t.e.Design.Alpha, t.e.Design.Delta)
		again = false
		for i, x := range family {
			if _, asked := rows[x]; asked && !open[x.caseName] && final(x.caseName) && now[i].Verdict == Undecided {
				open[x.caseName], again = true, true
			}
		}
	}
}

// row compares two targets by the case's own metric; judged is false if that is not possible yet. Then pending reports
// whether more blocks may help: a metric that no run has stays missing.
func (t *runTable) row(rc result.Case, of targetPair) (r Row, judged, pending bool) {
	a, b := t.valid(rc.Name, of.baseline), t.valid(rc.Name, of.target)
	v, ok := firstValue(rc.Metric, a, b)
	if !ok {
		return r, false, len(blocks(a, b)) == 0
	}
	r = newRow(t.e.Design, rc, v, of)
	pairs, ok := t.sides(&r)
	if !ok || !r.estimateRatio(pairs, r.intervalAlpha(t.e.Design, t.primaries), t.e.Design.Delta) {
		return r, false, true
	}
	r.describe(pairs)
	r.decidePrimary(t.e.Design.Delta)
	return r, true, false
}

// isGivenUp reports whether a comparison had been given up by this look: it is given up now, and the block of the look
// lacks a side.
func (t *runTable) isGivenUp(rc result.Case, of targetPair) bool {
	if isMeasured(t.e, rc.Name, of.baseline) && isMeasured(t.e, rc.Name, of.target) {
		return false
	}
	have := t.lastAttempt[rc.Name][t.lookBlocks]
	a, okA := have[of.baseline]
	b, okB := have[of.target]
	return !okA || !okB || !a.Valid() || !b.Valid()
}

// gatesDecided reports whether all gates on a case are decided, or cannot be decided by more blocks.
func (t *runTable) gatesDecided(rc result.Case, checks []gateCheck) bool {
	for _, d := range checks {
		if d.rc.Name != rc.Name || t.isGivenUp(rc, targetPair{t.e.Baseline, d.target}) {
			continue
		}
		if g, lost := t.decideGate(d, t.e.Design.Alpha/float64(len(checks))); g.Outcome == Open && !lost {
			return false
		}
	}
	return true
}

// lastBlock returns the number of the last block with a run of a case, 0 if there is none.
func (t *runTable) lastBlock(caseName string) int {
	last := 0
	for block := range t.lastAttempt[caseName] {
		last = max(last, block)
	}
	return last
}

// lastBlockOfAll returns the number of the last block with a run of any case.
func (t *runTable) lastBlockOfAll() int {
	last := 0
	for name := range t.lastAttempt {
		last = max(last, t.lastBlock(name))
	}
	return last
}

// isLastLook reports whether a case of a design with several looks had the maximum number of blocks.
func (t *runTable) isLastLook(caseName string) bool {
	return len(t.e.Design.Looks) > 1 && t.lastBlock(caseName) >= t.e.Design.Blocks
}

// warnEnd warns of a case that has fewer blocks than the maximum because the experiment ended. Cases that were decided
// or given up have no such warning.
func (t *runTable) warnEnd(r *Row) {
	ran, end := t.lastBlock(r.Case), t.e.Design.Blocks
	if t.stoppedAfter[r.Case] != 0 {
		end = t.stoppedAfter[r.Case]
	}
	givenUp := !isMeasured(t.e, r.Case, r.Baseline) || !isMeasured(t.e, r.Case, r.Target)
	switch {
	case len(t.e.Design.Looks) == 0 || ran >= end || givenUp:
	case t.e.Design.Budget > 0:
		r.warn(Warning{Code: BudgetSpent, Count: ran, Of: t.e.Design.Blocks, Seconds: t.e.Design.Budget})
	default:
		r.warn(Warning{Code: EndedEarly, Count: ran, Of: t.e.Design.Blocks})
	}
}

// interruption returns a warning if the experiment ended before its fixed number of blocks, so that rows are undecided.
func (t *runTable) interruption(rows []Row) []Warning {
	done, planned := 0, 0
	for _, r := range rows {
		if r.awaited > 0 {
			done, planned = max(done, r.Blocks), r.awaited
		}
	}
	if planned == 0 {
		return nil
	}
	return []Warning{{Code: BeforeLastBlock, Count: done, Of: planned, Seconds: t.e.Design.Budget}}
}
