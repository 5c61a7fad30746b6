package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A hero is the answer on the first screen: a row for each case in plain words, a column for each target. The page, the
// card and the terminal show it.
type hero struct {
	File    string // of the figure
	Columns []heroColumn
	Rows    []heroRow
	Folded  []heroRow // exploratory cases beside primary ones
}

type heroColumn struct {
	Name  string // in full
	Short string // without the kind that all targets share
	Note  string // baseline, A/A control
}

type heroRow struct {
	Case, Metric      string
	Subject, Quantity string // Pod → pod, other node; latency
	Sub               string // tcp-rr p50, lower is better
	Cells             []heroCell
}

// Title is the row in plain words: "Pod → pod, other node · latency".
func (r heroRow) Title() string { return r.Subject + " · " + r.Quantity }

// A heroCell is a target's value. One that is compared has a change, an interval and a verdict.
type heroCell struct {
	Column        string
	Number, Unit  string // of the median; a missing one is in Number alone
	Share         string // of the node-to-node reference
	Change, Range string
	Word          string
	Mark          chart.Mark
	Needed        int // blocks that would decide, as an estimate; 0: no estimate
	Bar           template.HTML
	Marks         []finding
}

// Value is the median with its unit.
func (c heroCell) Value() string { return strings.TrimSpace(c.Number + " " + c.Unit) }

// A marker finds what the audit found about a number.
type marker func(compare.Row) []finding

// newHero makes the matrix of a comparison. Bars are on one axis, which is nil where nothing is drawn; marks are the
// findings that touch a number.
func newHero(in Input, all []group, axis *chart.Forest, marks marker) hero {
	c := in.Comparison
	h := hero{File: "answer", Columns: heroColumns(c)}
	primary, _ := partition(all, result.Primary)
	exploratory, _ := partition(all, result.Exploratory)
	h.Rows, h.Folded = h.rows(c, primary, axis, marks), h.rows(c, exploratory, axis, marks)
	if len(h.Rows) == 0 {
		h.Rows, h.Folded = h.Folded, nil
	}
	return h
}

// heroColumns lists the baseline first. Of several experiments each target may have its own.
func heroColumns(c compare.Comparison) []heroColumn {
	names := columns(c)
	short := prose.Unprefixed(names)
	is := map[string]bool{c.Baseline: true}
	for _, name := range c.Against() {
		is[name] = true
	}
	var list []heroColumn
	for _, name := range names {
		column := heroColumn{Name: name, Short: short[name]}
		switch {
		case is[name]:
			column.Note = "baseline"
		case slices.Contains(c.Placebos, name):
			column.Note = "A/A control"
		}
		list = append(list, column)
	}
	return list
}

// rows joins the groups of a case and metric: several experiments may have one for each target. Of targets that are
// compared with several, the baseline counts.
func (h *hero) rows(c compare.Comparison, list []group, axis *chart.Forest, marks marker) []heroRow {
	var rows []heroRow
	at, against := index[[2]string]{}, c.Against()
	for _, g := range list {
		g.Rows = slices.DeleteFunc(slices.Clone(g.Rows), func(r compare.Row) bool {
			return r.Baseline != against[r.Target]
		})
		if len(g.Rows) == 0 {
			continue
		}
		i, first := at.of([2]string{g.Case, g.Metric})
		if first {
			rows = append(rows, h.row(g))
		}
		h.fill(&rows[i], g, axis, marks)
	}
	return rows
}

// row is a row whose cells are still empty.
func (h *hero) row(g group) heroRow {
	row := heroRow{Case: g.Case, Metric: g.Metric, Sub: g.Case + " " + g.Metric + ", " + betterText(g.Better)}
	row.Subject, row.Quantity = inPlainWords(g.Of, g.Metric)
	for _, column := range h.Columns {
		row.Cells = append(row.Cells, heroCell{Column: column.Short, Number: absent(g, column.Name)})
	}
	return row
}

// inPlainWords are what a case is about, or the name of one that has no words, and what a metric of it is.
func inPlainWords(of result.Case, metric string) (subject, quantity string) {
	if of.Words.Quantity != "" && metric == of.Metric {
		metric = of.Words.Quantity
	}
	return cmp.Or(of.Words.Subject, of.Name), metric
}

func (h *hero) fill(row *heroRow, g group, axis *chart.Forest, marks marker) {
	if i := h.column(g.Baseline); i >= 0 {
		row.Cells[i].measured(g.BaselineMedian, g.Unit)
		if g.Bound != nil {
			row.Cells[i].share(g.Bound.BaselineShare)
		}
	}
	for _, r := range g.Rows {
		i := h.column(r.Target)
		if i < 0 {
			continue
		}
		cell := &row.Cells[i]
		cell.measured(r.TargetMedian, g.Unit)
		cell.compared(r)
		if marks != nil {
			cell.Marks = marks(r)
		}
		if axis != nil {
			bar := forestInterval(r, 0)
			bar.Caption = chart.Caption{} // the cell says it all
			cell.Bar = axis.Row(bar)
		}
	}
}

func (h *hero) column(name string) int {
	return slices.IndexFunc(h.Columns, func(c heroColumn) bool { return c.Name == name })
}

func (c *heroCell) measured(median compare.Number, u unit.Unit) {
	c.Number, c.Unit, _ = strings.Cut(format(median, u), " ")
}

func (c *heroCell) share(of compare.Number) {
	if of.Known() {
		c.Share = fmt.Sprintf("%.0f %% of node to node", of*100)
	}
}

func (c *heroCell) compared(r compare.Row) {
	c.Change, c.Range, c.Word, c.Mark = change(r.Change), interval(r.CI), word(r), mark(r)
	if r.Shift != nil {
		c.Change, c.Range = "no ratio", difference(r)
	}
	if r.Verdict == compare.Undecided && r.BlocksNeeded > 0 {
		c.Needed = compare.Roughly(r.BlocksNeeded)
	}
}
