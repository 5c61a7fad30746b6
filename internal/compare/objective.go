package compare

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The facts of runs about an objective that others have set for what they measure: its words and where they are from.
const (
	ObjectiveFact   = "slo"
	ObjectiveSource = "slo.source"
)

// An Objective is an official service level objective beside what was measured of it here. It is a floor, which
// every healthy cluster is far above, and no verdict.
type Objective struct {
	Case    string     `json:"case"`
	Target  string     `json:"target"`
	Limit   float64    `json:"limit"`   // of the 99th percentile, seconds
	Samples int        `json:"samples"` // latencies of all runs that count
	Above   int        `json:"above"`   // of them, those above the limit
	Outcome Attainment `json:"outcome"`
	// Words are the objective's own, with its scope; Source is where they stand.
	Words    string `json:"words"`
	Source   string `json:"source"`
	Sentence string `json:"sentence"`
}

// An Attainment is what became of an objective.
type Attainment string

// The attainments: with an error probability of 5 % at most one latency in a hundred is above the limit, or more are;
// or there are too few to say so.
const (
	Met    Attainment = "met"
	NotMet Attainment = "not met"
	TooFew Attainment = "too few samples"
)

// The share of latencies that may be above the limit of a 99th percentile, and how sure is sure.
const (
	mayBeAbove = 0.01
	unsure     = 0.05
)

// attainment judges by the exact binomial distribution: 299 latencies without one above the limit are enough.
func attainment(samples, above int) Attainment {
	switch {
	case stats.BinomialAtMost(above, samples, mayBeAbove) <= unsure:
		return Met
	case above > 0 && 1-stats.BinomialAtMost(above-1, samples, mayBeAbove) <= unsure:
		return NotMet
	}
	return TooFew
}

// objectives are those that the runs of an experiment tell of, by case and target in the order of the plan.
func objectives(e result.Experiment, runs []result.Run) []Objective {
	var list []Objective
	for _, c := range e.Cases {
		for _, t := range e.Targets {
			o := Objective{Case: c.Name, Target: t.Name}
			for _, r := range runs {
				if r.Case == c.Name && r.Target == t.Name && r.Valid() {
					o.add(r)
				}
			}
			if o.Samples > 0 {
				list = append(list, o.judged())
			}
		}
	}
	return list
}

func (o *Objective) add(r result.Run) {
	limit, has := r.Value(metric.SLOLimit)
	samples, counted := r.Value(metric.SLOSamples)
	above, split := r.Value(metric.SLOAbove)
	if !has || !counted || !split {
		return
	}
	o.Limit = limit.Number
	o.Samples += int(samples.Number)
	o.Above += int(above.Number)
	o.Words, o.Source = result.FactOf(r.Facts, ObjectiveFact), result.FactOf(r.Facts, ObjectiveSource)
}

func (o Objective) judged() Objective {
	o.Outcome = attainment(o.Samples, o.Above)
	o.Sentence = fmt.Sprintf("%s on %s: %s: %d of %d took longer than %s; of the 99th percentile that may be one in a "+
		"hundred.",
		o.Case, o.Target, o.Outcome, o.Above, o.Samples, unit.Format(o.Limit, unit.Second))
	return o
}
