package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the rules about numbers that repeat.
const (
	fewRepeats   = 3     // minimum of equal numbers; two targets may share fewer by chance
	nearQuantum  = 0.025 // relative distance of a value to the next multiple
	byChance     = 1e-4  // maximum probability that as many values are near a multiple by chance
	mostQuantum  = 0.6   // minimum share of values near a multiple
	eachMultiple = 0.2   // minimum share of values at each of two different multiples
)

// copyRules find numbers that are more alike than measurements are.
var copyRules = []Rule{
	{Name: "identical-numbers", Severity: Warning, checkAll: identical,
		About: "Two targets do not share the same raw numbers: not in every block, nor in one output of a tool with three " +
			"or more of them, nor in three or more cells of their columns, also if they are in two files.",
		Why: "Two measurements never give identical numbers: one was copied, or measured once and shown twice."},
	{Name: "equal-percentiles", Severity: Warning, checkAll: equalPercentiles,
		About: "Two percentiles of a table are not equal to the digit on all of two or more targets.",
		Why:   "The slowest requests take longer than most: one of the two numbers was written twice."},
	{Name: "measured-once", Severity: Warning, checkAll: measuredOnce,
		About: "A row of a table does not have the same number for three or more targets, unless it is what TCP carries " +
			"over a full link.",
		Why: "It was measured once, for one of them or for none: for the others it is no baseline, because it has another " +
			"time and place."},
	{Name: "quantised", Severity: Warning, checkAll: quantised,
		About: "Latencies do not gather at multiples of one time: of eight or more values, 60 % within 2.5 % of a " +
			"multiple, at two multiples at least, with less than 1 in 10 000 by chance.",
		Why: "Then a limiter or a timer is measured: the rate limiter of a client of 5 requests per second makes " +
			"multiples of 200 ms, a delayed acknowledgement of 40 ms.",
		More: "client-go: rest.Config.QPS and Burst, 5 and 10 by default"},
}

func identical(recs *records) (found []Finding, checked int) {
	found, checked = identicalOutputs(recs)
	copied := map[pair]bool{}
	for _, f := range found {
		copied[pair{f.Case, f.Target}] = true
	}
	for _, name := range recs.cases {
		byTarget := recs.byCase[name]
		targets := slices.DeleteFunc(recs.targets(name), func(target string) bool { return published(byTarget[target][0]) })
		for i, a := range targets {
			for _, b := range targets[i+1:] {
				if copied[pair{name, b}] {
					continue
				}
				findings, n := identicalRuns(byTarget[a], byTarget[b])
				checked += n
				for _, f := range findings {
					f.Case, f.Target = name, b
					f.Saw = fmt.Sprintf("%s and %s %s", a, b, f.Saw)
					found = append(found, f)
				}
			}
		}
	}
	columns, n := identicalColumns(recs)
	return append(found, columns...), checked + n
}

// identicalRuns compares the runs of two targets block by block.
func identicalRuns(a, b []*result.Run) (found []Finding, checked int) {
	blocks := map[int]*result.Run{}
	for _, r := range a {
		blocks[r.Block] = r
	}
	if len(a) < fewRepeats || len(b) < fewRepeats {
		if other := blocks[b[0].Block]; other != nil {
			return identicalRun(other, b[0])
		}
		return nil, 0
	}
	for _, v := range b[0].Values {
		if v.Better == metric.Neutral {
			continue
		}
		equal, both, values := 0, 0, map[float64]bool{}
		for _, r := range b {
			other := blocks[r.Block]
			if other == nil {
				continue
			}
			x, ok := other.Value(v.Metric)
			y, also := r.Value(v.Metric)
			if !ok || !also || x.Number == 0 && y.Number == 0 {
				continue
			}
			both++
			if x.Number == y.Number {
				equal++
				values[x.Number] = true
			}
		}
		if both < fewRepeats {
			continue
		}
		checked++
		// A configured rate is the same in every run; a measured one differs from block to block.
		if equal == both && len(values) > 1 {
			found = append(found, Finding{Metric: v.Metric, Saw: fmt.Sprintf("report the same value in all %d blocks.", both)})
		}
	}
	return found, checked
}

// identicalRun compares the metrics of two single runs. At least three metrics with three digits that are all equal
// were not measured twice.
func identicalRun(a, b *result.Run) (found []Finding, checked int) {
	equal, both := 0, 0
	for _, v := range b.Values {
		w, ok := a.Value(v.Metric)
		if !ok || v.Better == metric.Neutral || digits(v.Number) < 3 && digits(w.Number) < 3 {
			continue
		}
		both++
		if v == w {
			equal++
		}
	}
	if both < fewRepeats {
		return nil, 0
	}
	if equal == both {
		found = append(found, Finding{Saw: fmt.Sprintf("report the same %d numbers in run %s and run %s.", both, a.ID, b.ID)})
	}
	return found, 1
}

// A column holds the cells of a target in a table by case, row label and metric.
type column struct {
	source, table, target string
	cells                 map[string]result.Value
	places                []string
}

// columnsBehind is the number of following columns that a column is compared with, so that the work grows linearly.
const columnsBehind = 256

