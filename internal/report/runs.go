package report

import (
	"cmp"

	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A run is a result.Run with its role in the comparison.
type run struct {
	*result.Run
	experiment string
	state      chart.State // whether the comparison uses it
}

// runs returns the runs of an input in chronological order, one experiment after another. Those that count are valid
// and belong to the last attempt of their block.
func (in Input) runs() []run {
	last := result.LastAttempts(in.Runs)
	all := make([]run, len(in.Runs))
	for i := range in.Runs {
		r := &in.Runs[i]
		all[i] = run{Run: r, experiment: cmp.Or(r.Experiment, in.Experiment.ID)}
		switch {
		case !r.Valid():
			all[i].state = chart.Invalid
		case !last(r):
			all[i].state = chart.Superseded
		}
	}
	return all
}
