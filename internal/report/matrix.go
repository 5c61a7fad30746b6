package report

import (
	"cmp"
	"html/template"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A matrix is a table with a column for each target.
type matrix struct {
	Columns []string
	Rows    []matrixRow
	All     int    // number of rows, including those that are left out
	Against string // baseline that rows need not name
}

type matrixRow struct {
	Head, Sub string
	Cells     []cell
}

// A cell has a value, a text below it, the style of a verdict, and a bar before its number.
type cell struct {
	Text, Sub, Class string
	Bar              template.HTML
}

func newMatrix(c compare.Comparison) *matrix {
	m := &matrix{Columns: columns(c)}
	if c.Paired {
		m.Against = c.Baseline
	}
	return m
}

// capped returns m with at most maxRows rows, or nil if it has none, so that a template leaves the table out.
func (m *matrix) capped() *matrix {
	if len(m.Rows) == 0 {
		return nil
	}
	list := firstRows(m.Rows)
	m.Rows, m.All = list.Rows, list.All
	return m
}

// Rest returns a note about the rows that are left out.
func (m matrix) Rest() string { return html.Rest(len(m.Rows), m.All) }

// add appends a group: the baseline's cell, then the result of toCell for each target's row.
func (m *matrix) add(g group, baseline cell, toCell func(compare.Row) cell) {
	row := matrixRow{Head: g.Case, Sub: g.Metric + ", " + betterText(g.Better)}
	if m.Against != "" && g.Baseline != m.Against {
		row.Sub += ", against " + g.Baseline
	}
	for _, name := range m.Columns {
		c := cell{Text: missingCell(g, name), Class: "undecided"}
		if name == g.Baseline {
			c = baseline
		}
		for _, r := range g.Rows {
			if r.Target == name {
				c = toCell(r)
			}
		}
		row.Cells = append(row.Cells, c)
	}
	m.Rows = append(m.Rows, row)
}

// values adds a group with its medians, changes and verdicts.
func (m *matrix) values(g group) {
	m.add(g, cell{Text: format(g.BaselineMedian, g.Unit)}, func(r compare.Row) cell {
		return cell{Text: format(r.TargetMedian, r.Unit), Sub: changeText(r), Class: class(r)}
	})
}

// changeText returns a row's change, interval and verdict, with no line breaks within each.
func changeText(r compare.Row) string {
	if r.Shift != nil {
		return difference(r) + " " + verdictWithReason(r)
	}
	return unbroken(change(r.Change)) + " " + unbroken(interval(r.CI)) + " " + verdictWithReason(r)
}

// unbroken replaces spaces by no-break spaces.
func unbroken(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// furtherMetrics returns the table of metrics other than the main ones, except those of cost.
func furtherMetrics(c compare.Comparison, all []group) *matrix {
	m := newMatrix(c)
	for _, g := range all {
		if !g.Main && g.Role != result.Primary && !isCost(g) {
			m.values(g)
		}
	}
	return m.capped()
}

// isCost reports whether a group is about CPU time per unit of work.
func isCost(g group) bool { return g.Unit == unit.SecondPerGB || g.Unit == unit.SecondPerOp }

// costs returns the table of CPU time per unit of work, below the main metric of the case, with bars scaled per row.
func costs(c compare.Comparison, all []group) *matrix {
	related := map[string][]group{}
	for _, g := range all {
		if isCost(g) && g.Baseline == c.Baseline {
			related[g.Case] = append(related[g.Case], g)
		}
	}
	m := newMatrix(c)
	for _, main := range all {
		if (!main.Main && main.Role != result.Primary) || len(related[main.Case]) == 0 || main.Baseline != c.Baseline {
			continue
		}
		m.bars(main)
		for _, g := range related[main.Case] {
			m.bars(g)
		}
	}
	return m.capped()
}

// bars adds a group like values, with a bar in each cell.
func (m *matrix) bars(g group) {
	most := float64(g.BaselineMedian)
	for _, r := range g.Rows {
		most = max(most, float64(r.TargetMedian))
	}
	bar := func(n compare.Number) template.HTML { return chart.Inline(float64(n) / most) }
	m.add(g, cell{Text: format(g.BaselineMedian, g.Unit), Bar: bar(g.BaselineMedian)}, func(r compare.Row) cell {
		return cell{Text: format(r.TargetMedian, r.Unit), Sub: changeText(r), Class: class(r), Bar: bar(r.TargetMedian)}
	})
}

// quartileSpread returns the table of the quartiles of the runs of each target.
func quartileSpread(c compare.Comparison, all []group) *matrix {
	m, against := newMatrix(c), c.Against()
	for _, g := range all {
		if (!g.Main && g.Role != result.Primary) || len(g.Rows) == 0 || g.Baseline != against[g.Rows[0].Target] {
			continue
		}
		m.add(g, cell{Text: span(g.Rows[0].BaselineQuartiles, g.Unit)}, func(r compare.Row) cell {
			return cell{Text: span(r.TargetQuartiles, r.Unit)}
		})
	}
	return m.capped()
}

// factTables returns the facts that differ between targets, and all facts.
func factTables(in Input) (differing, all *matrix) {
	differing, all = newMatrix(in.Comparison), newMatrix(in.Comparison)
	facts := in.Facts
	var names []string
	for _, target := range all.Columns {
		for _, f := range facts[target] {
			names = append(names, f.Name)
		}
	}
	for _, name := range distinct(names) {
		row, same := factRow(facts, name, all.Columns)
		all.Rows = append(all.Rows, row)
		if !same {
			differing.Rows = append(differing.Rows, row)
		}
	}
	return differing.capped(), all.capped()
}

// valueOf returns the value of a fact without its evidence.
func valueOf(facts []result.Fact, name string) string {
	return cmp.Or(result.FactOf(facts, name), result.Unknown)
}

// factRow returns the values of a fact, and whether all targets have the same.
func factRow(facts map[string][]result.Fact, name string, targets []string) (row matrixRow, same bool) {
	row, same = matrixRow{Head: name}, true
	for _, target := range targets {
		c := cell{Text: result.Unknown}
		of := func(f result.Fact) bool { return f.Name == name && f.Value != "" }
		if k := slices.IndexFunc(facts[target], of); k >= 0 {
			c.Text = facts[target][k].String()
		}
		if valueOf(facts[target], name) != valueOf(facts[targets[0]], name) {
			c.Class, same = "differs", false
		}
		row.Cells = append(row.Cells, c)
	}
	return row, same
}