// identicalColumns compares the columns of tables with each other.
func identicalColumns(recs *records) (found []Finding, checked int) {
	own := slices.DeleteFunc(recs.columns(), func(c column) bool { return len(c.cells) < fewRepeats })
	earlier := recs.Seen.columns[max(0, len(recs.Seen.columns)-columnsBehind):]
	columns := slices.Concat(earlier, own)
	recs.Seen.columns = columns
	for i, a := range columns {
		first := max(i+1, len(earlier)) // pairs of earlier columns have been compared
		for _, b := range columns[first:max(first, min(len(columns), i+1+columnsBehind))] {
			if a.target == b.target {
				continue
			}
			equal, both, values := 0, 0, map[float64]bool{}
			for k, v := range a.cells {
				w, ok := b.cells[k]
				if !ok {
					continue
				}
				both++
				if v.Number == w.Number && v.Unit == w.Unit && v.Number != 0 {
					equal++
					values[v.Number] = true
				}
			}
			if both < fewRepeats {
				continue
			}
			checked++
			if equal == both && len(values) >= fewRepeats {
				found = append(found, Finding{Target: b.target, Place: firstPlace(b.places),
					Saw: fmt.Sprintf("All %d figures of %s in %s are those of %s in %s.",
						both, b.target, b.table, a.target, a.place(recs.Source))})
			}
		}
	}
	return found, checked
}

// place names the table of the column, with its source if that is another one.
func (c column) place(source string) string {
	if c.source == source {
		return c.table
	}
	return c.table + " of " + c.source
}

// columns lists the columns of all tables, without rows that were measured once and without outputs that are
// compared as a whole.
func (recs *records) columns() []column {
	var columns []column
	for _, table := range recs.tables {
		cells := recs.cells[table]
		once := map[string]bool{}
		for _, row := range rowsOf(cells) {
			if row.constant() {
				once[row.key] = true
			}
		}
		at := map[string]int{}
		for _, r := range cells {
			if table == TableOutput && significant(r) != nil {
				continue
			}
			i, ok := at[r.Target]
			if !ok {
				i = len(columns)
				at[r.Target] = i
				columns = append(columns, column{
					source: recs.Source, table: table, target: r.Target, cells: map[string]result.Value{}})
			}
			columns[i].places = append(columns[i].places, r.Fact(FactPlace))
			for _, v := range r.Values {
				if k := cellKey(r, v.Metric); !once[k] {
					columns[i].cells[k] = v
				}
			}
		}
	}
	return columns
}

// cellKey identifies a number within a column, also across tables.
func cellKey(r *result.Run, metric string) string {
	return strings.Join([]string{r.Case, r.Fact(FactRow), metric}, "\x00")
}

// A row is a line of a table: one quantity on all targets.
type row struct {
	key, caseName, metric, label, tool string
	values                             []result.Value
	targets                            []string
	places                             []string
}

// constant reports whether three or more targets share one number with three digits.
func (r row) constant() bool {
	if r.distinctTargets() < fewRepeats {
		return false
	}
	v := r.values[0]
	same := !slices.ContainsFunc(r.values, func(w result.Value) bool { return w != v })
	return same && v.Number != 0 && digits(v.Number) >= 3 && !atLineRate(v)
}

func (r row) distinctTargets() int {
	return len(slices.Compact(slices.Sorted(slices.Values(r.targets))))
}

// atLineRate reports whether a throughput is what TCP carries over a full link, in packets of 1500 or of 9000 bytes: it
// is the same for everyone.
func atLineRate(v result.Value) bool {
	return v.Unit == unit.BitPerSecond && slices.ContainsFunc(linkRates, func(link float64) bool {
		share := v.Number / link
		return share >= 0.934 && share <= 0.951 || share >= 0.985 && share <= 0.997
	})
}

// digits returns the number of significant digits of a decimal number.
func digits(v float64) int {
	text := fmt.Sprintf("%.12e", v)
	mantissa, _, _ := strings.Cut(strings.TrimLeft(text, "-"), "e")
	return len(strings.TrimRight(strings.ReplaceAll(mantissa, ".", ""), "0"))
}

func rowsOf(cells []*result.Run) []row {
	var rows []row
	at := map[string]int{}
	for _, r := range cells {
		for _, v := range r.Values {
			k := cellKey(r, v.Metric)
			i, ok := at[k]
			if !ok {
				i = len(rows)
				at[k] = i
				rows = append(rows, row{key: k, caseName: r.Case, metric: v.Metric, label: r.Fact(FactRow), tool: r.Tool})
			}
			rows[i].values = append(rows[i].values, v)
			rows[i].targets = append(rows[i].targets, r.Target)
			rows[i].places = append(rows[i].places, PlaceOf(r, v.Metric))
		}
	}
	return rows
}

