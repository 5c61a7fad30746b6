package report

import (
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A run is a result.Run with what it is for the comparison.
type run struct {
	*result.Run
	experiment string
	label      string      // its target's name in the comparison
	state      chart.State // whether the comparison rests on it
}

// runs lists the runs of an input in the order in which they happened; of two directories the
// second's after the first's.
func (in Input) runs() []run {
	if in.Second == nil {
		return runsOf(in.Experiment.ID, in.Runs, func(target string) string { return target })
	}
	first, second := in.Experiment.ID, in.Second.Experiment.ID
	return append(runsOf(first, in.Runs, within(first)), runsOf(second, in.Second.Runs, within(second))...)
}

// within names the targets of one of two experiments, as compare does.
func within(experiment string) func(string) string {
	return func(target string) string { return target + " (" + experiment + ")" }
}

// facts are those of the input's targets, by their names in the comparison.
func (in Input) facts() map[string][]result.Fact {
	if in.Second == nil {
		return in.Facts
	}
	all := map[string][]result.Fact{}
	for target, facts := range in.Facts {
		all[within(in.Experiment.ID)(target)] = facts
	}
	for target, facts := range in.Second.Facts {
		all[within(in.Second.Experiment.ID)(target)] = facts
	}
	return all
}

// runsOf marks the runs of one experiment: those that count are valid and of the last attempt at
// their block.
func runsOf(experiment string, list []result.Run, label func(string) string) []run {
	last := result.LastAttempts(list)
	all := make([]run, len(list))
	for i := range list {
		r := &list[i]
		all[i] = run{Run: r, experiment: experiment, label: label(r.Target)}
		switch {
		case !r.Valid():
			all[i].state = chart.Invalid
		case !last(r):
			all[i].state = chart.Superseded
		}
	}
	return all
}
