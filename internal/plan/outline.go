// Package plan predicts how long an experiment takes and which changes it can detect, from its design and from earlier
// results. The runner uses it to keep to the budget, and the commands to print a plan before the first run.
package plan

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// MaxBlocks is the largest number of blocks of a design.
const MaxBlocks = 1000

// An Outline holds the runs and predicted seconds of an experiment in which every case has all its blocks.
type Outline struct {
	Cases    []Case
	Blocks   int
	Runs     int     // without repeated ones
	Sites    float64 // seconds of opening and closing the sites of a block
	Visits   int     // visits in all blocks; 0 unless targets are measured in turn
	Switches float64 // seconds of the switches of a block
	Windows  float64 // seconds within the windows of a block
	Seconds  float64 // in all, not limited by the budget
}

// A Case is a case with its runs and predicted seconds.
type Case struct {
	result.Case
	Targets []string // targets that measure it, in the order of the experiment
	Runs    int
	Block   float64 // seconds of its runs in one block
	Seconds float64 // of all its runs
}

// NewOutline returns the outline of e, predicted by d. Cases that no target supports are left out.
func NewOutline(e result.Experiment, d *Durations) Outline {
	p := Outline{Blocks: e.Design.Blocks}
	one := map[string]float64{} // one block of each case
	for _, c := range e.Cases {
		pc := Case{Case: c, Targets: e.MeasuredOn(c)}
		if len(pc.Targets) == 0 {
			continue
		}
		windows := 0.0
		for _, t := range pc.Targets {
			pc.Block = Together(e.Design, pc.Block, d.Run(c.Name, t))
			windows = Together(e.Design, windows, e.Design.Duration)
		}
		p.Windows += windows
		pc.Runs = len(pc.Targets) * e.Design.Blocks
		pc.Seconds = float64(e.Design.Blocks) * pc.Block
		one[c.Name] = 1
		p.Cases = append(p.Cases, pc)
		p.Runs += pc.Runs
		p.Seconds += pc.Seconds
	}
	p.Sites = d.Sites(one)
	p.Switches = d.Switches(one)
	p.Seconds += float64(e.Design.Blocks) * (p.Sites + p.Switches)
	if e.InTurn() {
		for _, t := range e.TargetNames() {
			if slices.ContainsFunc(p.Cases, func(c Case) bool { return slices.Contains(c.Targets, t) }) {
				p.Visits += e.Design.Blocks
			}
		}
	}
	return p
}

// Together returns the seconds of two groups of runs on different targets: the sum of others and another, or their
// maximum if targets are measured at the same time.
func Together(d result.Design, others, another float64) float64 {
	if d.Parallel {
		return max(others, another)
	}
	return others + another
}
