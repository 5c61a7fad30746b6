package report

import (
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// manyCases is the number of exploratory cases above which they are folded.
const manyCases = 8

// axis returns the common axis of all comparisons of the page.
func (b *builder) axis() chart.Forest {
	primary, _ := partition(b.groups, result.Primary)
	exploratory, _ := partition(b.groups, result.Exploratory)
	var rows []chart.Interval
	for _, g := range slices.Concat(primary, exploratory) {
		for _, r := range g.Rows {
			rows = append(rows, forestInterval(r))
		}
	}
	return chart.NewForest(rows, b.in.Comparison.Delta)
}

// forests returns the intervals of all comparisons.
func (b *builder) forests(axis chart.Forest) doc.Block {
	planned := "A verdict was planned for these."
	if b.in.Comparison.Paired {
		planned += " Their intervals hold all together."
	}
	return doc.Block{ID: "forest", Title: "Forest plot", Level: doc.Data, Parts: nested(
		b.forest(axis, result.Primary, "Primary comparisons", planned),
		b.forest(axis, result.Exploratory, "Exploratory comparisons", "No verdict was planned for these. Each interval "+
			"is at its own level, so among many some exclude zero by chance; the verdicts are under false discovery rate "+
			"control."))}
}

// forest returns the intervals of the comparisons of a role, without parts if there are none.
func (b *builder) forest(axis chart.Forest, role result.Role, title, about string) doc.Block {
	groups, _ := partition(b.groups, role)
	if len(groups) == 0 {
		return doc.Block{}
	}
	head := "change"
	if b.in.Comparison.Paired {
		head = "paired change"
	}
	table := doc.Table{Name: b.names.unique("forest", string(role)),
		Columns: []doc.Column{{Axis: axis.Axis()}, {Head: head}, {Head: "interval"}, {Head: "verdict", Words: true}}}
	for _, g := range groups {
		name := g.Case + ", " + g.Metric + ", " + betterText(g.Better)
		if g.Baseline != b.in.Comparison.Baseline {
			name += ", against " + g.Baseline
		}
		for _, r := range g.Rows {
			table.Rows = append(table.Rows, doc.Row{Group: name, Head: r.Target, Cells: []doc.Cell{
				{Plot: axis.Row(forestInterval(r))},
				{Text: change(r.Change), Links: links(b.findings.marks(r.Case, r.Target, r.Baseline, r.Metric))},
				{Text: interval(r.CI)}, verdictCell(r),
			}})
		}
		for _, m := range g.Missing {
			table.Rows = append(table.Rows, doc.Row{Group: name, Head: m.Target,
				Cells: []doc.Cell{{Text: "not measured: " + m.Reason}, {}, {}, {}}})
		}
	}
	block := doc.Block{Title: title, About: about, Parts: parts(table)}
	if role == result.Exploratory && len(groups) > manyCases {
		block.Title, block.Level = fmt.Sprintf("%s of %d cases", title, len(groups)), doc.Data
	}
	return block
}

// verdictCell returns a verdict with its mark, and why it is undecided.
func verdictCell(r compare.Row) doc.Cell {
	return doc.Cell{Text: verdictWord(r), Mark: mark(r), Notes: nonEmpty(whyUndecided(r))}
}

// forestInterval returns a comparison as a row of a forest plot.
func forestInterval(r compare.Row) chart.Interval {
	return chart.Interval{Change: float64(r.Change), Lo: r.CI.Lo, Hi: r.CI.Hi, Mark: mark(r),
		Primary: r.Role == result.Primary}
}
