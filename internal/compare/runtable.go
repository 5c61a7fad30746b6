package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A runTable holds an experiment and its runs, indexed by case, block and target.
type runTable struct {
	e    result.Experiment
	look stats.Design // nil if the runs are not paired
	// primaries is the number of planned primary comparisons.
	primaries int
	// targetPairs are the comparisons to make; for each target the one with its baseline comes first.
	targetPairs []targetPair
	// byTarget holds, for each target, the table of its own experiment; nil unless several experiments are compared.
	byTarget map[string]*runTable
	// stoppedAfter holds the blocks after which cases stopped. lookBlocks is the look at which the other cases are
	// analysed, 0 after the end of the experiment.
	stoppedAfter stopBlocks
	lookBlocks   int
	// detectableShifts caches the detectable changes, in standard deviations, by alpha.
	detectableShifts map[float64]float64
	// findings are those of the audit; auditErrors names the runs that are left out because of them.
	findings    []audit.Finding
	auditErrors auditErrors
	// lastAttempt holds the runs of the last attempt, by case, block and target.
	lastAttempt map[string]map[int]map[string]*result.Run
	// all holds every run, by case and target.
	all            map[string]map[string][]*result.Run
	sharedWarnings warningCounts // warnings that all runs have
	closedLoop     bool          // every loop that runs record is closed
	warnings       []Warning
	unmatched      map[Unmatched]bool // metrics of runs that are not paired, which are compared with nothing
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

// newRunTable indexes the runs. Runs that do not belong to the plan are left out with a warning.
func newRunTable(e result.Experiment, runs []result.Run) *runTable {
	t := &runTable{e: e, targetPairs: plannedPairs(e), unmatched: map[Unmatched]bool{},
		lastAttempt: map[string]map[int]map[string]*result.Run{}, all: map[string]map[string][]*result.Run{}}
	t.primaries = countPrimaryCases(e.Cases) * len(t.targetPairs)
	targets, cases := map[string]bool{}, map[string]bool{}
	for _, x := range e.Targets {
		targets[x.Name] = true
	}
	for _, x := range e.Cases {
		cases[x.Name] = true
	}
	var unknown []string
	var known []*result.Run
	for i := range runs {
		r := &runs[i]
		if !targets[r.Target] || !cases[r.Case] || r.Block < 1 {
			unknown = append(unknown, r.ID)
			continue
		}
		known = append(known, r)
		t.add(r)
	}
	if len(unknown) > 0 {
		t.warnings = append(t.warnings, Warning{Code: UnplannedRuns, Runs: unknown})
	}
	t.sharedWarnings, t.closedLoop = warningsOfAll(known), closedLoop(known)
	return t
}

// paired reports whether runs are paired by blocks; those of several experiments and of other tools are not.
func (t *runTable) paired() bool { return t.look != nil }

// add indexes a run. A run of an earlier attempt is only counted; attempts count for the whole block, or for each
// target of the block if targets were measured in turn.
func (t *runTable) add(r *result.Run) {
	if t.all[r.Case] == nil {
		t.all[r.Case], t.lastAttempt[r.Case] = map[string][]*result.Run{}, map[int]map[string]*result.Run{}
	}
	t.all[r.Case][r.Target] = append(t.all[r.Case][r.Target], r)
	have := t.lastAttempt[r.Case][r.Block]
	attempt := r.Attempt
	for name, other := range have {
		if r.Visit == 0 || name == r.Target {
			attempt = other.Attempt
			break
		}
	}
	switch {
	case have == nil || r.Visit == 0 && r.Attempt > attempt:
		t.lastAttempt[r.Case][r.Block] = map[string]*result.Run{r.Target: r}
	case r.Attempt > attempt:
		have[r.Target] = r
	case r.Attempt == attempt:
		if twin, twice := have[r.Target]; twice {
			t.warnings = append(t.warnings, Warning{Code: RunTwice, Block: r.Block, Attempt: r.Attempt,
				Cases: []string{r.Case}, Targets: []string{r.Target}, Runs: []string{twin.ID, r.ID}})
		}
		have[r.Target] = r
	}
}

// tableOf returns the table of the experiment in which a target was measured.
func (t *runTable) tableOf(target string) *runTable {
	if part := t.byTarget[target]; part != nil {
		return part
	}
	return t
}

// hasCase reports whether the experiments of both targets have a case.
func (t *runTable) hasCase(rc result.Case, v targetPair) bool {
	if t.byTarget == nil {
		return true
	}
	_, a := t.tableOf(v.baseline).e.Case(rc.Name)
	_, b := t.tableOf(v.target).e.Case(rc.Name)
	return a && b
}

// baselineOf returns the baseline of a target, "" if the target is not compared.
func (t *runTable) baselineOf(target string) string {
	for _, v := range t.targetPairs {
		if v.target == target {
			return v.baseline
		}
	}
	return ""
}

// valid returns the valid runs of the last attempts of a case on a target, by block, without those that the audit
// excludes.
func (t *runTable) valid(caseName, target string) map[int]*result.Run {
	t = t.tableOf(target)
	runs := map[int]*result.Run{}
	for block, have := range t.lastAttempt[caseName] {
		if r, ok := have[target]; ok && r.Valid() && len(t.auditErrors[r.ID]) == 0 {
			runs[block] = r
		}
	}
	return runs
}

// blocks lists the blocks in which both sides have a run, in ascending order.
func blocks(a, b map[int]*result.Run) []int {
	var both []int
	for n := range a {
		if _, ok := b[n]; ok {
			both = append(both, n)
		}
	}
	slices.Sort(both)
	return both
}

// metrics lists the metrics that have a better direction, the case's own first, then in order of first appearance.
func metrics(own string, sides ...map[int]*result.Run) []result.Value {
	var found []result.Value
	seen := map[string]bool{}
	for _, side := range sides {
		for _, block := range slices.Sorted(maps.Keys(side)) {
			for _, v := range side[block].Values {
				if !seen[v.Metric] && (v.Better == metric.Higher || v.Better == metric.Lower) {
					seen[v.Metric] = true
					found = append(found, v)
				}
			}
		}
	}
	return ownFirst(own, found)
}

// ownFirst moves the value of a case's own metric to the front.
func ownFirst(own string, values []result.Value) []result.Value {
	if i := slices.IndexFunc(values, func(v result.Value) bool { return v.Metric == own }); i > 0 {
		v := values[i]
		return slices.Insert(slices.Delete(values, i, i+1), 0, v)
	}
	return values
}

// targetRuns counts the runs of every target.
func (t *runTable) targetRuns() []TargetRuns {
	counted := []TargetRuns{}
	for _, x := range t.e.Targets {
		var runs []*result.Run
		for _, rc := range t.e.Cases {
			runs = append(runs, t.all[rc.Name][x.Name]...)
		}
		counted = append(counted, countRuns(x, runs))
	}
	return counted
}

// mostReasons is the maximum number of listed reasons. There may be as many reasons as runs, because errors of
// connections contain an address.
const mostReasons = 5

func countRuns(x result.Target, runs []*result.Run) TargetRuns {
	c := TargetRuns{Name: x.Name, Spec: x.Spec.Text, Runs: len(runs), Reasons: []Reason{}}
	// Reasons of one kind are shown with the text of the first.
	reasons := warningCounts{}
	for _, r := range runs {
		if !r.Valid() {
			c.Invalid++
		}
		reasons.add(r.Invalid)
	}
	for _, why := range reasons {
		c.Reasons = append(c.Reasons, Reason{why.first.Text, why.count})
	}
	slices.SortFunc(c.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Text, b.Text))
	})
	if n := len(c.Reasons); n > mostReasons {
		others := Reason{Text: "other reasons"}
		for _, r := range c.Reasons[mostReasons:] {
			others.Runs += r.Runs
		}
		c.Reasons = append(c.Reasons[:mostReasons], others)
	}
	return c
}
