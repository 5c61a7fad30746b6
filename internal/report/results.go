package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// blocks returns the results: the primary cases, then the exploratory ones, medians if nothing is compared, and the
// changes that a ranking leaves out.
func (h answer) blocks(in Input, all []group) []doc.Block {
	c := in.Comparison
	medians, hidden := measured(in)
	for _, role := range []result.Role{result.Primary, result.Exploratory} {
		_, others := partition(all, role)
		hidden += others
	}
	list := []doc.Block{h.block(in), medians}
	if len(h.Folded) > 0 {
		exploratory := h.Only(h.Folded).block(in)
		exploratory.Title, exploratory.Level = "Exploratory", doc.Detail
		exploratory.Count = unit.Plural(len(h.Folded), "exploratory case")
		exploratory.About = "No verdict was planned for these; false discoveries are controlled."
		list = append(list, exploratory)
	}
	if h.ranked(in) {
		list = append(list, comparisons(all))
	}
	if len(all)+len(c.Medians) == 0 {
		list = append(list, doc.Block{Parts: []doc.Element{doc.Paragraph{Text: nothingToCompareText, Tone: doc.Warning}}})
	}
	if hidden > 0 {
		list = append(list, doc.Block{Level: doc.Detail, Count: unit.Plural(hidden, "further metric"),
			Parts: faint(fmt.Sprintf("%d more metrics of these cases are in the HTML report and in -o json.", hidden))})
	}
	return present(list...)
}

// block returns the matrix with the legend of its signs: ranked, with a row for each target, or with a row for each
// case.
func (h answer) block(in Input) doc.Block {
	if len(h.Rows) == 0 {
		return doc.Block{}
	}
	legend := signs(in.Comparison, h)
	table := h.table()
	if letters := lettersOf(in.Comparison); h.ranked(in) {
		table = h.rankedTable(letters)
		if len(letters) > 0 {
			legend += "; targets that share a letter cannot be told apart"
		}
	}
	table.Legend = legend + "."
	return doc.Block{Parts: []doc.Element{table}}
}

// table returns a row for each case, and a column for each target.
func (h answer) table() doc.Table {
	table := doc.Table{Name: h.File}
	for _, c := range h.Columns {
		table.Columns = append(table.Columns, doc.Column{Head: c.Short, Note: c.Note})
	}
	for _, r := range h.Rows {
		row := doc.Row{Group: r.Subject, Head: r.Quantity, Sub: strings.Join(nonEmpty(r.Sub, r.Reference), "; ")}
		for _, c := range r.Cells {
			row.Cells = append(row.Cells, c.cell())
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// cell returns a cell with its change, interval and verdict, if it has a comparison.
func (c answerCell) cell() doc.Cell {
	cell := doc.Cell{Text: c.Value(), Notes: nonEmpty(c.Directions)}
	if c.Word == "" {
		return cell
	}
	cell.Mark = doc.Mark(c.Mark)
	cell.Parts = []string{c.Change, strings.TrimSuffix(c.Range, " %"), c.Word}
	if c.Why != "" {
		cell.Notes = append(cell.Notes, "undecided: "+c.Why)
	}
	return cell
}

// rankedTable returns a row for each target, and a column for each case, with the letters of groups.
func (h answer) rankedTable(letters map[[3]string]string) doc.Table {
	table := doc.Table{Name: h.File, Apart: true}
	for _, r := range h.Rows {
		table.Columns = append(table.Columns, doc.Column{Head: r.Subject + " " + r.Quantity, Note: r.Sub})
	}
	for i, c := range h.Columns {
		row := doc.Row{Head: c.Short}
		for _, r := range h.Rows {
			row.Cells = append(row.Cells, doc.Cell{Text: r.Cells[i].Value(), Mark: doc.Mark(r.Cells[i].Mark),
				Letters: letters[[3]string{r.Case, r.Metric, c.Name}]})
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// comparisons returns the change of each target against each that it is compared with.
func comparisons(all []group) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "change"}}}
	for _, g := range all {
		if !g.Main && g.Role != result.Primary {
			continue
		}
		for _, r := range g.Rows {
			var cell answerCell
			cell.setComparison(r)
			change := cell.cell()
			change.Text, change.Parts = change.Parts[0], change.Parts[1:]
			table.Rows = append(table.Rows, doc.Row{Group: fmt.Sprintf("%s, %s, %s", g.Case, g.Metric, betterText(g.Better)),
				Head: r.Target + " against " + r.Baseline, Cells: []doc.Cell{change}})
		}
	}
	return doc.Block{Title: "Changes", Level: doc.Detail, Count: unit.Plural(len(table.Rows), "change"),
		Parts: parts(table)}
}

// reference returns the node-to-node reference of a group, and the shares that targets reach; empty if it has none.
func (g group) reference() string {
	b := g.Bound
	if b == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s (%s)%s", referenceName, g.references(), b.Case, exceededText(*b))
	var shares []string
	if b.BaselineShare.Known() {
		shares = append(shares, fmt.Sprintf("%s %.0f %%", g.Baseline, b.BaselineShare*100))
	}
	for _, r := range g.Rows {
		if u := r.UpperBound; u != nil && u.TargetShare.Known() {
			shares = append(shares, fmt.Sprintf("%s %.0f %%", r.Target, u.TargetShare*100))
		}
	}
	if len(shares) > 0 {
		text += "; of that: " + strings.Join(shares, ", ")
	}
	return text
}

// signs returns the legend of the signs before changes.
func signs(c compare.Comparison, h answer) string {
	var baselines []string
	for _, column := range h.Columns {
		if column.Note == "baseline" {
			baselines = append(baselines, column.Short)
		}
	}
	return fmt.Sprintf("▲ better, ▼ worse, = equivalent within ±%.3g %%, ~ undecided, each against %s",
		c.Delta*100, prose.Enumerate(baselines))
}
