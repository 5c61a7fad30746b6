package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An answer is the matrix of the first screen: a row for each case in plain words, a column for each target. The report
// and its figures show it.
type answer struct {
	File    string // name of the figure's file
	Columns []answerColumn
	Rows    []answerRow
	Folded  []answerRow // exploratory cases, if there are primary ones
}

type answerColumn struct {
	Name  string // full name of the target
	Short string // without the prefix that all targets share
	Note  string // "baseline", "A/A control" or ""
}

type answerRow struct {
	Case, Metric      string
	Better            metric.Better
	Subject, Quantity string // "Pod → pod, other node"; "latency"
	Sub               string // "pod-pod/other/tcp-rr p50, lower is better"
	Reference         string // node-to-node reference, and what targets reach of it
	Cells             []answerCell
}

// An answerCell is the value of a target. If it is compared, it has a change, an interval and a verdict.
type answerCell struct {
	Median        compare.Number // missing if it was not measured
	Number, Unit  string         // the median; if it is missing, Number has the reason and Unit is empty
	Share         string         // share of the node-to-node reference
	Change, Range string
	Word          string
	Why           string // reason for which it is undecided although its interval excludes zero
	Mark          doc.Mark
	Directions    string // of a throughput: "12.0/11.0 Gbit/s TX/RX"
	Needed        int    // estimated number of blocks that would decide; 0: no estimate
	Bar           template.HTML
	Marks         []finding
}

// Value returns the median with its unit.
func (c answerCell) Value() string { return strings.TrimSpace(c.Number + " " + c.Unit) }

// newAnswer returns the matrix of a comparison; without an axis it has no bars.
func newAnswer(in Input, all []group, axis *chart.Forest) answer {
	c := in.Comparison
	h := answer{File: "answer", Columns: answerColumns(c)}
	primary, _ := partition(all, result.Primary)
	exploratory, _ := partition(all, result.Exploratory)
	findings := newFindings(c)
	h.Rows, h.Folded = h.rows(c, primary, axis, findings), h.rows(c, exploratory, axis, findings)
	if len(h.Rows) == 0 {
		h.Rows, h.Folded = h.Folded, nil
	}
	return h
}

// Only returns the matrix of exploratory cases with these rows.
func (h answer) Only(rows []answerRow) answer {
	return answer{File: h.File + "-exploratory", Columns: h.Columns, Rows: rows}
}

// answerColumns returns the columns, the baseline first. With several experiments each target may have its own
// baseline.
func answerColumns(c compare.Comparison) []answerColumn {
	names := columns(c)
	short := prose.Unprefixed(names)
	is := map[string]bool{c.Baseline: true}
	for _, name := range c.Against() {
		is[name] = true
	}
	var list []answerColumn
	for _, name := range names {
		column := answerColumn{Name: name, Short: short[name]}
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

// rows returns a row for each case and metric, which may have several groups, one for each baseline. A target compared
// with several baselines shows the comparison with its main baseline.
func (h *answer) rows(c compare.Comparison, list []group, axis *chart.Forest, findings findingList) []answerRow {
	var rows []answerRow
	at, against := index[[2]string]{}, c.Against()
	for _, g := range list {
		g.Rows = slices.DeleteFunc(slices.Clone(g.Rows), func(r compare.Row) bool {
			return r.Baseline != against[r.Target]
		})
		if len(g.Rows) == 0 {
			continue
		}
		i, first := at.add([2]string{g.Case, g.Metric})
		if first {
			rows = append(rows, h.row(g))
		}
		h.fill(&rows[i], g, axis, findings)
	}
	return rows
}

// row returns a row with empty cells.
func (h *answer) row(g group) answerRow {
	row := answerRow{Case: g.Case, Metric: g.Metric, Better: g.Better,
		Sub: g.Case + " " + g.Metric + ", " + betterText(g.Better)}
	row.Subject, row.Quantity = subjectAndQuantity(g.Planned, g.Metric)
	row.Reference = g.reference()
	for _, column := range h.Columns {
		row.Cells = append(row.Cells, answerCell{Median: compare.Missing(), Number: missingCell(g, column.Name),
			Directions: g.Directions[column.Name]})
	}
	return row
}

// subjectAndQuantity returns the subject of a case in plain words, or its name if it has none, and its metric in plain
// words.
func subjectAndQuantity(planned result.Case, metric string) (subject, quantity string) {
	if planned.Words.Quantity != "" && metric == planned.Metric {
		metric = planned.Words.Quantity
	}
	return cmp.Or(planned.Words.Subject, planned.Name), metric
}

// fill sets the cells of a row from a group.
func (h *answer) fill(row *answerRow, g group, axis *chart.Forest, findings findingList) {
	if i := h.column(g.Baseline); i >= 0 {
		row.Cells[i].setMedian(g.BaselineMedian, g.Unit)
		if g.Bound != nil {
			row.Cells[i].setShare(g.Bound.BaselineShare)
		}
	}
	for _, r := range g.Rows {
		i := h.column(r.Target)
		if i < 0 {
			continue
		}
		cell := &row.Cells[i]
		cell.setMedian(r.TargetMedian, g.Unit)
		cell.setComparison(r)
		cell.Marks = findings.marks(r.Case, r.Target, r.Baseline, r.Metric)
		if axis != nil {
			cell.Bar = axis.Row(forestInterval(r))
		}
	}
}

// column returns the index of a target, or -1.
func (h *answer) column(name string) int {
	return slices.IndexFunc(h.Columns, func(c answerColumn) bool { return c.Name == name })
}

// setMedian sets the value of a cell.
func (c *answerCell) setMedian(median compare.Number, u unit.Unit) {
	c.Median = median
	c.Number, c.Unit, _ = strings.Cut(format(median, u), " ")
}

// setShare sets the share of the node-to-node reference, if it is known.
func (c *answerCell) setShare(share compare.Number) {
	if share.Known() {
		c.Share = fmt.Sprintf("%.0f %% of node to node", share*100)
	}
}

// alone returns the cell without a comparison.
func (c answerCell) alone() answerCell {
	return answerCell{Median: c.Median, Number: c.Number, Unit: c.Unit, Directions: c.Directions, Marks: c.Marks}
}

// setComparison sets the change, interval and verdict of a cell.
func (c *answerCell) setComparison(r compare.Row) {
	c.Change, c.Range, c.Word, c.Mark = change(r.Change), interval(r.CI), verdictWord(r), mark(r)
	c.Why = whyUndecided(r)
	if r.Shift != nil {
		c.Change, c.Range = "no ratio", difference(r)
	}
	if r.Verdict == compare.Undecided && r.BlocksNeeded > 0 {
		c.Needed = compare.Roughly(r.BlocksNeeded)
	}
}
