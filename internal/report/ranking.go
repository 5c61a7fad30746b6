package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
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

// casesPerRanking is the number of cases side by side in a page.
const casesPerRanking = 4

// A ranking is the answer with a row for each target, the best in the first case first, and a column for each case. If
// all pairs were compared, the reader chooses the baseline.
type ranking struct {
	File   string
	Tables []rankingTable
	Rest   string // note about cases that are left out
	// Baselines are the indices of the targets that can be chosen, the experiment's baseline first; nil without a
	// choice.
	Baselines []int
	Letters   bool // whether targets have letters of groups
}

// legend explains the signs of the ranking.
func (r ranking) legend(c compare.Comparison) string {
	text := "Lines are sorted by the first case, the best first. Bars are medians, and the line over a bar spans the " +
		"quartiles of the runs. Triangles point up for better and down for worse, squares are equivalent within " +
		fmt.Sprintf("±%.3g %%, hollow circles undecided. ", c.Delta*100)
	if r.Letters {
		text += "Targets that share a letter in a case cannot be distinguished; ★ marks those that none is known to be " +
			"better than. "
	}
	if len(r.Baselines) > 0 {
		return text + "Choose a target to see all changes against it."
	}
	return text + "Changes are against " + differsFrom(c) + "."
}

// A rankingTable has at most casesPerRanking cases.
type rankingTable struct {
	Heads []pair // cases in plain words, with their metrics
	Lines []rankingLine
}

type rankingLine struct {
	At         int // index of the target
	Name, Note string
	Cells      []rankingCell
}

// A rankingCell is a target's value with its bar, and its comparisons with each baseline that can be chosen.
type rankingCell struct {
	answerCell
	Head    string
	Letters string
	Best    bool // whether it shares a letter with the best target, unless all targets do
	Against []rankingChange
}

type rankingChange struct {
	At int // index of the baseline
	answerCell
}

// ranking returns the ranking of rows of the matrix. If all pairs were compared, it has the changes against every
// target.
func (b *builder) ranking(h answer, rows []answerRow) ranking {
	shown := firstRows(rows)
	r := ranking{File: h.File, Rest: shown.Rest()}
	compared := map[[4]string]compare.Row{}
	for _, row := range b.in.Comparison.Comparisons {
		compared[[4]string{row.Case, row.Metric, row.Baseline, row.Target}] = row
		if b.in.Experiment.Design.AllPairs {
			compared[[4]string{row.Case, row.Metric, row.Target, row.Baseline}] = row.Reversed(b.in.Comparison.Delta)
		}
	}
	var order []int
	for at := range h.Columns {
		order = append(order, at)
		if b.in.Experiment.Design.AllPairs {
			r.Baselines = append(r.Baselines, at)
		}
	}
	for i, chunk := range slices.Collect(slices.Chunk(shown.Rows, casesPerRanking)) {
		var cells [][]rankingCell // by case and target
		t := rankingTable{}
		for _, row := range chunk {
			t.Heads = append(t.Heads, pair{row.Title(), row.Sub})
			cells = append(cells, b.rankingCells(h, row, compared))
		}
		if i == 0 {
			b.sortBy(order, chunk[0], h)
		}
		for _, at := range order {
			line := rankingLine{At: at, Name: h.Columns[at].Short, Note: h.Columns[at].Note}
			for _, column := range cells {
				line.Cells = append(line.Cells, column[at])
				r.Letters = r.Letters || column[at].Letters != ""
			}
			t.Lines = append(t.Lines, line)
		}
		r.Tables = append(r.Tables, t)
	}
	return r
}

// sortBy sorts targets by their medians in a case, the best first and those without a median last.
func (b *builder) sortBy(order []int, row answerRow, h answer) {
	m := b.resultOf(row)
	worth := func(at int) float64 {
		median, has := m.Medians[h.Columns[at].Name]
		switch {
		case !has || !median.Known():
			return math.Inf(1)
		case m.Better == metric.Higher:
			return -float64(median)
		}
		return float64(median)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(worth(x), worth(y)) })
}

// resultOf returns the result of a row's case and metric.
func (b *builder) resultOf(row answerRow) caseResult {
	i := slices.IndexFunc(b.results, func(m caseResult) bool { return m.Case == row.Case && m.Metric == row.Metric })
	if i < 0 {
		return caseResult{}
	}
	return b.results[i]
}

// group returns the grouping of a case and metric, without members if there is none.
func (b *builder) group(name, metricName string) compare.Group {
	for _, g := range b.in.Comparison.Groups {
		if g.Case == name && g.Metric == metricName {
			return g
		}
	}
	return compare.Group{}
}

// rankingCells returns the cells of a case, by target. Bars show medians from 0, with the quartiles of the runs.
func (b *builder) rankingCells(h answer, row answerRow, compared map[[4]string]compare.Row) []rankingCell {
	m, boxes, letters := b.resultOf(row), map[string]compare.Box{}, map[string]string{}
	g := b.group(row.Case, row.Metric)
	best := bestTargets(g)
	for _, member := range g.Members {
		letters[member.Target] = member.Letters
	}
	longest := 0.0
	for _, x := range b.boxes[row.Case] {
		if x.Metric == row.Metric {
			boxes[x.Target] = x
			longest = max(longest, float64(x.Q3))
		}
	}
	for _, median := range m.Medians {
		longest = max(longest, float64(median))
	}
	var cells []rankingCell
	for i, column := range h.Columns {
		c := rankingCell{answerCell: row.Cells[i], Head: row.Title()}
		c.Letters = letters[column.Name]
		c.Best = best[column.Name]
		if median, has := m.Medians[column.Name]; has && median.Known() && longest > 0 {
			lo, hi := math.NaN(), math.NaN()
			if x, drawn := boxes[column.Name]; drawn {
				lo, hi = float64(x.Q1)/longest, float64(x.Q3)/longest
			}
			c.Bar = chart.InlineRange(float64(median)/longest, lo, hi)
		}
		for at, baseline := range h.Columns {
			if r, has := compared[[4]string{row.Case, row.Metric, baseline.Name, column.Name}]; has {
				change := rankingChange{At: at}
				change.setComparison(r)
				c.Against = append(c.Against, change)
			}
		}
		cells = append(cells, c)
	}
	return cells
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

// lettersOf returns the letters of the groups of indistinguishable targets, by case, metric and target.
func lettersOf(c compare.Comparison) map[[3]string]string {
	letters := map[[3]string]string{}
	for _, g := range c.Groups {
		for _, m := range g.Members {
			letters[[3]string{g.Case, g.Metric, m.Target}] = m.Letters
		}
	}
	return letters
}
