package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// columns lists baselines and targets for a table, each once: of one experiment there is one baseline, unless every
// target is compared with every other.
func columns(c compare.Comparison) []string {
	return distinct(slices.Concat(baselines(c), compared(c)))
}

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

// compared lists the targets that have results beside the baseline's, in the order of the plan.
func compared(c compare.Comparison) []string {
	var planned, names []string
	for _, t := range c.Targets {
		planned = append(planned, t.Name)
	}
	for _, r := range c.Comparisons {
		names = append(names, r.Target)
	}
	return among(names, planned)
}

// among lists names, each once: first those that have an order, then the others as they appear.
func among(names, order []string) []string {
	names = distinct(names)
	known := slices.DeleteFunc(distinct(order), func(name string) bool { return !slices.Contains(names, name) })
	return distinct(append(known, names...))
}

// distinct lists names as they appear, each once.
func distinct(names []string) []string {
	var list []string
	at := index[string]{}
	for _, name := range names {
		if _, first := at.of(name); first {
			list = append(list, name)
		}
	}
	return list
}

// title says what is compared with what.
func title(c compare.Comparison) string {
	return strings.TrimPrefix(prose.Enumerate(compared(c))+" against "+prose.Enumerate(baselines(c)), " against ")
}

// runTargets lists the targets that have runs: in the order of the comparison, then the others.
func runTargets(in Input, runs []run) []string {
	var names []string
	for _, r := range runs {
		names = append(names, r.Target)
	}
	return among(names, columns(in.Comparison))
}
