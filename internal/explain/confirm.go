package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Factor is one property in which the better target can be made equal to the worse one without other changes: by an
// option of the target, or by a parameter of the workload.
type Factor struct {
	Name     string      `json:"name"`               // mss=1410
	Target   result.Spec `json:"target,omitzero"`    // the better target with the option; zero: unchanged
	Workload string      `json:"workload,omitempty"` // additional parameter of the workload; "": none
}

// option returns a factor for the first of these options in which the targets differ.
func option(names ...string) func(evidence) *Factor {
	return func(e evidence) *Factor {
		worse, better := e.specs[e.worse], e.specs[e.better]
		if worse.Kind == "" || worse.Kind != better.Kind {
			return nil
		}
		for _, name := range names {
			if value, given := worse.Options[name]; given && better.Options[name] != value {
				text := name + "=" + value
				return &Factor{Name: text, Target: better.Set(name, value).Set("label", e.better+" with "+text)}
			}
		}
		return nil
	}
}

// optionOf returns a factor as option does. If the targets have no such option, it returns one by a parameter of the
// workload, which only TCP streams have.
func optionOf(parameter func(evidence) string, names ...string) func(evidence) *Factor {
	return func(e evidence) *Factor {
		if f := option(names...)(e); f != nil {
			return f
		}
		if text := parameter(e); text != "" && strings.HasPrefix(e.workload, "tcp-stream") {
			return &Factor{Name: text, Workload: text}
		}
		return nil
	}
}

// timestampBytes is the size of TCP's timestamps in each segment (RFC 7323).
const timestampBytes = 12

func segmentParameter(e evidence) string {
	d, ok := e.metricDifference(metric.MSS)
	if !ok {
		return ""
	}
	return fmt.Sprintf("mss=%d", int(d.worse)+timestampBytes)
}

func congestionParameter(e evidence) string {
	worse, _, ok := e.fact("tcp.congestion")
	if !ok {
		return ""
	}
	return "congestion=" + worse
}

// A ConfirmationPlan is the experiment that tests the causes of an explanation: its case on its two targets, and the
// better target again with each factor alone.
type ConfirmationPlan struct {
	Targets []string // specifications, the better target first, then the worse one
	Cases   []string // names
	worse   string   // labels
	better  string
	arms    []arm
}

// An arm is a cause with the target and case of the runs in which its factor alone is made equal.
type arm struct {
	cause        Cause
	target, name string // label, case
}

// NewConfirmationPlan plans the confirmation of an explanation; ok is false if none of its causes can be made equal
// here.
func NewConfirmationPlan(x Explanation, e result.Experiment) (t ConfirmationPlan, ok bool) {
	t = ConfirmationPlan{worse: x.Worse, better: x.Better, Cases: []string{x.Case}}
	for _, label := range []string{x.Better, x.Worse} {
		i := slices.IndexFunc(e.Targets, func(o result.Target) bool { return o.Name == label })
		if i < 0 {
			return t, false
		}
		t.Targets = append(t.Targets, e.Targets[i].Spec.Text)
	}
	for _, c := range slices.Concat(x.Supported(), x.Differing()) {
		switch {
		case c.Factor == nil:
		case c.Factor.Target.Kind != "":
			spec := c.Factor.Target
			if !slices.Contains(t.Targets, spec.Text) {
				t.Targets = append(t.Targets, spec.Text)
			}
			t.arms = append(t.arms, arm{c, spec.Label(), x.Case})
		default:
			name := withParameter(x.Case, c.Factor.Workload)
			t.Cases = append(t.Cases, name)
			t.arms = append(t.arms, arm{c, x.Better, name})
		}
	}
	return t, len(t.arms) > 0
}

// withParameter adds a parameter to the workload in a case's name.
func withParameter(name, parameter string) string {
	if strings.Contains(name, ":") {
		return name + "," + parameter
	}
	return name + ":" + parameter
}

// Matches reports whether an experiment has the two targets of the plan, and an arm. It may lack other arms, as trials
// of earlier rules do.
func (t ConfirmationPlan) Matches(e result.Experiment) bool {
	var specs []string
	for _, o := range e.Targets {
		specs = append(specs, o.Spec.Text)
	}
	has := func(a arm) bool {
		_, known := e.Case(a.name)
		return known && slices.Contains(e.TargetNames(), a.target)
	}
	return len(specs) > 1 && slices.Equal(specs[:2], t.Targets[:2]) && slices.ContainsFunc(t.arms, has)
}

