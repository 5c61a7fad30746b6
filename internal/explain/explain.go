// Package explain finds causes of the differences that a comparison decided.
//
// It stands next to compare and audit: verdicts come from compare and runs from result; explain adds candidates for the
// cause of each difference, with their evidence. A candidate is supported only by a difference between the two targets
// in the blocks of the verdict itself, in the harmful direction, never by an absolute level; a setting that differs is
// no cause until its effect is measured. "No cause found" is a valid answer.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	Differs       State = "differs, effect not shown" // a setting differs, and nothing shows that it does harm
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
	// Factor is what a trial can make equal, for causes that are supported or whose effect is not shown; nil if there is
	// nothing.
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
	Case     string `json:"case"`
	Metric   string `json:"metric"`
	Target   string `json:"target"`
	Baseline string `json:"baseline"`
	// Worse is the one of the two that the causes are about, whichever is the baseline; Better is the other.
	Worse    string  `json:"worse"`
	Better   string  `json:"better"`
	Causes   []Cause `json:"causes"`   // supported ones first, and among these settings before their effects
	Sentence string  `json:"sentence"` // in plain words
	// Hint is a sentence about what would show more, if no cause is supported; empty if nothing is known to.
	Hint string `json:"hint,omitempty"`
	// Confirmations are the results of an experiment in which one factor at a time was made equal.
	Confirmations []Confirmation `json:"confirmations,omitempty"`
}

// Supported returns the causes that the evidence supports.
func (x Explanation) Supported() []Cause { return x.in(Supported) }

// Differing returns the settings that differ without evidence of an effect.
func (x Explanation) Differing() []Cause { return x.in(Differs) }

func (x Explanation) in(s State) []Cause {
	return slices.DeleteFunc(slices.Clone(x.Causes), func(c Cause) bool { return c.State != s })
}

// Explain explains each paired comparison by its case's own metric with the verdict different, in the order of the
// comparison. With a single target it explains how much worse each case is than its bound, the same load between nodes.
func Explain(r result.Results, c compare.Comparison) []Explanation {
	runs := validRuns(r.Runs)
	if len(r.Experiment.Targets) == 1 {
		return explainAlone(r, runs)
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
func explainAlone(r result.Results, runs map[string]map[string]map[int]*result.Run) []Explanation {
	var list []Explanation
	target := r.Experiment.Targets[0].Name
	for _, of := range r.Experiment.Cases {
		m, known := metric.Find(of.Metric)
		if of.Bound == "" || !known || m.Better == metric.Neutral {
			continue
		}
		e := newPathEvidence(of, r, runs[of.Name][target], runs[of.Bound][target])
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
		Worse: e.worse, Better: e.better}
	for _, rule := range rules {
		if len(rule.metrics) > 0 && !slices.Contains(rule.metrics, e.row.Metric) || !rule.canSlow(e) {
			continue
		}
		x.Causes = append(x.Causes, rule.apply(e))
	}
	if e.unsampledPods() {
		x.Hint = profileHint
	}
	x.conclude()
	return x
}

// profileHint tells how to see the layers of the kernel on a cluster.
const profileHint = "Measured with profile=yes, the layers of the kernel would show where CPU time goes: " +
	"packet filter, routes, eBPF programs."

// unsampledPods reports whether the kernel was not sampled because the pods of a cluster have no privileges.
func (e evidence) unsampledPods() bool {
	unprivileged := func(target string) bool {
		return e.specs[target].Kind == "kube" && result.FactOf(e.facts[target], "profile") == ""
	}
	return !e.local && e.cost == "" && (unprivileged(e.worse) || unprivileged(e.better))
}

// apply judges the rule's cause.
func (r rule) apply(e evidence) Cause {
	f := r.judge(e)
	if f.state == Differs && r.harm != nil {
		if shown := r.harm(e); len(shown) > 0 {
			f.state, f.evidence = Supported, append(f.evidence, shown...)
		}
	}
	c := Cause{Rule: r.name, Cause: r.cause, State: f.state, Evidence: f.evidence, Share: f.share, kind: r.kind}
	if f.state == Supported {
		c.Remedy, c.Source = r.remedy, r.source
	}
	if (f.state == Supported || f.state == Differs) && r.factor != nil {
		c.Factor = r.factor(e)
	}
	return c
}

// conclude puts the causes in order and words the conclusion.
func (x *Explanation) conclude() {
	slices.SortStableFunc(x.Causes, func(a, b Cause) int {
		return cmp.Or(slices.Index(states, a.State)-slices.Index(states, b.State), int(a.kind-b.kind),
			-cmp.Compare(a.shareEstimate(), b.shareEstimate()))
	})
	x.Sentence = x.sentence()
}

// states lists the states in the order of an explanation.
var states = []State{Supported, Differs, NotObservable, Contradicted}

// shareEstimate returns the estimate of the share, 0 if it was not measured. It orders causes of the same state and
// kind.
func (c Cause) shareEstimate() float64 {
	if c.Share == nil {
		return 0
	}
	return float64(c.Share.Estimate)
}

// sentence summarises the explanation in a line.
func (x Explanation) sentence() string {
	if supported := x.Supported(); len(supported) > 0 {
		return x.Worse + " has " + enumerate(supported) + "."
	}
	if differing := x.Differing(); len(differing) > 0 {
		return strings.TrimSpace("No cause is shown: " + x.Worse + " has " + enumerate(differing) +
			", without a measured effect. " + x.Hint)
	}
	text := "No cause found: none of " + unit.Plural(len(x.Causes), "candidate") + " is supported"
	if unseen := len(x.in(NotObservable)); unseen > 0 {
		text += fmt.Sprintf(", %d of them cannot be observed here", unseen)
	}
	return strings.TrimSpace(text + ". " + x.Hint)
}

// enumerate names causes, each with its first evidence.
func enumerate(causes []Cause) string {
	var words []string
	for _, c := range causes {
		text := c.Cause
		if len(c.Evidence) > 0 {
			text += " (" + c.Evidence[0] + ")"
		}
		words = append(words, text)
	}
	return prose.Enumerate(words)
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
