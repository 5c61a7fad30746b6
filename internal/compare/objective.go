package compare

import (
	"fmt"
	"maps"
	"slices"

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

// An Objective is an official service level objective next to what was measured of it here. It is a floor, which
// every healthy cluster is far above, and no verdict.
type Objective struct {
	Case     string     `json:"case"`
	Target   string     `json:"target"`
	Limit    float64    `json:"limit"`    // of the 99th percentile, seconds
	Blocks   int        `json:"blocks"`   // with a run that counts, or one that failed by errors or distress
	Violated int        `json:"violated"` // of these, with more than one request in a hundred above the limit
	Samples  int        `json:"samples"`  // requests of these blocks
	Above    int        `json:"above"`    // of them, those above the limit or without success
	Outcome  Attainment `json:"outcome"`
	// Words are the objective's own, with its scope; Source is where they stand.
	Words    string `json:"words"`
	Source   string `json:"source"`
	Sentence string `json:"sentence"`

	shares []float64 // of the requests above the limit, by block
}

// An Attainment is what became of an objective.
type Attainment string

// The attainments: with an error probability of 5 % at most one request in a hundred is above the limit, or more are;
// or there are too few blocks to tell.
const (
	Met    Attainment = "met"
	NotMet Attainment = "not met"
	TooFew Attainment = "too few blocks"
)

// The share of requests that may be above the limit of a 99th percentile, and how sure is sure.
const (
	mayBeAbove = 0.01
	unsure     = 0.05
)

// BlocksToMeet is how many blocks without a request above the limit show that an objective is met.
func BlocksToMeet() int { return stats.MinBlocks(mayBeAbove, unsure) }

// attainment judges by the shares of the blocks. Requests of one block are no replicates: a stall takes many of them.
func attainment(shares []float64) Attainment {
	switch below, above := stats.ShareP(shares, mayBeAbove); {
	case below <= unsure:
		return Met
	case above <= unsure:
		return NotMet
	}
	return TooFew
}

// objectives returns those that the runs have facts about, by case and target in the order of the plan.
func (t *trial) objectives() []Objective {
	var list []Objective
	for _, c := range t.e.Cases {
		for _, x := range t.e.Targets {
			o := Objective{Case: c.Name, Target: x.Name}
			for _, r := range t.judged(c.Name, x.Name) {
				o.add(r)
			}
			if o.Blocks > 0 {
				list = append(list, o.judged())
			}
		}
	}
	return list
}

// judged returns the run of each block that an objective is judged by, in order: the one that counts, or the first
// that failed by errors or distress, which a repetition does not undo.
func (t *trial) judged(caseName, target string) []*result.Run {
	of := t.valid(caseName, target)
	for _, r := range slices.Backward(t.all[caseName][target]) {
		if violates(r) {
			of[r.Block] = r
		}
	}
	var list []*result.Run
	for _, block := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[block])
	}
	return list
}

// violates reports whether a run failed by what the server did, and not by what happened to the measurement.
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
		// What was never sent to a server in distress failed too, and results of older versions do not count errors.
		failed, _ := r.Value(metric.Failed)
		if share = max(share, failed.Number); stopped(r) {
			share = 1
		}
	}
	o.Limit = limit.Number
	o.Blocks++
	if share > mayBeAbove {
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

func (o Objective) judged() Objective {
	o.Outcome = attainment(o.shares)
	o.Sentence = fmt.Sprintf("%s on %s: %s: %d of %d requests took longer than %s or failed; %d of %s had more of them "+
		"than the one in a hundred that a 99th percentile allows.",
		o.Case, o.Target, o.Outcome, o.Above, o.Samples, unit.Format(o.Limit, unit.Second), o.Violated,
		unit.Plural(o.Blocks, "block"))
	return o
}
