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

// A Cost predicts the seconds that a run of a case on a target takes.
type Cost func(caseName, target string) float64

// NewPlan predicts what e takes at that cost; nil is [NominalCost]. Cases that no target can do are
// left out.
func NewPlan(e result.Experiment, cost Cost) Plan {
	if cost == nil {
		cost = NominalCost(e.Design)
	}
	p := Plan{Blocks: e.Design.Blocks}
	for _, c := range e.Cases {
		pc := PlannedCase{Case: c}
		for _, t := range e.Targets {
			if (c.Role == result.Bound && t.Name != e.Baseline) || excluded(e.NotMeasured, t.Name, c.Name) {
				continue
			}
			pc.Targets = append(pc.Targets, t.Name)
			pc.Block = besides(e.Design, pc.Block, cost(c.Name, t.Name))
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

// NominalCost is warm-up, window and [RunOverhead] for every run.
func NominalCost(d result.Design) Cost {
	return func(string, string) float64 { return nominal(d) }
}

// CostOf predicts from earlier runs: what they took besides warm-up and window, and the warm-up and
// window of d. The cases and targets of the earlier runs must have the names that they have now.
func CostOf(d result.Design, earlier result.Results) Cost {
	costs := newCosts(d)
	was := earlier.Experiment.Design
	for _, r := range earlier.Runs {
		if !r.Valid() {
			continue
		}
		took := r.Setup + r.Window + r.Cleanup + idle.Seconds()
		costs.add(r, max(0, took-was.Warmup-was.Duration)+d.Warmup+d.Duration)
	}
	return costs.of
}

// besides is what runs take that take so long, and another one: one after the other, or at the same time.
func besides(d result.Design, others, another float64) float64 {
	if d.Parallel {
		return max(others, another)
	}
	return others + another
}

func nominal(d result.Design) float64 { return d.Warmup + d.Duration + RunOverhead }

// costs are the seconds that runs took, to predict those to come.
type costs struct {
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

func newCosts(d result.Design) costs {
	return costs{nominal: nominal(d), byRun: map[[2]string]*mean{}, byCase: map[string]*mean{}}
}

func (c *costs) add(r result.Run, took float64) {
	key := [2]string{r.Case, r.Target}
	if c.byRun[key] == nil {
		c.byRun[key] = &mean{}
	}
	if c.byCase[r.Case] == nil {
		c.byCase[r.Case] = &mean{}
	}
	c.byRun[key].add(took)
	c.byCase[r.Case].add(took)
	c.all.add(took)
}

// of predicts a run from the same case and target, else the same case, else all runs, else the plan.
func (c *costs) of(caseName, target string) float64 {
	for _, m := range []*mean{c.byRun[[2]string{caseName, target}], c.byCase[caseName], &c.all} {
		if m != nil && m.n > 0 {
			return m.sum / float64(m.n)
		}
	}
	return c.nominal
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
		cost := s.costs.of(c.Name, name)
		all, longest = besides(s.e.Design, all, cost), max(longest, cost)
	}
	return s.elapsed()+all <= budget+longest
}
