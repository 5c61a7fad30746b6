package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// unmatchedMetrics returns a warning about metrics that are compared with nothing, if there are any.
func (t *runTable) unmatchedMetrics() []Warning {
	if len(t.unmatched) == 0 {
		return nil
	}
	return []Warning{{Code: UnmatchedMetrics, Unmatched: slices.SortedFunc(maps.Keys(t.unmatched),
		func(a, b Unmatched) int {
			return cmp.Or(cmp.Compare(a.Case, b.Case), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Unit, b.Unit))
		})}}
}

// commonMetrics lists the metrics that the runs of both sides have in one unit, the case's own first, and those that
// are compared with nothing: metrics that only one side has in that unit, and the case's own if neither side records
// which direction is better. A direction that only one side records counts for both.
func commonMetrics(own string, a, b map[int]*result.Run) (both, alone []result.Value) {
	sides := [2][]result.Value{quantities(a), quantities(b)}
	matched := make([]bool, len(sides[1]))
	for _, x := range sides[0] {
		k := slices.IndexFunc(sides[1], func(y result.Value) bool { return matches(x, y) })
		if k < 0 {
			alone = append(alone, x)
			continue
		}
		matched[k] = true
		if x.Better == metric.Neutral {
			x.Better = sides[1][k].Better
		}
		both = append(both, x)
	}
	for k, y := range sides[1] {
		if !matched[k] {
			alone = append(alone, y)
		}
	}
	neutral := func(v result.Value) bool { return v.Better != metric.Higher && v.Better != metric.Lower }
	alone = slices.DeleteFunc(alone, neutral)
	for _, v := range both {
		if v.Metric == own && neutral(v) {
			alone = append(alone, v)
		}
	}
	return ownFirst(own, slices.DeleteFunc(both, neutral)), alone
}

// quantities lists the values of runs that differ in metric or unit, in order of appearance.
func quantities(runs map[int]*result.Run) []result.Value {
	var found []result.Value
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		for _, v := range runs[n].Values {
			same := func(x result.Value) bool { return x.Metric == v.Metric && x.Unit == v.Unit }
			if !slices.ContainsFunc(found, same) {
				found = append(found, v)
			}
		}
	}
	return found
}

// matches reports whether two values have the same metric and unit, and the same better direction if both record one.
func matches(x, y result.Value) bool {
	known := x.Better != metric.Neutral && y.Better != metric.Neutral
	return x.Metric == y.Metric && x.Unit == y.Unit && (!known || x.Better == y.Better)
}

// valueIn returns the value of v's metric, in v's unit if the run has it in several.
func valueIn(run *result.Run, v result.Value) (result.Value, bool) {
	for _, x := range run.Values {
		if x.Metric == v.Metric && x.Unit == v.Unit {
			return x, true
		}
	}
	return run.Value(v.Metric)
}
