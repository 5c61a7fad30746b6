package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// columns lists baselines and targets for a table, each once. One experiment has one baseline, unless all pairs of
// targets are compared.
func columns(c compare.Comparison) []string {
	return distinct(slices.Concat(baselines(c), comparedTargets(c)))
}

// baselines lists the baselines of a comparison, each once.
func baselines(c compare.Comparison) []string {
	if len(c.Comparisons) == 0 {
		return []string{c.Baseline}
	}
	var names []string
	for _, r := range c.Comparisons {
		names = append(names, r.Baseline)
	}
	return distinct(names)
}

// comparedTargets lists the targets that have comparisons, in the order of the plan.
func comparedTargets(c compare.Comparison) []string {
	var planned, names []string
	for _, t := range c.Targets {
		planned = append(planned, t.Name)
	}
	for _, r := range c.Comparisons {
		names = append(names, r.Target)
	}
	return inOrder(names, planned)
}

// inOrder lists names, each once: first those in order, then the others as they appear.
func inOrder(names, order []string) []string {
	names = distinct(names)
	known := slices.DeleteFunc(distinct(order), func(name string) bool { return !slices.Contains(names, name) })
	return distinct(append(known, names...))
}

// distinct lists names as they appear, each once.
func distinct(names []string) []string {
	var list []string
	at := index[string]{}
	for _, name := range names {
		if _, first := at.add(name); first {
			list = append(list, name)
		}
	}
	return list
}

// title names the compared targets: "a and b against c".
func title(c compare.Comparison) string {
	return strings.TrimPrefix(prose.Enumerate(comparedTargets(c))+" against "+prose.Enumerate(baselines(c)), " against ")
}

// runTargets lists the targets that have runs: in the order of the comparison, then the others.
func runTargets(in Input, runs []run) []string {
	var names []string
	for _, r := range runs {
		names = append(names, r.Target)
	}
	return inOrder(names, columns(in.Comparison))
}
