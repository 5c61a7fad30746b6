package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A figure has a column for each target, with its name below.
type figure struct {
	Axis, Plot template.HTML
	Columns    []figureColumn
}

type figureColumn struct {
	Name, Note string
	Key        template.HTML
}

// A caseRuns shows every run of a case in one metric.
type caseRuns struct {
	File                        string
	Case, Metric, Better, Bound string
	Thinned                     string // note about runs that are not drawn
	Marks                       []finding
	Figure                      figure
	Boxes                       []boxRow // the boxes as numbers
	Table                       matrix   // every run that counts, by block
}

// maxTitledBlocks is the number of blocks up to which each dot of a primary case has a title.
const maxTitledBlocks = 40

// Heights of figures of columns, in pixels.
const (
	primaryHeight     = 190
	exploratoryHeight = 130
)

// cases returns the figures of every run: of the main metric of each case, and of its further metrics with boxes.
func (b *builder) cases() folded[caseRuns] {
	var list folded[caseRuns]
	number := 0
	for _, m := range b.casesWithFigures() {
		for _, metric := range append([]string{m.Metric}, b.boxMetrics(m)...) {
			number++
			if c := b.caseRuns(b.inMetric(m, metric), number); len(c.Figure.Columns) > 0 {
				list.add(m.Role, c)
			}
		}
	}
	return list
}

// inMetric returns a case in another of its metrics.
func (b *builder) inMetric(m caseResult, metric string) caseResult {
	if metric == m.Metric {
		return m
	}
	m.Metric, m.Bound, m.Bounds, m.Medians = metric, nil, nil, map[string]compare.Number{}
	for _, x := range b.boxes[m.Case] {
		if x.Metric == metric {
			m.Medians[x.Target], m.Unit = x.Median, x.Unit
		}
	}
	return m
}

// caseRuns draws a case. A primary case has a title at each dot and a table, unless it has too many blocks.
func (b *builder) caseRuns(m caseResult, number int) caseRuns {
	c := caseRuns{Case: m.Case, Metric: m.Metric, Better: betterText(m.Better),
		Marks: b.findings.marks(m.Case, "", "", m.Metric)}
	var d chart.Dots
	d.Height, d.Labels = exploratoryHeight, axisLabels(m.Unit)
	if m.Role == result.Primary {
		d.Height = primaryHeight
	}
	var values []float64
	if known := references(b.columns, m.Bounds, m.Unit); len(known) > 0 {
		c.Bound = fmt.Sprintf("%s %s, the median of %s%s",
			referenceName, strings.Join(known, ", "), m.Bound.Case, exceededText(*m.Bound))
	}
	for _, target := range b.columns {
		set := dotColumn(b.runs[m.Case][target], m, target)
		if len(set.Runs) == 0 {
			continue
		}
		for _, r := range set.Runs {
			d.Blocks = max(d.Blocks, r.Block)
		}
		if len(set.Runs) > maxDots {
			set.Runs = decimateDots(set.Runs)
			c.Thinned = fmt.Sprintf("Of more than %d runs of a target, the least and the greatest of several in a row are "+
				"drawn. Median, box and whiskers are of all.", maxDots)
		}
		box, row := b.box(m, target)
		if box != nil {
			set.Box, c.Boxes = box, append(c.Boxes, row)
		}
		median := unit.Format(set.Median, m.Unit)
		d.Sets = append(d.Sets, set)
		bound := math.NaN()
		if v, ok := m.Bounds[target]; ok && v.Known() {
			bound = float64(v)
			values = append(values, bound)
		}
		d.Bounds = append(d.Bounds, bound)
		c.Figure.Columns = append(c.Figure.Columns, figureColumn{Name: target, Note: "median " + median})
		for _, r := range set.Runs {
			values = append(values, r.Value)
		}
	}
	d.Titled = m.Role == result.Primary && d.Blocks <= maxTitledBlocks
	d.Count, d.Scale = len(d.Sets), chart.Linear(values...)
	d.Caption = chart.Caption{ID: "d" + strconv.Itoa(number), Title: "Every run of " + m.Case + " by block, " + m.Metric}
	c.Figure.Axis, c.Figure.Plot = d.YAxis(), d.Plot()
	if d.Titled {
		c.Table = b.runTable(m)
	}
	return c
}