// equalPercentiles compares the percentiles of the cells of each table.
func equalPercentiles(recs *records) (found []Finding, checked int) {
	type percentilePair struct{ caseName, low, high string }
	for _, table := range recs.tables {
		both, equal := map[percentilePair][]*result.Run{}, map[percentilePair]map[float64]bool{}
		var order []percentilePair
		for _, r := range recs.cells[table] {
			ranks := slices.DeleteFunc(percentiles(r), func(v result.Value) bool { return metric.Quantile(v.Metric) == 0 })
			for i := 1; i < len(ranks); i++ {
				low, high := ranks[i-1], ranks[i]
				p := percentilePair{r.Case, low.Metric, high.Metric}
				if both[p] == nil {
					order, equal[p] = append(order, p), map[float64]bool{}
				}
				both[p] = append(both[p], r)
				if low.Number == high.Number && digits(low.Number) >= 3 {
					equal[p][low.Number] = true
				}
			}
		}
		for _, p := range order {
			runs := both[p]
			if len(runs) < 2 {
				continue
			}
			checked++
			// Targets with the same number would be one number only.
			if len(equal[p]) == len(runs) {
				found = append(found, Finding{Case: p.caseName, Metric: p.high, Place: PlaceOf(runs[0], p.high),
					Saw: fmt.Sprintf("%s and %s are equal on all %d targets.", p.low, p.high, len(runs))})
			}
		}
	}
	return found, checked
}

func measuredOnce(recs *records) (found []Finding, checked int) {
	for _, table := range recs.tables {
		for _, row := range rowsOf(recs.cells[table]) {
			if row.distinctTargets() < fewRepeats {
				continue
			}
			checked++
			if row.constant() {
				v := row.values[0]
				found = append(found, Finding{Case: row.caseName, Metric: row.metric, Place: firstPlace(row.places),
					Saw: fmt.Sprintf("All %d targets have %s.", row.distinctTargets(), unit.Format(v.Number, v.Unit))})
			}
		}
	}
	return found, checked
}

// quantised checks the latencies of each table, and of each measured case and target.
func quantised(recs *records) (found []Finding, checked int) {
	for _, table := range recs.tables {
		var values []float64
		var places []string
		for _, r := range recs.cells[table] {
			if x := latencies(r); len(x) > 0 {
				values = append(values, x...)
				places = append(places, r.Fact(FactPlace))
			}
		}
		if f, ok := quantum(values); ok {
			checked++
			if f.Saw != "" {
				f.Place = firstPlace(places)
				found = append(found, f)
			}
		}
	}
	for of, runs := range recs.pairs() {
		var values []float64
		for _, r := range runs {
			if v, ok := number(r, metric.P50); ok && !published(r) {
				values = append(values, v)
			}
		}
		if f, ok := quantum(values); ok {
			checked++
			if f.Saw != "" {
				f.Case, f.Target, f.Metric = of.name, of.target, metric.P50
				found = append(found, f)
			}
		}
	}
	return found, checked
}

// latencies returns the times of a run that a limiter would affect.
func latencies(r *result.Run) []float64 {
	var x []float64
	for _, v := range r.Values {
		if v.Unit == unit.Second && v.Number > 0 && (v.Metric == metric.Mean ||
			v.Metric == metric.Latency || v.Metric == metric.Max || metric.Quantile(v.Metric) > 0) {
			x = append(x, v.Number)
		}
	}
	return x
}

// fewLatencies is the minimum number of values for a search for a quantum.
const fewLatencies = 8

// quantum searches for a time whose multiples attract the values; checked reports whether there were enough values. It
// judges by the probability that at least as many values are near a multiple if each is uniformly distributed.
func quantum(values []float64) (f Finding, checked bool) {
	if len(values) < fewLatencies {
		return f, false
	}
	type candidate struct {
		step, p float64
		near    int
	}
	best := candidate{p: 1}
	for _, step := range []float64{1, 0.2, 0.1, 0.04, 0.01} {
		near, chance, at := 0, 0.0, map[int]int{}
		for _, v := range values {
			k := math.Max(math.Round(v/step), 1)
			chance += math.Min(1, 2*nearQuantum*v/step) / float64(len(values))
			if math.Abs(v-k*step) <= nearQuantum*v {
				near++
				at[int(min(k, math.MaxInt32))]++
			}
		}
		if p := atLeast(len(values), near, chance); spread(at, len(values)) && p < best.p {
			best = candidate{step, p, near}
		}
	}
	if best.p < byChance && float64(best.near) >= mostQuantum*float64(len(values)) {
		f.Saw = fmt.Sprintf("%d of %d latencies lie within 2.5 %% of a multiple of %s.",
			best.near, len(values), unit.Format(best.step, unit.Second))
	}
	return f, true
}

// spread reports whether at least two multiples have a large share of the values each: values of a single size are a
// latency, not a timer.
func spread(at map[int]int, n int) bool {
	large := 0
	for _, c := range at {
		if float64(c) >= eachMultiple*float64(n) {
			large++
		}
	}
	return large >= 2
}

// atLeast returns the probability of k or more successes in n trials with probability p each.
func atLeast(n, k int, p float64) float64 {
	if k < 1 || p >= 1 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// firstPlace returns the place with the smallest line.
func firstPlace(places []string) string {
	if len(places) == 0 {
		return ""
	}
	return slices.MinFunc(places, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}
