package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A trial is an experiment with its runs, sorted so that they can be found.
type trial struct {
	e    result.Experiment
	look stats.Design // nil if the runs are not paired
	// versus are the comparisons that there are to make, of each target that with its baseline first.
	versus []versus
	// parts are the trials that a trial of several experiments consists of, by target.
	parts map[string]*trial
	// stopped is after how many blocks cases had what they were measured for; at is that of the look at which the others
	// are looked at, 0 in the end.
	stopped history
	at      int
	// shifts are the changes that can be detected, in standard deviations, by alpha.
	shifts map[float64]float64
	// findings are those of the audit, mistakes the runs that it leaves out.
	findings []audit.Finding
	mistakes mistakes
	// last has the runs of the last attempt, by case, block and target.
	last map[string]map[int]map[string]*result.Run
	// all has every run of a case, by target.
	all      map[string]map[string][]*result.Run
	common   chorus // warnings of all runs
	closed   bool   // all requests of all runs are closed loop
	warnings []string
}

// newTrial sorts the runs. What does not belong to the plan is left out with a warning.
func newTrial(e result.Experiment, runs []result.Run) *trial {
	t := &trial{e: e, versus: contests(e),
		last: map[string]map[int]map[string]*result.Run{}, all: map[string]map[string][]*result.Run{}}
	targets, cases := map[string]bool{}, map[string]bool{}
	for _, x := range e.Targets {
		targets[x.Name] = true
	}
	for _, x := range e.Cases {
		cases[x.Name] = true
	}
	var strangers []string
	var known []*result.Run
	for i := range runs {
		r := &runs[i]
		if !targets[r.Target] || !cases[r.Case] || r.Block < 1 {
			strangers = append(strangers, r.ID)
			continue
		}
		known = append(known, r)
		t.add(r)
	}
	if len(strangers) > 0 {
		t.warn("%s of a case, target or block that the plan does not have, left out: %s.",
			unit.Plural(len(strangers), "run"), prose.Some(strangers))
	}
	t.common, t.closed = inUnison(known), closedLoop(known)
	return t
}

// add files a run. A run of an earlier attempt than the block has already, or its target in the block where targets
// were measured in turn, is only counted.
func (t *trial) add(r *result.Run) {
	if t.all[r.Case] == nil {
		t.all[r.Case], t.last[r.Case] = map[string][]*result.Run{}, map[int]map[string]*result.Run{}
	}
	t.all[r.Case][r.Target] = append(t.all[r.Case][r.Target], r)
	have := t.last[r.Case][r.Block]
	attempt := r.Attempt
	for name, other := range have {
		if r.Visit == 0 || name == r.Target {
			attempt = other.Attempt
			break
		}
	}
	switch {
	case have == nil || r.Visit == 0 && r.Attempt > attempt:
		t.last[r.Case][r.Block] = map[string]*result.Run{r.Target: r}
	case r.Attempt > attempt:
		have[r.Target] = r
	case r.Attempt == attempt:
		if twin, twice := have[r.Target]; twice {
			t.warn("Block %d of %s has two runs on %s in attempt %d, %s and %s; the later one counts.",
				r.Block, r.Case, r.Target, r.Attempt, twin.ID, r.ID)
		}
		have[r.Target] = r
	}
}

func (t *trial) warn(format string, a ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, a...))
}

// of returns the trial in which a target was measured.
func (t *trial) of(target string) *trial {
	if part := t.parts[target]; part != nil {
		return part
	}
	return t
}

// plans reports whether the experiments of both targets have a case.
func (t *trial) plans(rc result.Case, v versus) bool {
	if t.parts == nil {
		return true
	}
	_, a := t.of(v.baseline).e.Case(rc.Name)
	_, b := t.of(v.target).e.Case(rc.Name)
	return a && b
}

// against returns the baseline that a target is compared with, "" if it is compared with none.
func (t *trial) against(target string) string {
	for _, v := range t.versus {
		if v.target == target {
			return v.baseline
		}
	}
	return ""
}

// primaries counts the primary comparisons of the plan.
func (t *trial) primaries() int {
	n := 0
	for _, rc := range t.e.Cases {
		for _, v := range t.versus {
			if rc.Role == result.Primary && t.plans(rc, v) {
				n++
			}
		}
	}
	return n
}

// valid returns the valid runs of the last attempts of a case on a target, by block, but for those
// that the audit leaves out.
func (t *trial) valid(caseName, target string) map[int]*result.Run {
	t = t.of(target)
	runs := map[int]*result.Run{}
	for block, have := range t.last[caseName] {
		if r, ok := have[target]; ok && r.Valid() && len(t.mistakes[r.ID]) == 0 {
			runs[block] = r
		}
	}
	return runs
}

// blocks lists the blocks in which both sides have a run, in order.
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

// metrics lists the metrics of the runs that have a better and a worse, the case's own first, then
// in the order in which they first appear.
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

// ownFirst puts the value of a case's own metric first.
func ownFirst(own string, values []result.Value) []result.Value {
	if i := slices.IndexFunc(values, func(v result.Value) bool { return v.Metric == own }); i > 0 {
		v := values[i]
		return slices.Insert(slices.Delete(values, i, i+1), 0, v)
	}
	return values
}

// targetRuns counts the runs of every target.
func (t *trial) targetRuns() []TargetRuns {
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

// mostReasons is how many reasons are told apart: errors of connections have an address of their own in each run.
const mostReasons = 5

func countRuns(x result.Target, runs []*result.Run) TargetRuns {
	c := TargetRuns{Name: x.Name, Spec: x.Spec, Runs: len(runs), Reasons: []Reason{}}
	// Reasons of one kind are shown with the words of the first.
	reasons := chorus{}
	for _, r := range runs {
		if !r.Valid() {
			c.Invalid++
		}
		reasons.add(r.Invalid)
	}
	for _, why := range reasons {
		c.Reasons = append(c.Reasons, Reason{why.text, why.n})
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
