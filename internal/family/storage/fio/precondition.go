package fio

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A precondition records how long a job ran before its window, and whether its rate was steady.
type precondition struct {
	seconds float64
	steady  bool
}

// precondition runs the job on its file until its rate is steady or storage.PreconditionTime has passed, if the job
// asks for it.
func (r *run) precondition(ctx context.Context, j job, l layout) (precondition, error) {
	if !j.precondition {
		return precondition{}, nil
	}
	text := j.preconditioning(l.workFile, r.times.Window, l.size, drawSeed(), r.pair.Client.CPUs())
	p, err := r.fio(ctx, "precondition", text, storage.PreconditionTime, j.direct)
	if err != nil {
		return precondition{}, fmt.Errorf("preconditioning: %w", err)
	}
	o, err := p.whole()
	if err != nil {
		return precondition{}, err
	}
	done := o.Jobs[0]
	return precondition{max(done.Read.Runtime, done.Write.Runtime) / 1e3, done.Steady.Attained != 0}, nil
}

// steadiness adds whether the rate was steady before the window, or a warning if that is unknown.
func (m *measurement) steadiness(j job, l layout, before precondition) {
	switch {
	case j.precondition:
		m.Fact("precondition.time", unit.Format(before.seconds, unit.Second))
		m.Fact("precondition.steady", yes(before.steady))
		if !before.steady {
			m.Warn(result.Unsteady, "its rate was not steady after %v of preconditioning: later runs may differ",
				storage.PreconditionTime)
		}
	case j.writes && !l.kept:
		m.Warn(result.FileNew, "the job wrote to a new file, and disks and caches may write faster at first than later; "+
			"the case with :precondition=yes writes until the rate is steady")
	}
}
