// Package explain finds causes of the differences that a comparison decided.
//
// It stands next to compare and audit: verdicts come from compare and runs from result; explain adds candidates for the
// cause of each difference, with their evidence. A candidate is supported, contradicted or not observable. It is
// supported only by a difference between the two targets in the blocks of the verdict itself, in the harmful direction,
// never by an absolute level. "No cause found" is a valid answer.
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

// A State is the conclusion of the evidence about a candidate.
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
	// Share is the part of the difference that the evidence accounts for, as a fraction with its interval; omitted if
	// it was not measured.
	Share  *Share `json:"share,omitempty"`
	Remedy string `json:"remedy,omitempty"` // for supported causes
	Source string `json:"source,omitempty"`
	// Factor is what a confirmation experiment can make equal, for supported causes; nil if there is nothing.
	Factor *Factor `json:"factor,omitempty"`
	kind   kind
}

// A Share is a fraction of a difference; it is above 1 if something else compensates for a part.
type Share struct {
	Estimate compare.Number   `json:"estimate"`
	CI       compare.Interval `json:"ci"`
}

// An Explanation holds the causes of one comparison with the verdict different.
type Explanation struct {
	Case     string  `json:"case"`
	Metric   string  `json:"metric"`
	Target   string  `json:"target"`
	Baseline string  `json:"baseline"`
	Causes   []Cause `json:"causes"`   // supported ones first, and among these settings before their effects
	Sentence string  `json:"sentence"` // in plain words
	// Confirmations are the results of an experiment in which one factor at a time was made equal.
	Confirmations []Confirmation `json:"confirmations,omitempty"`

	worse, better string // targets
}

// Supported returns the causes that the evidence supports.
func (x Explanation) Supported() []Cause {
	return slices.DeleteFunc(slices.Clone(x.Causes), func(c Cause) bool { return c.State != Supported })
}

// Explain explains each paired comparison by its case's own metric with the verdict different, in the order of the
// comparison. With a single target it explains how much worse each case is than its bound, the same load between nodes.
func Explain(r result.Results, c compare.Comparison) []Explanation {
	runs := validRuns(r.Runs)
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

// leastLoss is the minimum difference of a case to its bound, as a fraction, that is explained.
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
		if d, ok := e.metricDifference(of.Metric); ok && d.state(harm, leastLoss*d.better) == Supported {
			list = append(list, explain(e))
		}
	}
	return list
}

func explain(e evidence) Explanation {
	x := Explanation{Case: e.row.Case, Metric: e.row.Metric, Target: e.row.Target, Baseline: e.row.Baseline,
		worse: e.worse, better: e.better}
	for _, rule := range rules {
		if len(rule.metrics) > 0 && !slices.Contains(rule.metrics, e.row.Metric) || !rule.canSlow(e) {
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
			-cmp.Compare(a.shareEstimate(), b.shareEstimate()))
	})
	x.Sentence = sentence(e, x)
	return x
}

// states lists the states in the order of an explanation.
var states = []State{Supported, NotObservable, Contradicted}

// shareEstimate returns the estimate of the share, 0 if it was not measured. It orders causes of the same state and
// kind.
func (c Cause) shareEstimate() float64 {
	if c.Share == nil {
		return 0
	}
	return float64(c.Share.Estimate)
}

// sentence summarises an explanation in a line.
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

// validRuns returns the valid runs of last attempts, by case, target and block.
func validRuns(runs []result.Run) map[string]map[string]map[int]*result.Run {
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
