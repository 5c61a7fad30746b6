package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
)

// checkGates returns an error about gates that cannot be parsed or that the planned cases and targets cannot decide. A
// gate (--gate) is a condition on the results, which decides the exit status.
func checkGates(e result.Experiment, metrics caseMetrics) error {
	for _, text := range e.Gates {
		g, err := compare.ParseGate(text)
		if err != nil {
			return fmt.Errorf("--gate: %w", err)
		}
		if err := checkGate(e, g, metrics); err != nil {
			return fmt.Errorf("--gate: %q %w", text, err)
		}
	}
	return nil
}

// checkGate returns an error if the experiment cannot decide a gate; its text continues a sentence that begins with the
// gate.
func checkGate(e result.Experiment, g compare.Gate, metrics caseMetrics) error {
	cases, err := gateCases(e, g.Case)
	if err != nil {
		return err
	}
	targets, err := gateTargets(e, g)
	if err != nil {
		return err
	}
	for _, rc := range cases {
		if err := checkMetric(g, rc, metrics(rc)); err != nil {
			return err
		}
	}
	return checkMeasured(e, cases, targets)
}

// gateCases returns the cases that a pattern matches, without node-to-node references, on which there are no verdicts.
func gateCases(e result.Experiment, pattern string) ([]result.Case, error) {
	var matched []result.Case
	var nodeReferences, others []string
	for _, rc := range e.Cases {
		switch {
		case rc.Role == result.Bound && result.Match(pattern, rc.Name):
			nodeReferences = append(nodeReferences, rc.Name)
		case rc.Role == result.Bound: // never suggested
		case result.Match(pattern, rc.Name):
			matched = append(matched, rc)
		default:
			others = append(others, rc.Name)
		}
	}
	switch {
	case len(matched) > 0:
		return matched, nil
	case len(nodeReferences) > 0:
		return nil, fmt.Errorf("matches only node-to-node references, on which there is no verdict: %s",
			strings.Join(nodeReferences, ", "))
	}
	for _, n := range e.NotMeasured {
		if n.EveryTarget() && result.Match(pattern, n.Case) {
			return nil, fmt.Errorf("matches only what cannot be measured: %s: %s", n.Case, n.Reason)
		}
	}
	return nil, fmt.Errorf("matches no case of the experiment%s", prose.DidYouMean(pattern, others))
}

// gateTargets returns the targets that a gate is about.
func gateTargets(e result.Experiment, g compare.Gate) ([]string, error) {
	var about []string
	matchesBaseline := false
	for _, t := range e.Targets {
		switch {
		case g.Target != "" && !t.Matches(g.Target): // another target
		case g.Change && t.Name == e.Baseline: // the baseline has no change against itself
			matchesBaseline = true
		default:
			about = append(about, t.Name)
		}
	}
	switch {
	case len(about) > 0:
		return about, nil
	case matchesBaseline:
		return nil, fmt.Errorf("is about a change, and applies only to the baseline %s, which has no change "+
			"against itself", e.Baseline)
	}
	return nil, fmt.Errorf("applies to none of the targets %s", prose.Choices(g.Target, e.TargetNames()))
}

// checkMetric returns an error if no run of a case has the gate's metric, or if the gate's limit has another
// unit. A gate without a metric is about the main metric of each case.
func checkMetric(g compare.Gate, rc result.Case, metrics []metric.Metric) error {
	name := g.Metric
	if name == "" {
		name = rc.Metric
	}
	var names []string
	for _, m := range metrics {
		if m.Name == name {
			return g.CheckUnit(rc.Name+" "+name, m.Unit)
		}
		names = append(names, m.Name)
	}
	if len(metrics) == 0 {
		return nil // the metrics are not known
	}
	hint := prose.DidYouMean(name, names)
	if hint == "" {
		hint = "; its metrics are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("applies to %s, whose runs have no metric %q%s", rc.Name, name, hint)
}

// checkMeasured returns an error if none of the cases of a gate can be measured on any of its targets.
func checkMeasured(e result.Experiment, cases []result.Case, targets []string) error {
	var example string // the reason why one of the pairs of case and target cannot be measured
	for _, rc := range cases {
		for _, name := range targets {
			i := slices.IndexFunc(e.NotMeasured, func(n result.NotMeasured) bool { return n.Covers(name, rc.Name) })
			if i < 0 {
				return nil
			}
			example = fmt.Sprintf("%s on %s: %s", rc.Name, name, e.NotMeasured[i].Reason)
		}
	}
	return errors.New("applies to nothing that can be measured: " + example)
}

// A caseMetrics is a function that returns the metrics that runs of a case may have; nil if they are not known.
type caseMetrics func(result.Case) []metric.Metric

// toolMetrics returns the metrics that a tool measures in a case.
func toolMetrics(t family.Tool) caseMetrics {
	return func(rc result.Case) []metric.Metric {
		c, err := registry.Families().Parse(rc.Name, rc.Definition)
		if err != nil {
			return nil // not known
		}
		return t.Metrics(c.Workload)
	}
}

// resultMetrics returns the metrics that runs have, and those that their tool measures. Imported runs have only the
// metrics that their file had.
func resultMetrics(e result.Experiment, runs []result.Run) caseMetrics {
	byTool := func(result.Case) []metric.Metric { return nil }
	if t, err := findTool(e.Tool); err == nil && e.Imported == "" {
		byTool = toolMetrics(t)
	}
	return func(rc result.Case) []metric.Metric {
		list := slices.Clone(byTool(rc))
		for _, r := range runs {
			if r.Case != rc.Name {
				continue
			}
			for _, v := range r.Values {
				if !slices.ContainsFunc(list, func(m metric.Metric) bool { return m.Name == v.Metric }) {
					list = append(list, metric.Metric{Name: v.Metric, Unit: v.Unit, Better: v.Better})
				}
			}
		}
		return list
	}
}