// dotColumn returns the runs of a target that have a value of the metric.
func dotColumn(runs []run, m caseResult, target string) chart.DotColumn {
	set := chart.DotColumn{Median: math.NaN()}
	if v, ok := m.Medians[target]; ok {
		set.Median = float64(v)
	}
	for i, r := range runs {
		v, ok := r.Value(m.Metric)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%s: %s%s", runLabel(r, i), unit.Format(v.Number, v.Unit), reasons(r.Run))
		if r.state == chart.Superseded {
			text += ", superseded: its block was run again"
		}
		set.Runs = append(set.Runs, chart.Dot{Block: blockOf(r, i), Value: v.Number, State: r.state, Title: text})
	}
	return set
}

// decimateDots reduces dots to about maxDots: of several successive dots in the same state it keeps the smallest and
// the largest value, so that no outlier is lost.
func decimateDots(dots []chart.Dot) []chart.Dot {
	bucket := (2*len(dots) + maxDots - 1) / maxDots
	var kept []chart.Dot
	for _, state := range []chart.State{chart.Counts, chart.Invalid, chart.Superseded} {
		sameState := slices.DeleteFunc(slices.Clone(dots), func(d chart.Dot) bool { return d.State != state })
		for some := range slices.Chunk(sameState, bucket) {
			byValue := func(a, b chart.Dot) int { return cmp.Compare(a.Value, b.Value) }
			least, greatest := slices.MinFunc(some, byValue), slices.MaxFunc(some, byValue)
			if kept = append(kept, least); len(some) > 1 {
				kept = append(kept, greatest)
			}
		}
	}
	return kept
}

// blockOf returns the block of the i-th run of a target, or i+1 for imported runs, which have no blocks.
func blockOf(r run, i int) int {
	if r.Block > 0 {
		return r.Block
	}
	return i + 1
}

// runLabel names the block of the i-th run of a target, or the run if it has no block.
func runLabel(r run, i int) string {
	if r.Block > 0 {
		return "block " + strconv.Itoa(r.Block)
	}
	return "run " + strconv.Itoa(i+1)
}

// runTable returns the values of the runs that count, a row for each block.
func (b *builder) runTable(m caseResult) matrix {
	t := matrix{Columns: b.columns}
	blocks, names := map[int][]cell{}, map[int]string{}
	var order []int
	for i, target := range b.columns {
		for k, r := range b.runs[m.Case][target] {
			v, ok := r.Value(m.Metric)
			if !ok || r.state != chart.Counts {
				continue
			}
			n := blockOf(r, k)
			if blocks[n] == nil {
				blocks[n], names[n] = slices.Repeat([]cell{{Text: "-"}}, len(b.columns)), runLabel(r, k)
				order = append(order, n)
			}
			blocks[n][i] = cell{Text: unit.Format(v.Number, v.Unit)}
		}
	}
	slices.Sort(order)
	for _, n := range order {
		t.Rows = append(t.Rows, matrixRow{Head: names[n], Cells: blocks[n]})
	}
	return t
}

// A boxRow holds the order statistics of a target as text.
type boxRow struct {
	Target, Runs string
	Values       []string // lowest, first quartile, median, third quartile, highest
}

// boxMetrics returns the metrics with boxes other than the one of m: those in which others published the case.
func (b *builder) boxMetrics(m caseResult) []string {
	var list []string
	for _, x := range b.boxes[m.Case] {
		if x.Metric != m.Metric {
			list = append(list, x.Metric)
		}
	}
	return distinct(list)
}

// box returns the box of a target's runs; nil if there is none.
func (b *builder) box(m caseResult, target string) (*chart.Box, boxRow) {
	i := slices.IndexFunc(b.boxes[m.Case], func(x compare.Box) bool {
		return x.Metric == m.Metric && x.Target == target && x.Median.Known()
	})
	if i < 0 {
		return nil, boxRow{}
	}
	x := b.boxes[m.Case][i]
	row := boxRow{Target: target, Runs: strconv.Itoa(x.Runs)}
	for _, v := range []compare.Number{x.Lowest, x.Q1, x.Median, x.Q3, x.Highest} {
		row.Values = append(row.Values, format(v, x.Unit))
	}
	return &chart.Box{Lowest: float64(x.Lowest), Q1: float64(x.Q1), Median: float64(x.Median), Q3: float64(x.Q3),
		Highest: float64(x.Highest)}, row
}
