// Package explain finds causes of the differences that a comparison decided.
//
// It stands next to compare and audit: verdicts come from compare, runs from result, and what it makes are candidates
// for the cause of each difference, each with its evidence. A candidate is supported, contradicted or not observable
// here. It is supported only by what differs between the two targets in the blocks of the verdict itself, in the
// direction that harms, never by an absolute level. "No cause found" is an answer.
package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A State is what the evidence says about a candidate.
type State string

// The states.
const (
	Supported     State = "supported"
	Contradicted  State = "contradicted"
	NotObservable State = "not observable"
)

// A Cause is a candidate for the cause of a difference.
type Cause struct {
	Rule     string   `json:"rule"`
	Cause    string   `json:"cause"` // in a few words
	State    State    `json:"state"`
	Evidence []string `json:"evidence"` // clauses without full stop
	// Share is the part of the difference that the evidence accounts for, as a fraction with its interval; absent where
	// that was not measured.
	Share  *Share `json:"share,omitempty"`
	Remedy string `json:"remedy,omitempty"` // of a supported one
	Source string `json:"source,omitempty"`
	// Factor is what a trial can make equal, of a supported one; nil where nothing can.
	Factor *Factor `json:"factor,omitempty"`
	kind   kind
}

// A Share is a fraction of a difference; above 1 where something else makes up for a part of it.
type Share struct {
	Estimate compare.Number   `json:"estimate"`
	CI       compare.Interval `json:"ci"`
}

// An Explanation is what is known of the causes of one comparison that came out different.
type Explanation struct {
	Case     string  `json:"case"`
	Metric   string  `json:"metric"`
	Target   string  `json:"target"`
	Baseline string  `json:"baseline"`
	Causes   []Cause `json:"causes"`   // the supported ones first, of these what is set up before what comes of it
	Sentence string  `json:"sentence"` // in plain words
	// Confirmations are what a trial found, in which one factor at a time was made equal.
	Confirmations []Confirmation `json:"confirmations,omitempty"`

	worse, better string // targets
}

// Supported are the causes that the evidence supports.
func (x Explanation) Supported() []Cause {
	return slices.DeleteFunc(slices.Clone(x.Causes), func(c Cause) bool { return c.State != Supported })
}

// Explain explains each comparison by blocks that is about the metric of its case and came out different, in the order
// of the comparison. Of a target that is alone it explains what each case loses against its bound, the same load
// between nodes.
func Explain(r result.Results, c compare.Comparison) []Explanation {
	runs := countingRuns(r.Runs)
	if len(r.Experiment.Targets) == 1 {
		return explainAlone(r.Experiment, runs)
	}
	var list []Explanation
	if !c.Paired {
		return nil
	}
	for _, row := range c.Comparisons {
		if row.Verdict != compare.Different || row.Direction == compare.None {
			continue
		}
		if of, known := r.Experiment.Case(row.Case); known && row.Metric == of.Metric {
			list = append(list, explain(newEvidence(row, of, runs[row.Case], r)))
		}
	}
	return list
}

// leastLoss is what a case has to lose against its bound to be explained.
const leastLoss = 0.02

// explainAlone compares the cases of the only target with their bounds.
func explainAlone(x result.Experiment, runs map[string]map[string]map[int]*result.Run) []Explanation {
	var list []Explanation
	target := x.Targets[0].Name
	for _, of := range x.Cases {
		m, known := metric.Find(of.Metric)
		if of.Bound == "" || !known || m.Better == metric.Neutral {
			continue
		}
		e := newPathEvidence(of, target, runs[of.Name][target], runs[of.Bound][target])
		harm := 1.0
		if m.Better == metric.Higher {
			harm = -1
		}
		if d, ok := e.metric(of.Metric); ok && d.judged(harm, leastLoss*d.better) == Supported {
			list = append(list, explain(e))
		}
	}
	return list
}

func explain(e evidence) Explanation {
	x := Explanation{Case: e.row.Case, Metric: e.row.Metric, Target: e.row.Target, Baseline: e.row.Baseline,
		worse: e.worse, better: e.better}
	for _, rule := range rules {
		if len(rule.metrics) > 0 && !slices.Contains(rule.metrics, e.row.Metric) {
			continue
		}
		f := rule.judge(e)
		c := Cause{Rule: rule.name, Cause: rule.cause, State: f.state, Evidence: f.evidence, Share: f.share, kind: rule.kind}
		if f.state == Supported {
			c.Remedy, c.Source = rule.remedy, rule.source
			if rule.factor != nil {
				c.Factor = rule.factor(e)
			}
		}
		x.Causes = append(x.Causes, c)
	}
	slices.SortStableFunc(x.Causes, func(a, b Cause) int {
		return cmp.Or(slices.Index(states, a.State)-slices.Index(states, b.State), int(a.kind-b.kind),
			-cmp.Compare(a.weight(), b.weight()))
	})
	x.Sentence = sentence(e, x)
	return x
}

// states are in the order of an explanation.
var states = []State{Supported, NotObservable, Contradicted}

// weight orders causes of the same state: measured shares come first.
func (c Cause) weight() float64 {
	if c.Share == nil {
		return 0
	}
	return float64(c.Share.Estimate)
}

// sentence is an explanation in a line.
func sentence(e evidence, x Explanation) string {
	supported := x.Supported()
	if len(supported) == 0 {
		unseen := 0
		for _, c := range x.Causes {
			if c.State == NotObservable {
				unseen++
			}
		}
		text := "No cause found: none of " + unit.Plural(len(x.Causes), "candidate") + " is supported"
		if unseen > 0 {
			text += fmt.Sprintf(", %d of them cannot be observed here", unseen)
		}
		return text + "."
	}
	var words []string
	for _, c := range supported {
		text := c.Cause
		if len(c.Evidence) > 0 {
			text += " (" + c.Evidence[0] + ")"
		}
		words = append(words, text)
	}
	return e.worse + " has " + prose.Enumerate(words) + "."
}

// countingRuns are the runs that comparisons rest on, by case, target and block.
func countingRuns(runs []result.Run) map[string]map[string]map[int]*result.Run {
	last := result.LastAttempts(runs)
	all := map[string]map[string]map[int]*result.Run{}
	for i := range runs {
		r := &runs[i]
		if !r.Valid() || !last(r) {
			continue
		}
		if all[r.Case] == nil {
			all[r.Case] = map[string]map[int]*result.Run{}
		}
		if all[r.Case][r.Target] == nil {
			all[r.Case][r.Target] = map[int]*result.Run{}
		}
		all[r.Case][r.Target][r.Block] = r
	}
	return all
}
