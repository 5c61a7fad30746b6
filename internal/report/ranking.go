package report

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// maxMatrixTargets is the largest number of columns of a matrix: the baseline and four others. More targets, and all
// pairs of three or more, are ranked.
const maxMatrixTargets = 5

// ranked reports whether the answer has a row for each target instead of a column.
func (h answer) ranked(in Input) bool {
	return len(h.Columns) > maxMatrixTargets || in.Experiment.Design.AllPairs && len(h.Columns) > 2
}

// ranking returns the answer with a row for each target, the best in the first case first, and a column for each case.
// If all pairs were compared, the reader of a page chooses the baseline.
func (h answer) ranking(in Input) doc.Element {
	c := in.Comparison
	rows := map[[4]string]compare.Row{} // by case, metric, baseline and target
	for _, r := range c.Comparisons {
		rows[[4]string{r.Case, r.Metric, r.Baseline, r.Target}] = r
		if in.Experiment.Design.AllPairs {
			rows[[4]string{r.Case, r.Metric, r.Target, r.Baseline}] = r.Reversed(c.Delta)
		}
	}
	if !in.Experiment.Design.AllPairs {
		return h.rankedTable(c, c.Against(), rows)
	}
	choice := doc.Choice{ID: h.File, Label: "Changes against"}
	for i, baseline := range h.Columns {
		against := map[string]string{}
		for _, column := range h.Columns {
			against[column.Name] = baseline.Name
		}
		table := h.rankedTable(c, against, rows)
		if i > 0 {
			table.Name = "" // the file has the changes against the first
		}
		choice.Options = append(choice.Options, doc.Option{Name: baseline.Short, Table: table})
	}
	return choice
}

// rankedTable returns the ranking with the changes against a baseline for each target.
func (h answer) rankedTable(c compare.Comparison, against map[string]string, rows map[[4]string]compare.Row) doc.Table {
	t := doc.Table{Name: h.File, Apart: true, Lead: true, Legend: h.rankingLegend(c, against),
		Drawn: "Sorted by the first case. Bars are medians, and the line over a bar spans the quartiles of the " +
			"runs. None is known to be better than a target with ★."}
	for _, at := range h.bestFirst() {
		t.Rows = append(t.Rows, doc.Row{Head: h.Columns[at].Short, Sub: h.Columns[at].Note})
	}
	for _, r := range h.Rows {
		t.Columns = append(t.Columns, doc.Column{Head: r.Subject + " " + r.Quantity, Note: r.Sub})
		g := groupOf(c, r.Case, r.Metric)
		best, bar := bestTargets(g), r.bars(c)
		for i, at := range h.bestFirst() {
			name, cell := h.Columns[at].Name, r.Cells[at].alone()
			if row, compared := rows[[4]string{r.Case, r.Metric, against[name], name}]; compared {
				cell.setComparison(row)
			}
			cell.Bar = bar(cell.Median, name)
			shown := cell.cell()
			shown.Best = best[name]
			for _, m := range g.Members {
				if m.Target == name {
					shown.Letters = m.Letters
				}
			}
			t.Rows[i].Cells = append(t.Rows[i].Cells, shown)
		}
	}
	return t
}

// rankingLegend explains the signs of a ranking.
func (h answer) rankingLegend(c compare.Comparison, against map[string]string) string {
	var baselines []string
	for _, column := range h.Columns {
		if name := against[column.Name]; name != "" {
			baselines = append(baselines, h.Columns[h.column(name)].Short)
		}
	}
	legend := signs(c, distinct(baselines))
	if slices.ContainsFunc(h.Rows, func(r answerRow) bool { return len(groupOf(c, r.Case, r.Metric).Members) > 0 }) {
		legend += "; targets that share a letter cannot be told apart"
	}
	return legend + "."
}

// bestFirst returns the columns by their medians in the first case, the best first and those without a median last.
func (h answer) bestFirst() []int {
	var order []int
	for at := range h.Columns {
		order = append(order, at)
	}
	worth := func(at int) float64 {
		switch median := h.Rows[0].Cells[at].Median; {
		case !median.Known():
			return math.Inf(1)
		case h.Rows[0].Better == metric.Higher:
			return -float64(median)
		default:
			return float64(median)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(worth(x), worth(y)) })
	return order
}

// bars returns a function that draws a median as a bar from 0, with the quartiles of the runs.
func (r answerRow) bars(c compare.Comparison) func(median compare.Number, target string) template.HTML {
	boxes, longest := map[string]compare.Box{}, 0.0
	for _, x := range c.Boxes {
		if x.Case == r.Case && x.Metric == r.Metric {
			boxes[x.Target] = x
			longest = max(longest, float64(x.Q3))
		}
	}
	for _, cell := range r.Cells {
		if cell.Median.Known() {
			longest = max(longest, float64(cell.Median))
		}
	}
	return func(median compare.Number, target string) template.HTML {
		if !median.Known() || longest <= 0 {
			return ""
		}
		lo, hi := math.NaN(), math.NaN()
		if x, drawn := boxes[target]; drawn {
			lo, hi = float64(x.Q1)/longest, float64(x.Q3)/longest
		}
		return chart.InlineRange(float64(median)/longest, lo, hi)
	}
}

// groupOf returns the order of the targets in a case and metric, without members if there is none.
func groupOf(c compare.Comparison, name, metric string) compare.Group {
	for _, g := range c.Groups {
		if g.Case == name && g.Metric == metric {
			return g
		}
	}
	return compare.Group{}
}

// bestTargets returns the targets of a group that no other is known to be better than: each target before them, in the
// order from the best, shares a letter with them. It returns none if that holds for all targets.
func bestTargets(g compare.Group) map[string]bool {
	best := map[string]bool{}
	for i, m := range g.Members {
		if !slices.ContainsFunc(g.Members[:i], func(better compare.Member) bool {
			return !strings.ContainsAny(better.Letters, m.Letters)
		}) {
			best[m.Target] = true
		}
	}
	if len(best) == len(g.Members) {
		return nil
	}
	return best
}
