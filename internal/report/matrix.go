package report

import (
	"html/template"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/result"
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
