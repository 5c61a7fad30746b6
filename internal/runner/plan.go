package runner

import (
	"github.com/knotmeter/knotmeter/internal/result"
)

// RunOverhead is the seconds a run is thought to take besides warm-up and window, before any has
// been made: making the places, starting the tool, removing the places, writing the run.
const RunOverhead = 0.25

// A Plan is what an experiment would do if every case had all its blocks.
type Plan struct {
	Cases   []PlannedCase
	Blocks  int
	Runs    int     // without repeated blocks
	Seconds float64 // predicted, not bounded by the budget
}

// A PlannedCase is a case with what it takes.
type PlannedCase struct {
	result.Case
	Targets []string // that it is measured on, in the order of the experiment
	Runs    int
	Block   float64 // seconds that one block of it takes, predicted
	Seconds float64 // of all blocks
}

// An Estimate predicts the seconds that a run of a case on a target takes.
type Estimate func(caseName, target string) float64

// NewPlan predicts what e takes by an estimate; nil is [NominalEstimate]. Cases that no target can do are
// left out.
func NewPlan(e result.Experiment, estimate Estimate) Plan {
	if estimate == nil {
		estimate = NominalEstimate(e.Design)
	}
	p := Plan{Blocks: e.Design.Blocks}
	for _, c := range e.Cases {
		pc := PlannedCase{Case: c}
		for _, t := range e.Targets {
			if (c.Role == result.Bound && t.Name != e.Baseline) || excluded(e.NotMeasured, t.Name, c.Name) {
				continue
			}
			pc.Targets = append(pc.Targets, t.Name)
			pc.Block = besides(e.Design, pc.Block, estimate(c.Name, t.Name))
		}
		if len(pc.Targets) == 0 {
			continue
		}
		pc.Runs = len(pc.Targets) * e.Design.Blocks
		pc.Seconds = float64(e.Design.Blocks) * pc.Block
		p.Cases = append(p.Cases, pc)
		p.Runs += pc.Runs
		p.Seconds += pc.Seconds
	}
	return p
}

// NominalEstimate is warm-up, window and [RunOverhead] for every run.
func NominalEstimate(d result.Design) Estimate {
	return func(string, string) float64 { return nominal(d) }
}

// EstimateFrom predicts from earlier runs: what they took besides warm-up and window, and the warm-up and
// window of d. The cases and targets of the earlier runs must have the names that they have now.
func EstimateFrom(d result.Design, earlier result.Results) Estimate {
	took := newDurations(d)
	was := earlier.Experiment.Design
	for _, r := range earlier.Runs {
		if !r.Valid() {
			continue
		}
		seconds := r.Setup + r.Window + r.Cleanup + idle.Seconds()
		took.add(r, max(0, seconds-was.Warmup-was.Duration)+d.Warmup+d.Duration)
	}
	return took.of
}

// besides is what runs take that take so long, and another one: one after the other, or at the same time.
func besides(d result.Design, others, another float64) float64 {
	if d.Parallel {
		return max(others, another)
	}
	return others + another
}

func nominal(d result.Design) float64 { return d.Warmup + d.Duration + RunOverhead }

// durations are the seconds that runs took, to predict those to come.
type durations struct {
	nominal float64
	byRun   map[[2]string]*mean
	byCase  map[string]*mean
	all     mean
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func newDurations(d result.Design) durations {
	return durations{nominal: nominal(d), byRun: map[[2]string]*mean{}, byCase: map[string]*mean{}}
}

func (d *durations) add(r result.Run, took float64) {
	key := [2]string{r.Case, r.Target}
	if d.byRun[key] == nil {
		d.byRun[key] = &mean{}
	}
	if d.byCase[r.Case] == nil {
		d.byCase[r.Case] = &mean{}
	}
	d.byRun[key].add(took)
	d.byCase[r.Case].add(took)
	d.all.add(took)
}

// of predicts a run from the same case and target, else the same case, else all runs, else the plan.
func (d *durations) of(caseName, target string) float64 {
	for _, m := range []*mean{d.byRun[[2]string{caseName, target}], d.byCase[caseName], &d.all} {
		if m != nil && m.n > 0 {
			return m.sum / float64(m.n)
		}
	}
	return d.nominal
}

// affordable says whether a block of a case can begin: it must not be predicted to exceed the budget
// by more than one run. The budget is this session's; a resumed experiment has a new one.
func (s *session) affordable(c result.Case, block int) bool {
	budget := s.e.Design.Budget
	if budget == 0 {
		return true
	}
	var all, longest float64
	for _, name := range Order(s.e, c, block, 1) {
		takes := s.durations.of(c.Name, name)
		all, longest = besides(s.e.Design, all, takes), max(longest, takes)
	}
	return s.elapsed()+all <= budget+longest
}
