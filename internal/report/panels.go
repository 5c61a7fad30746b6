package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// maxTitledBlocks is the number of blocks up to which each dot of a primary case has a title.
const maxTitledBlocks = 40

// Heights of figures of columns, in pixels.
const (
	primaryHeight     = 190
	exploratoryHeight = 130
)

// everyRun returns every run: in the main metric of each case, and in its further metrics with boxes.
func (b *builder) everyRun() doc.Block {
	block := doc.Block{ID: "runs", Title: "Every run", Level: doc.Data, About: "A dot is a run, from left to right by " +
		"block (in order, if it has none) in the column of its target. The line is the median, the box spans the " +
		"quartiles, and the whiskers reach the furthest run within 1.5 interquartile ranges. A cross is an invalid run; a " +
		"ring is a valid run whose block was repeated. Neither counts.",
		Parts: b.perCase(func(m caseResult) (list []doc.Element) {
			metrics := []string{m.Metric}
			for _, x := range b.boxes[m.Case] {
				metrics = append(metrics, x.Metric) // others published the case in these
			}
			for _, metric := range distinct(metrics) {
				if f := b.caseRuns(b.inMetric(m, metric)); len(f.Columns) > 0 {
					list = append(list, f)
				}
			}
			return list
		})}
	if len(block.Parts) == 0 {
		block.Parts = []doc.Element{doc.Paragraph{Text: "There are no runs."}}
	}
	further := furtherMetrics(b.in.Comparison, b.groups)
	if _, others := splitMedians(b.in); len(b.in.Comparison.Medians) > 0 {
		further = foldedMetrics(mediansTable(others))
	}
	block.Parts = append(block.Parts, nested(further)...)
	return block
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

// caseRuns draws a case. A primary case has a title at each dot and a row for each block, unless it has too many
// blocks.
func (b *builder) caseRuns(m caseResult) doc.Figure {
	var d chart.Dots
	d.Height, d.Labels = exploratoryHeight, axisLabels(m.Unit)
	if m.Role == result.Primary {
		d.Height = primaryHeight
	}
	var captions []string
	if known := references(b.columns, m.Bounds, m.Unit); len(known) > 0 {
		captions = append(captions, fmt.Sprintf("Dashed: %s %s, the median of %s%s.",
			referenceName, strings.Join(known, ", "), m.Bound.Case, exceededText(*m.Bound)))
	}
	var values []float64
	var names []doc.Label
	var boxes []*compare.Box
	thinned := false
	for _, target := range b.columns {
		set := dotColumn(b.runs[m.Case][target], m, target)
		if len(set.Runs) == 0 {
			continue
		}
		for _, r := range set.Runs {
			d.Blocks = max(d.Blocks, r.Block)
		}
		if len(set.Runs) > maxDots {
			set.Runs, thinned = decimateDots(set.Runs), true
		}
		box := b.box(m, target)
		set.Box = drawnBox(box)
		bound := math.NaN()
		if v, ok := m.Bounds[target]; ok && v.Known() {
			bound = float64(v)
			values = append(values, bound)
		}
		for _, r := range set.Runs {
			values = append(values, r.Value)
		}
		d.Sets, d.Bounds, boxes = append(d.Sets, set), append(d.Bounds, bound), append(boxes, box)
		names = append(names, doc.Label{Name: target, Note: "median " + unit.Format(set.Median, m.Unit)})
	}
	if thinned {
		captions = append(captions, fmt.Sprintf("Of more than %d runs of a target, the least and the greatest of several "+
			"in a row are drawn. Median, box and whiskers are of all.", maxDots))
	}
	d.Titled = m.Role == result.Primary && d.Blocks <= maxTitledBlocks
	d.Count, d.Scale = len(d.Sets), onAxis(chart.Linear(values...), m.Unit)
	if len(names) == 0 {
		return doc.Figure{}
	}
	f := b.names.figure(d, "Every run of "+m.Case+" by block, "+m.Metric, "runs", m.Case, m.Metric)
	f.Title, f.Note, f.Columns = m.Case, m.Metric+", "+betterText(m.Better), names
	f.Links, f.Caption = links(b.findings.marks(m.Case, "", "", m.Metric)), strings.Join(captions, " ")
	for _, name := range names {
		f.Table.Columns = append(f.Table.Columns, doc.Column{Head: name.Name})
	}
	f.Table.Rows = boxRows(boxes)
	if d.Titled {
		f.Table.Rows = append(f.Table.Rows, b.runRows(m, names)...)
	}
	return f
}

// drawnBox returns a box for drawing; nil stays nil.
func drawnBox(x *compare.Box) *chart.Box {
	if x == nil {
		return nil
	}
	return &chart.Box{Lowest: float64(x.Lowest), Q1: float64(x.Q1), Median: float64(x.Median), Q3: float64(x.Q3),
		Highest: float64(x.Highest)}
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
		text := fmt.Sprintf("%s: %s%s", runLabel(r, i), unit.Format(v.Number, m.Unit), reasons(r.Run))
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

// runRows returns the values of the runs that count, a row for each block, with a column for each name.
func (b *builder) runRows(m caseResult, names []doc.Label) []doc.Row {
	byBlock := map[int]*doc.Row{}
	for i, target := range names {
		for k, r := range b.runs[m.Case][target.Name] {
			v, ok := r.Value(m.Metric)
			if !ok || r.state != chart.Counts {
				continue
			}
			n := blockOf(r, k)
			if byBlock[n] == nil {
				byBlock[n] = &doc.Row{Group: "Runs", Head: runLabel(r, k),
					Cells: slices.Repeat([]doc.Cell{{Text: "-"}}, len(names))}
			}
			byBlock[n].Cells[i] = doc.Cell{Text: unit.Format(v.Number, m.Unit)}
		}
	}
	var rows []doc.Row
	for _, n := range slices.Sorted(maps.Keys(byBlock)) {
		rows = append(rows, *byBlock[n])
	}
	return rows
}

// boxRows returns boxes as numbers, a row for each statistic; nil is the box of a target without one.
func boxRows(boxes []*compare.Box) []doc.Row {
	if !slices.ContainsFunc(boxes, func(x *compare.Box) bool { return x != nil }) {
		return nil
	}
	heads := []string{"lower whisker", "first quartile", "median", "third quartile", "upper whisker", "runs"}
	rows := make([]doc.Row, len(heads))
	for i, head := range heads {
		rows[i] = doc.Row{Group: "Box", Head: head}
	}
	for _, x := range boxes {
		texts := slices.Repeat([]string{"-"}, len(heads))
		if x != nil {
			texts = []string{format(x.Lowest, x.Unit), format(x.Q1, x.Unit), format(x.Median, x.Unit),
				format(x.Q3, x.Unit), format(x.Highest, x.Unit), strconv.Itoa(x.Runs)}
		}
		for i, text := range texts {
			rows[i].Cells = append(rows[i].Cells, doc.Cell{Text: text})
		}
	}
	return rows
}

// box returns the box of a target's runs; nil if there is none.
func (b *builder) box(m caseResult, target string) *compare.Box {
	i := slices.IndexFunc(b.boxes[m.Case], func(x compare.Box) bool {
		return x.Metric == m.Metric && x.Target == target && x.Median.Known()
	})
	if i < 0 {
		return nil
	}
	return &b.boxes[m.Case][i]
}
