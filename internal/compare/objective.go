package compare

import (
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// Facts of runs about a published service level objective: its text and its source.
const (
	ObjectiveFact   = "slo"
	ObjectiveSource = "slo.source"
)

// An Objective is an official service level objective with the measurements of it. Every healthy cluster is far better
// than such an objective, so it is not a verdict.
type Objective struct {
	Case     string     `json:"case"`
	Target   string     `json:"target"`
	Limit    float64    `json:"limit"`    // of the 99th percentile, seconds
	Blocks   int        `json:"blocks"`   // with a valid run, or one that failed by errors or distress
	Violated int        `json:"violated"` // blocks with more than one request in a hundred above the limit
	Samples  int        `json:"samples"`  // requests in these blocks
	Above    int        `json:"above"`    // requests above the limit or without success
	Outcome  Attainment `json:"outcome"`
	// Words is the text of the objective, with its scope; Source is where it is published.
	Words  string `json:"words"`
	Source string `json:"source"`

	shares []float64 // of the requests above the limit, by block
}

// An Attainment is the outcome of an objective.
type Attainment string

// The attainments: at an error probability of 5 %, at most one request in a hundred is above the limit (Met) or more
// are (NotMet); or there are too few blocks to decide (TooFew).
const (
	Met    Attainment = "met"
	NotMet Attainment = "not met"
	TooFew Attainment = "too few blocks"
)

// The share of requests that may be above the limit of a 99th percentile, and the error probability of an attainment.
const (
	allowedShare   = 0.01
	objectiveAlpha = 0.05
)

// BlocksToMeet returns how many blocks without a request above the limit prove that an objective is met.
func BlocksToMeet() int { return stats.MinBlocks(allowedShare, objectiveAlpha) }

// attainment judges the shares of the blocks. Requests of one block are no replicates, because a stall affects many of
// them.
func attainment(shares []float64) Attainment {
	switch below, above := stats.ShareP(shares, allowedShare); {
	case below <= objectiveAlpha:
		return Met
	case above <= objectiveAlpha:
		return NotMet
	}
	return TooFew
}

// objectives returns the objectives that facts of the runs state, by case and target in the order of the plan.
func (t *runTable) objectives() []Objective {
	var list []Objective
	for _, c := range t.e.Cases {
		for _, x := range t.e.Targets {
			o := Objective{Case: c.Name, Target: x.Name}
			for _, r := range t.objectiveRuns(c.Name, x.Name) {
				o.add(r)
			}
			if o.Blocks > 0 {
				o.Outcome = attainment(o.shares)
				list = append(list, o)
			}
		}
	}
	return list
}

// objectiveRuns returns the run of each block that an objective is judged by, in order of blocks: the first that failed
// by errors or distress, which a repetition does not undo, or else the valid one.
func (t *runTable) objectiveRuns(caseName, target string) []*result.Run {
	runs := t.valid(caseName, target)
	for _, r := range slices.Backward(t.all[caseName][target]) {
		if violates(r) {
			runs[r.Block] = r
		}
	}
	var list []*result.Run
	for _, block := range slices.Sorted(maps.Keys(runs)) {
		list = append(list, runs[block])
	}
	return list
}

// violates reports whether a run failed because of the server, and not because of the measurement.
func violates(r *result.Run) bool {
	return slices.ContainsFunc(r.Invalid, func(w result.Warning) bool {
		return w.Code == result.TooManyFailed || w.Code == result.NothingDone || w.Code == result.StoppedEarly
	})
}

func (o *Objective) add(r *result.Run) {
	limit, has := r.Value(metric.SLOLimit)
	samples, counted := r.Value(metric.SLOSamples)
	above, split := r.Value(metric.SLOAbove)
	if !has || !counted || !split || samples.Number <= 0 {
		return
	}
	share := above.Number / samples.Number
	if violates(r) {
		// A run that was stopped counts in full, because requests that were not sent would have failed. Results of
		// older versions do not count failed requests as above the limit.
		failed, _ := r.Value(metric.Failed)
		if share = max(share, failed.Number); stopped(r) {
			share = 1
		}
	}
	o.Limit = limit.Number
	o.Blocks++
	if share > allowedShare {
		o.Violated++
	}
	o.Samples += int(samples.Number)
	o.Above += int(above.Number)
	o.shares = append(o.shares, min(share, 1))
	o.Words, o.Source = r.Fact(ObjectiveFact), r.Fact(ObjectiveSource)
}

func stopped(r *result.Run) bool {
	return slices.ContainsFunc(r.Invalid, func(w result.Warning) bool { return w.Code == result.StoppedEarly })
}
