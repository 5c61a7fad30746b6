package report

import (
	"cmp"
	"html/template"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A targetTable is a table with a column for each baseline and target.
type targetTable struct {
	doc.Table
	baseline string // the baseline that rows need not name
}

func newTargetTable(c compare.Comparison) *targetTable {
	var t targetTable
	for _, name := range columns(c) {
		t.Columns = append(t.Columns, doc.Column{Head: name})
	}
	if c.Paired {
		t.baseline = c.Baseline
	}
	return &t
}

// add appends a group, with the cell that cell returns for each column.
func (t *targetTable) add(g group, cell func(target string) doc.Cell) {
	row := doc.Row{Head: g.Case, Sub: g.Metric + ", " + betterText(g.Better)}
	if t.baseline != "" && g.Baseline != t.baseline {
		row.Sub += ", against " + g.Baseline
	}
	for _, column := range t.Columns {
		row.Cells = append(row.Cells, cell(column.Head))
	}
	t.Rows = append(t.Rows, row)
}

// addCompared appends a group, with the baseline's cell and the cell that cell returns for each target's row.
func (t *targetTable) addCompared(g group, baseline doc.Cell, cell func(compare.Row) doc.Cell) {
	t.add(g, func(target string) doc.Cell {
		r, compared := g.row(target)
		switch {
		case compared:
			return cell(r)
		case target == g.Baseline:
			return baseline
		}
		return doc.Cell{Text: missingCell(g, target)}
	})
}

// values appends the medians of a group with their changes and verdicts, and with what plot draws of them.
func (t *targetTable) values(g group, plot func(compare.Number) template.HTML) {
	t.add(g, func(target string) doc.Cell {
		c := answerCell{Number: missingCell(g, target)}
		if median, measured := g.medians()[target]; measured {
			c.setMedian(median, g.Unit)
			c.Bar = plot(median)
		}
		if r, compared := g.row(target); compared {
			c.setComparison(r)
		}
		c.Needed = 0
		return c.cell()
	})
}

// row returns the row of a target.
func (g group) row(target string) (r compare.Row, found bool) {
	for _, other := range g.Rows {
		if other.Target == target {
			r, found = other, true
		}
	}
	return r, found
}

// furtherMetrics returns the table of metrics other than the main ones, except those of cost.
func furtherMetrics(c compare.Comparison, all []group) doc.Block {
	t := newTargetTable(c)
	for _, g := range all {
		if !g.Main && g.Role != result.Primary && !isCost(g) {
			t.values(g, func(compare.Number) template.HTML { return "" })
		}
	}
	return foldedMetrics(t.Table)
}

// foldedMetrics returns a table of further metrics, folded.
func foldedMetrics(t doc.Table) doc.Block {
	return doc.Block{Level: doc.Data, Title: "Further metrics of these cases", Parts: parts(t)}
}

// isCost reports whether a group is about CPU time per unit of work.
func isCost(g group) bool { return g.Unit == unit.SecondPerGB || g.Unit == unit.SecondPerOp }

// costs returns CPU time per unit of work, below the main metric of the case, with bars scaled per row.
func costs(c compare.Comparison, all []group) doc.Block {
	related := map[string][]group{}
	for _, g := range all {
		if isCost(g) && g.Baseline == c.Baseline {
			related[g.Case] = append(related[g.Case], g)
		}
	}
	t := newTargetTable(c)
	for _, main := range all {
		if (!main.Main && main.Role != result.Primary) || len(related[main.Case]) == 0 || main.Baseline != c.Baseline {
			continue
		}
		for _, g := range append([]group{main}, related[main.Case]...) {
			most := 0.0
			for _, median := range g.medians() {
				most = max(most, float64(median))
			}
			t.values(g, func(n compare.Number) template.HTML { return chart.Inline(float64(n) / most) })
		}
	}
	b := doc.Block{ID: "cost", Title: "Cost", Level: doc.Data, Parts: parts(t.Table),
		About: "CPU time per unit of work, below the rate at which it was spent. Bars are scaled per row."}
	if len(t.Rows) > 4*manyCases {
		b.Parts = []doc.Element{doc.Block{Level: doc.Data, Title: unit.Plural(len(t.Rows), "line"), Parts: b.Parts}}
	}
	return b
}

// differs returns the facts that differ between targets, and all facts.
func differs(in Input) doc.Block {
	differing, all := newTargetTable(in.Comparison), newTargetTable(in.Comparison)
	var names []string
	for i, column := range all.Columns {
		differing.Columns[i].Words, all.Columns[i].Words = true, true
		for _, f := range in.Facts[column.Head] {
			names = append(names, f.Name)
		}
	}
	for _, name := range distinct(names) {
		row, same := factRow(in.Facts, name, all.Columns)
		all.Rows = append(all.Rows, row)
		if !same {
			differing.Rows = append(differing.Rows, row)
		}
	}
	b := doc.Block{ID: "differs", Title: "What differs", Parts: parts(differing.Table)}
	switch {
	case len(differing.Rows) > 0:
		b.About = "The targets also differ in these facts. Each may contribute to a difference in the results."
	case len(in.Comparison.Medians) > 0:
		b.About = "Nothing is compared. Check these facts before you compare these numbers with others."
	default:
		b.About = "No recorded fact differs between the targets."
	}
	if len(all.Rows) > 0 {
		b.Parts = append(b.Parts, doc.Block{Level: doc.Data, Title: "All facts", Parts: parts(all.Table)})
	}
	return b
}

// valueOf returns the value of a fact without its evidence.
func valueOf(facts []result.Fact, name string) string {
	return cmp.Or(result.FactOf(facts, name), result.Unknown)
}

// factRow returns the values of a fact, and whether all targets have the same.
func factRow(facts map[string][]result.Fact, name string, targets []doc.Column) (row doc.Row, same bool) {
	row, same = doc.Row{Head: name}, true
	for _, target := range targets {
		c := doc.Cell{Text: result.Unknown}
		of := func(f result.Fact) bool { return f.Name == name && f.Value != "" }
		if k := slices.IndexFunc(facts[target.Head], of); k >= 0 {
			c.Text = facts[target.Head][k].String()
		}
		same = same && valueOf(facts[target.Head], name) == valueOf(facts[targets[0].Head], name)
		row.Cells = append(row.Cells, c)
	}
	return row, same
}
