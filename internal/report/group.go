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

// A group is one metric of one case on a baseline and on every target that is compared with it: a line
// of a table in the shape of case x target.
type group struct {
	Case     string
	Of       result.Case // as it was planned
	Metric   string
	Unit     unit.Unit
	Better   metric.Better
	Role     result.Role
	Main     bool // the metric that the case is measured for
	Baseline string
	// BaselineMedian is that of the row with the most blocks; a row with fewer has its own.
	BaselineMedian compare.Number
	Rows           []compare.Row
	Bound          *compare.UpperBound
	Missing        []result.NotMeasured // targets for which this case in particular was not measured
	Ways           map[string]string    // by target, what the directions of a sum carried: "12.0/11.0 Gbit/s TX/RX"
}

// An index numbers keys in the order in which they appear.
type index[K comparable] map[K]int

// of is the number of a key, and whether it appears for the first time.
func (x index[K]) of(key K) (number int, first bool) {
	number, known := x[key]
	if !known {
		number = len(x)
		x[key] = number
	}
	return number, !known
}

// groups collects the rows of a comparison, in its order: primaries first.
func groups(in Input) []group {
	cases := in.casesByName()
	var all []group
	at := index[[3]string]{}
	for _, r := range in.Comparison.Comparisons {
		i, first := at.of([3]string{r.Case, r.Metric, r.Baseline})
		if first {
			of := cases[r.Case]
			all = append(all, group{
				Case: r.Case, Of: of, Metric: r.Metric, Unit: r.Unit, Better: r.Better, Role: r.Role, Baseline: r.Baseline,
				Main: of.Metric == "" || of.Metric == r.Metric, Missing: missing(in.Comparison, r.Case),
			})
		}
		all[i].add(r)
	}
	for i, g := range all {
		if g.Metric == metric.Throughput {
			all[i].Ways = eachWay(all, g)
		}
	}
	return all
}

// eachWay returns the medians of each direction of a throughput, by target; none where they were not measured apart.
func eachWay(all []group, sum group) map[string]string {
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

// medians are those of all targets.
func (g group) medians() map[string]compare.Number {
	of := map[string]compare.Number{g.Baseline: g.BaselineMedian}
	for _, r := range g.Rows {
		of[r.Target] = r.TargetMedian
	}
	return of
}

func (g *group) add(r compare.Row) {
	if !slices.ContainsFunc(g.Rows, func(other compare.Row) bool { return other.Blocks >= r.Blocks }) {
		g.BaselineMedian, g.Bound = r.BaselineMedian, cmp.Or(r.UpperBound, g.Bound)
	}
	g.Bound = cmp.Or(g.Bound, r.UpperBound)
	g.Rows = append(g.Rows, r)
}

// bounds are the references of the targets that have one.
func (g group) bounds() map[string]compare.Number {
	of := map[string]compare.Number{}
	if g.Bound != nil {
		of[g.Baseline] = g.Bound.Median
	}
	for _, r := range g.Rows {
		if r.UpperBound != nil {
			of[r.Target] = r.UpperBound.TargetMedian
		}
	}
	return of
}

func missing(c compare.Comparison, name string) []result.NotMeasured {
	var list []result.NotMeasured
	for _, n := range inWords(c.NotMeasured) {
		if n.Case == name {
			list = append(list, n)
		}
	}
	return list
}

// inWords is a list of what was not measured, with words where it says "*".
func inWords(list []result.NotMeasured) []result.NotMeasured {
	list = slices.Clone(list)
	for i := range list {
		if list[i].Target == "*" {
			list[i].Target = "all targets"
		}
		if list[i].Case == "*" {
			list[i].Case = "all cases"
		}
	}
	return list
}

// absent is the cell of a target that a group has no row of.
func absent(g group, target string) string {
	if slices.ContainsFunc(g.Missing, func(n result.NotMeasured) bool { return n.Target == target }) {
		return notMeasuredText
	}
	return "-"
}

// notMeasuredText stands in the cell of a target that could not be measured.
const notMeasuredText = "not measured"

// partition keeps the groups of a role, and of those the main metrics of their cases, and the latencies of storage,
// whose rate alone says nothing of the wait; others counts the rest.
func partition(all []group, role result.Role) (kept []group, others int) {
	for _, g := range all {
		switch {
		case g.Role != role:
		case g.Main || g.Role == result.Primary || isWait(g.Of, g.Metric):
			kept = append(kept, g)
		default:
			others++
		}
	}
	return kept, others
}

// isWait says whether a metric is a latency of a case of storage, of all operations or of its reads or writes.
func isWait(of result.Case, name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, metric.Reads), metric.Writes)
	return of.Load.Volume && (name == metric.P50 || name == metric.P99)
}
