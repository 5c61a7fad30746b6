// Package plan predicts what an experiment takes and what it can show, from its design and from what was measured
// before. It measures nothing: the runner asks it whether the budget pays for another block, and the commands what to
// print before the first run.
package plan

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// MaxBlocks is the most that a design may have.
const MaxBlocks = 1000

// An Outline is what an experiment would do if every case had all its blocks.
type Outline struct {
	Cases    []Case
	Blocks   int
	Runs     int     // without repeated blocks
	Sites    float64 // seconds that making and removing the sites of a block takes, predicted
	Visits   int     // of targets that are measured in turn, in all blocks; 0: they are not
	Switches float64 // seconds that the switches of a block take, predicted
	Windows  float64 // seconds of a block in which something is measured
	Seconds  float64 // of everything, predicted, not bounded by the budget
}

// A Case is a case with what it takes.
type Case struct {
	result.Case
	Targets []string // that it is measured on, in the order of the experiment
	Runs    int
	Block   float64 // seconds that its runs in one block take, predicted
	Seconds float64 // that all its runs take
}

// NewOutline outlines e by durations. Cases that no target can do are left out.
func NewOutline(e result.Experiment, d *Durations) Outline {
	p := Outline{Blocks: e.Design.Blocks}
	one := map[string]float64{} // block of each case
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

// Together is what runs take that take so long, and another one: one after the other, or at the same time.
func Together(d result.Design, others, another float64) float64 {
	if d.Parallel {
		return max(others, another)
	}
	return others + another
}
