package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A group is one metric of one case on a baseline and on every target that is compared with it: a line of a table of
// cases and targets.
type group struct {
	Case     string
	Planned  result.Case // the planned case
	Metric   string
	Unit     unit.Unit
	Better   metric.Better
	Role     result.Role
	Main     bool // whether Metric is the main metric of the case
	Baseline string
	// BaselineMedian is that of the row with the most blocks; rows with fewer blocks may have other baseline medians.
	BaselineMedian compare.Number
	Rows           []compare.Row
	Bound          *compare.UpperBound
	Missing        []result.NotMeasured // targets without this case
	Directions     map[string]string    // by target, both directions of a throughput: "12.0/11.0 Gbit/s TX/RX"
}

// An index numbers keys in order of appearance, from 0.
type index[K comparable] map[K]int

// add returns the number of a key, and whether it is new.
func (x index[K]) add(key K) (number int, first bool) {
	number, known := x[key]
	if !known {
		number = len(x)
		x[key] = number
	}
	return number, !known
}

// groups collects the rows of a comparison, in its order: primary comparisons first.
func groups(in Input) []group {
	cases := in.casesByName()
	var all []group
	at := index[[3]string]{}
	for _, r := range in.Comparison.Comparisons {
		i, first := at.add([3]string{r.Case, r.Metric, r.Baseline})
		if first {
			planned := cases[r.Case]
			all = append(all, group{
				Case: r.Case, Planned: planned, Metric: r.Metric, Unit: planned.ShownUnit(r.Unit), Better: r.Better, Role: r.Role,
				Baseline: r.Baseline, Main: planned.Metric == "" || planned.Metric == r.Metric,
				Missing: missingTargets(in.Comparison, r.Case),
			})
		}
		all[i].add(r)
	}
	for i, g := range all {
		if g.Metric == metric.Throughput {
			all[i].Directions = directionMedians(all, g)
		}
	}
	return all
}

// directionMedians returns the medians of each direction of a throughput, by target; empty if they were not measured.
func directionMedians(all []group, sum group) map[string]string {
	var tx, rx group
	for _, g := range all {
		switch {
		case g.Case != sum.Case || g.Baseline != sum.Baseline:
		case g.Metric == metric.ThroughputTX:
			tx = g
		case g.Metric == metric.ThroughputRX:
			rx = g
		}
	}
	list, back := map[string]string{}, rx.medians()
	for target, there := range tx.medians() {
		if back[target] > 0 {
			list[target] = slashed(there, back[target], sum.Unit) + " TX/RX"
		}
	}
	return list
}

// medians returns the medians of all targets, by name.
func (g group) medians() map[string]compare.Number {
	byTarget := map[string]compare.Number{g.Baseline: g.BaselineMedian}
	for _, r := range g.Rows {
		byTarget[r.Target] = r.TargetMedian
	}
	return byTarget
}

// add appends a row.
func (g *group) add(r compare.Row) {
	if !slices.ContainsFunc(g.Rows, func(other compare.Row) bool { return other.Blocks >= r.Blocks }) {
		g.BaselineMedian, g.Bound = r.BaselineMedian, cmp.Or(r.UpperBound, g.Bound)
	}
	g.Bound = cmp.Or(g.Bound, r.UpperBound)
	r.Unit = g.Unit
	g.Rows = append(g.Rows, r)
}

// bounds returns the node-to-node references of the targets that have one, by name.
func (g group) bounds() map[string]compare.Number {
	byTarget := map[string]compare.Number{}
	if g.Bound != nil {
		byTarget[g.Baseline] = g.Bound.Median
	}
	for _, r := range g.Rows {
		if r.UpperBound != nil {
			byTarget[r.Target] = r.UpperBound.TargetMedian
		}
	}
	return byTarget
}

// missingTargets returns the targets for which a case was not measured.
func missingTargets(c compare.Comparison, name string) []result.NotMeasured {
	var list []result.NotMeasured
	for _, n := range expandWildcards(c.NotMeasured) {
		if n.Case == name {
			list = append(list, n)
		}
	}
	return list
}

// expandWildcards replaces "*" in a list of what was not measured by words.
func expandWildcards(list []result.NotMeasured) []result.NotMeasured {
	list = slices.Clone(list)
	for i, n := range list {
		if n.EveryTarget() {
			list[i].Target = "all targets"
		}
		if n.EveryCase() {
			list[i].Case = "all cases"
		}
	}
	return list
}

// missingCell returns the cell of a target for which a group has no row.
func missingCell(g group, target string) string {
	if slices.ContainsFunc(g.Missing, func(n result.NotMeasured) bool { return n.Target == target }) {
		return notMeasuredText
	}
	return "-"
}

// notMeasuredText is the cell of a target that could not be measured.
const notMeasuredText = "not measured"

// partition returns the groups of a role that tables show, and counts the others. Tables show primary groups, those
// with the main metric of their case, and latencies of storage, because its rate does not show how long operations
// wait.
func partition(all []group, role result.Role) (kept []group, others int) {
	for _, g := range all {
		switch {
		case g.Role != role:
		case g.Main || g.Role == result.Primary || isStorageLatency(g.Planned, g.Metric):
			kept = append(kept, g)
		default:
			others++
		}
	}
	return kept, others
}

// isStorageLatency reports whether a metric is p50 or p99 of a storage case: of all operations, of reads or of writes.
func isStorageLatency(planned result.Case, name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, metric.Reads), metric.Writes)
	return planned.Load.Volume && (name == metric.P50 || name == metric.P99)
}
