package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// Provisional makes of the design what compares what there is after done blocks by the metrics that verdicts are about,
// for display while an experiment goes on. The cases in going are undecided, with the interval of an experiment that
// ended here, by which nothing is decided; the others have the interval and the verdict of the look at which they
// stopped. An experiment that cannot be compared has no rows.
//
// What is returned takes the experiment again, as that of [Stopping] does; the design's looks are worked out once.
func Provisional(e result.Experiment) func(e result.Experiment, done int, runs []result.Run, going []string) []Row {
	p, err := newPlan(e)
	if err != nil {
		return func(result.Experiment, int, []result.Run, []string) []Row { return nil }
	}
	return p.provisional
}

// provisional is what Provisional returns.
func (p plan) provisional(e result.Experiment, done int, runs []result.Run, going []string) []Row {
	role := result.Primary
	if planned(e) == 0 {
		role = result.Exploratory
	}
	s := p.session(e, done, runs, history{})
	var rows []Row
	for _, rc := range e.Cases {
		for _, v := range contests(e) {
			if rc.Role != role || v.baseline != e.Baseline {
				continue
			}
			if r, ok := s.soFar(rc, v, slices.Contains(going, rc.Name)); ok {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// soFar is a row of the metric that a case is measured for; false before there is a pair.
func (s session) soFar(rc result.Case, of versus, going bool) (Row, bool) {
	a, b := s.valid(rc.Name, of.baseline), s.valid(rc.Name, of.target)
	v, ok := find(rc.Metric, a, b)
	if !ok {
		return Row{}, false
	}
	if !going {
		if r, judged, _ := s.row(rc, of); judged {
			return r, true
		}
	}
	open := *s.trial
	open.look, open.stopped, open.at = stats.OneLook{}, nil, 0
	r := newRow(s.e.Design, rc, v, of)
	pairs, ok := open.pair(&r, v, a, b)
	if !ok || len(pairs.baseline) == 0 {
		return r, false
	}
	r.describe(pairs)
	alpha := r.alpha(s.e.Design, s.primaries)
	if estimate, ratio := pairs.ratio(alpha); ratio {
		r.estimate(estimate, alpha)
		r.Verdict, r.Direction = Undecided, None
	}
	return r, true
}
