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

// A caseMetrics is a function that returns the metrics that runs of a case may have; nil if they are not known.
type caseMetrics func(result.Case) []metric.Metric

// metricsOf returns the metrics that a tool measures.
func metricsOf(t family.Tool) caseMetrics {
	return func(rc result.Case) []metric.Metric {
		c, err := registry.Families().Parse(rc.Name, rc.Definition)
		if err != nil {
			return nil
		}
		return t.Metrics(c.Workload)
	}
}

// metricsIn returns the metrics that runs have, and those that their tool measures unless the runs were imported.
func metricsIn(e result.Experiment, runs []result.Run) caseMetrics {
	byTool := func(result.Case) []metric.Metric { return nil }
	if t, err := findTool(e.Tool); err == nil && e.Imported == "" {
		byTool = metricsOf(t)
	}
	return func(rc result.Case) []metric.Metric {
		list := byTool(rc)
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

// checkGates returns an error about gates that cannot be parsed or that the planned cases and targets cannot decide.
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

// checkGate returns an error about a gate; its text continues a sentence that begins with the gate.
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

// gateCases returns the compared cases that a pattern matches.
func gateCases(e result.Experiment, pattern string) ([]result.Case, error) {
	var matched []result.Case
	var references, others []string
	for _, rc := range e.Cases {
		switch {
		case rc.Role == result.Bound && result.Match(pattern, rc.Name):
			references = append(references, rc.Name)
		case rc.Role == result.Bound:
		case result.Match(pattern, rc.Name):
			matched = append(matched, rc)
		default:
			others = append(others, rc.Name)
		}
	}
	switch {
	case len(matched) > 0:
		return matched, nil
	case len(references) > 0:
		return nil, fmt.Errorf("matches only references, on which there is no verdict: %s",
			strings.Join(references, ", "))
	}
	for _, n := range e.NotMeasured {
		if n.Target == "*" && result.Match(pattern, n.Case) {
			return nil, fmt.Errorf("matches only what cannot be measured: %s: %s", n.Case, n.Reason)
		}
	}
	return nil, fmt.Errorf("matches no case that is measured on every target%s", prose.DidYouMean(pattern, others))
}

// gateTargets returns the targets that a gate is about.
func gateTargets(e result.Experiment, g compare.Gate) ([]string, error) {
	var about []string
	names := e.TargetNames()
	for _, t := range e.Targets {
		if (g.Target == "" || t.Matches(g.Target)) && !(g.Change && t.Name == e.Baseline) {
			about = append(about, t.Name)
		}
	}
	if len(about) == 0 {
		return nil, fmt.Errorf("applies to none of the targets %s", prose.Choices(g.Target, names))
	}
	return about, nil
}

// checkMetric returns an error if no run of a case has the gate's metric, or if its limit has another unit.
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
		hint = "; there are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("applies to %s, whose runs have no metric %q%s", rc.Name, name, hint)
}

// checkMeasured returns an error if none of the cases of a gate can be measured on any of its targets.
func checkMeasured(e result.Experiment, cases []result.Case, targets []string) error {
	var why string
	for _, rc := range cases {
		for _, name := range targets {
			i := slices.IndexFunc(e.NotMeasured, func(n result.NotMeasured) bool { return n.Covers(name, rc.Name) })
			if i < 0 {
				return nil
			}
			why = fmt.Sprintf("%s on %s: %s", rc.Name, name, e.NotMeasured[i].Reason)
		}
	}
	return errors.New("applies to nothing that can be measured: " + why)
}