// A Confirmation is the effect of making one factor equal.
type Confirmation struct {
	Rule   string           `json:"rule"`
	Factor string           `json:"factor"`
	Whole  compare.Number   `json:"whole"` // change from the better to the worse target, as a fraction
	Part   compare.Number   `json:"part"`  // change from the better target to itself with the factor
	CI     compare.Interval `json:"ci"`    // of Part
	Share  *Share           `json:"share,omitempty"`
	// Outcome is what the trial decides about the cause; empty if its interval allows harm as well as none.
	Outcome State `json:"outcome,omitempty"`
	// Sentence is in plain words.
	Sentence string `json:"sentence"`
}

// Confirm evaluates the results of the planned experiment for the named metric.
func (t ConfirmationPlan) Confirm(r result.Results, name string) []Confirmation {
	runs := validRuns(r.Runs)
	base := runs[t.Cases[0]]
	var list []Confirmation
	for _, a := range t.arms {
		var whole, part, share []float64
		for block, run := range runs[a.name][a.target] {
			b, w := base[t.better][block], base[t.worse][block]
			if b == nil || w == nil {
				continue
			}
			low, has1 := w.Value(name)
			high, has2 := b.Value(name)
			with, has3 := run.Value(name)
			if !has1 || !has2 || !has3 || !(low.Number > 0 && high.Number > 0 && with.Number > 0) {
				continue
			}
			all, some := math.Log(low.Number/high.Number), math.Log(with.Number/high.Number)
			whole, part = append(whole, all), append(part, some)
			if all != 0 {
				share = append(share, some/all)
			}
		}
		if c, ok := newConfirmation(a, name, whole, part, share); ok {
			list = append(list, c)
		}
	}
	return list
}

func newConfirmation(a arm, name string, whole, part, share []float64) (c Confirmation, ok bool) {
	slices.Sort(whole)
	slices.Sort(part)
	slices.Sort(share)
	all, some := stats.Paired(whole, alpha, stats.OneLook{}), stats.Paired(part, alpha, stats.OneLook{})
	if !all.Bounded() || !some.Bounded() {
		return c, false
	}
	c = Confirmation{Rule: a.cause.Rule, Factor: a.cause.Factor.Name,
		Whole: compare.Number(math.Expm1(all.Shift)), Part: compare.Number(math.Expm1(some.Shift)),
		CI: compare.Interval{Lo: math.Expm1(some.Lo), Hi: math.Expm1(some.Hi)}, Share: newShare(share)}
	c.Outcome = outcome(all.Shift, some.Lo, some.Hi)
	change := fmt.Sprintf("%s [%s, %s]", percent(float64(c.Part)), percent(c.CI.Lo), percent(c.CI.Hi))
	if c.Outcome == Contradicted {
		c.Sentence = fmt.Sprintf("%s (%s) alone changes %s by %s, so it does not explain %s.", capitalize(a.cause.Cause),
			c.Factor, name, change, percent(float64(c.Whole)))
		return c, true
	}
	c.Sentence = fmt.Sprintf("Of %s in %s, %s are %s (%s).", percent(float64(c.Whole)), name, change, a.cause.Cause,
		c.Factor)
	return c, true
}

// leastPart is the part of a difference that a factor must explain, as a fraction.
const leastPart = 0.05

// outcome returns what a trial decides about a factor whose effect, in logarithms as the whole difference is, lies
// between lo and hi.
func outcome(whole, lo, hi float64) State {
	if whole < 0 {
		whole, lo, hi = -whole, -hi, -lo
	}
	switch {
	case lo > 0 && hi >= leastPart*whole:
		return Supported
	case hi < leastPart*whole:
		return Contradicted
	}
	return ""
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Decide adds the results of a trial to the explanation. A trial decides about its causes, whatever spoke for them
// before.
func (x *Explanation) Decide(list []Confirmation) {
	x.Confirmations = list
	for _, confirmed := range list {
		i := slices.IndexFunc(x.Causes, func(c Cause) bool { return c.Rule == confirmed.Rule })
		r := slices.IndexFunc(rules, func(r rule) bool { return r.name == confirmed.Rule })
		if i < 0 || r < 0 || confirmed.Outcome == "" {
			continue
		}
		c := &x.Causes[i]
		c.State, c.Remedy, c.Source = confirmed.Outcome, "", ""
		c.Evidence = append(slices.Clone(c.Evidence), "by a trial: "+strings.TrimSuffix(confirmed.Sentence, "."))
		if c.State == Supported {
			c.Remedy, c.Source = rules[r].remedy, rules[r].source
		}
	}
	x.conclude()
}

func percent(v float64) string { return signed(v, unit.Ratio) }
