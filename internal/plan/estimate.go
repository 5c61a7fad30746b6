// Package plan predicts what an experiment takes and what it can show, from its design and from what was measured
// before. It measures nothing: the runner asks it whether the budget pays for another block, and the commands what to
// tell before the first run.
package plan

import (
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Pause before a run, so that one does not disturb the next, unless somebody says otherwise.
const Pause = 20 * time.Millisecond

// MaxBlocks is the most that a design may have.
const MaxBlocks = 1000

// RunOverhead is the seconds a run is thought to take besides warm-up and window, before any has
// been made: making the places, starting the tool, removing the places, writing the run.
const RunOverhead = 0.25

// An Outline is what an experiment would do if every case had all its blocks.
type Outline struct {
	Cases   []Case
	Blocks  int
	Runs    int     // without repeated blocks
	Seconds float64 // predicted, not bounded by the budget
}

// A Case is a case with what it takes.
type Case struct {
	result.Case
	Targets []string // that it is measured on, in the order of the experiment
	Runs    int
	Block   float64 // seconds that one block of it takes, predicted
	Seconds float64 // of all blocks
}

// An Estimate predicts the seconds that a run of a case on a target takes.
type Estimate func(caseName, target string) float64

// Of outlines e by an estimate; nil is [Nominal]. Cases that no target can do are
// left out.
func Of(e result.Experiment, estimate Estimate) Outline {
	if estimate == nil {
		estimate = Nominal(e.Design)
	}
	p := Outline{Blocks: e.Design.Blocks}
	for _, c := range e.Cases {
		pc := Case{Case: c}
		for _, t := range e.Targets {
			if (c.Role == result.Bound && t.Name != e.Baseline) || leftOut(e, t.Name, c.Name) {
				continue
			}
			pc.Targets = append(pc.Targets, t.Name)
			pc.Block = Together(e.Design, pc.Block, estimate(c.Name, t.Name))
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

// Nominal is warm-up, window and [RunOverhead] for every run.
func Nominal(d result.Design) Estimate {
	return func(string, string) float64 { return nominal(d) }
}

// EstimateBy predicts from earlier runs: what they took besides warm-up and window, and the warm-up and
// window of d. The cases and targets of the earlier runs must have the names that they have now.
func EstimateBy(d result.Design, earlier result.Results) Estimate {
	took := NewDurations(d)
	was := earlier.Experiment.Design
	for _, r := range earlier.Runs {
		if !r.Valid() {
			continue
		}
		seconds := r.Setup + r.Window + r.Cleanup + Pause.Seconds()
		took.Add(r, max(0, seconds-was.Warmup-was.Duration)+d.Warmup+d.Duration)
	}
	return took.Of
}

// Together is what runs take that take so long, and another one: one after the other, or at the same time.
func Together(d result.Design, others, another float64) float64 {
	if d.Parallel {
		return max(others, another)
	}
	return others + another
}

func nominal(d result.Design) float64 { return d.Warmup + d.Duration + RunOverhead }

// Durations are the seconds that runs took, to predict those to come.
type Durations struct {
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

// NewDurations knows of no run yet.
func NewDurations(d result.Design) Durations {
	return Durations{nominal: nominal(d), byRun: map[[2]string]*mean{}, byCase: map[string]*mean{}}
}

// Add adds a run that took so many seconds.
func (d *Durations) Add(r result.Run, took float64) {
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

// Of predicts a run from the same case and target, else the same case, else all runs, else the plan.
func (d *Durations) Of(caseName, target string) float64 {
	for _, m := range []*mean{d.byRun[[2]string{caseName, target}], d.byCase[caseName], &d.all} {
		if m != nil && m.n > 0 {
			return m.sum / float64(m.n)
		}
	}
	return d.nominal
}

func leftOut(e result.Experiment, target, name string) bool {
	return slices.ContainsFunc(e.NotMeasured, func(n result.NotMeasured) bool { return n.Covers(target, name) })
}
