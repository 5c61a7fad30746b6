package compare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// ErrMetric is wrapped by every error about a metric that was chosen for the verdicts.
var ErrMetric = errors.New("not a metric of these runs")

// ChooseMetric bases the verdicts on the named metric, in all cases whose runs have it. It returns the changed
// experiment and a warning about the change, nil if nothing changes. Primary cases stay primary: their intervals keep
// the level of the planned number of comparisons. Gates, and the blocks after which cases stopped, still follow the
// planned metric. If no valid run has the metric, the error wraps [ErrMetric].
func ChooseMetric(e result.Experiment, runs []result.Run, name string) (result.Experiment, *Warning, error) {
	having, known := casesWithMetric(name, runs)
	if len(having) == 0 {
		return e, nil, fmt.Errorf("%w: %q; they have %s", ErrMetric, name, prose.Choices(name, known))
	}
	e.Cases = slices.Clone(e.Cases)
	var before []string
	cases := 0
	for i, rc := range e.Cases {
		if !having[rc.Name] || rc.Metric == name {
			continue
		}
		e.Cases[i].Planned, e.Cases[i].Metric = cmp.Or(rc.Planned, rc.Metric), name
		e.Cases[i].Words.Quantity = name
		if rc.Role == result.Bound {
			continue
		}
		cases++
		if !slices.Contains(before, rc.Metric) {
			before = append(before, rc.Metric)
		}
	}
	if cases == 0 {
		return e, nil, nil
	}
	return e, &Warning{Code: MetricChosen, Count: cases, Metrics: append([]string{name}, before...)}, nil
}

// casesWithMetric returns the cases with valid runs of a metric, and the sorted names of all metrics. Metrics without a
// better direction give no verdict and are skipped.
func casesWithMetric(name string, runs []result.Run) (cases map[string]bool, known []string) {
	cases = map[string]bool{}
	for _, r := range runs {
		if !r.Valid() {
			continue
		}
		for _, v := range r.Values {
			if v.Better != metric.Higher && v.Better != metric.Lower {
				continue
			}
			if v.Metric == name {
				cases[r.Case] = true
			}
			if !slices.Contains(known, v.Metric) {
				known = append(known, v.Metric)
			}
		}
	}
	slices.Sort(known)
	return cases, known
}

// asPlanned returns the experiment with the metrics that its cases were planned for.
func asPlanned(e result.Experiment) result.Experiment {
	e.Cases = plannedCases(e.Cases)
	return e
}

func plannedCases(cases []result.Case) []result.Case {
	cases = slices.Clone(cases)
	for i, rc := range cases {
		cases[i].Metric, cases[i].Planned = cmp.Or(rc.Planned, rc.Metric), ""
	}
	return cases
}
