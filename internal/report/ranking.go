package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// fewTargets are as many as a brief table has lines for in every case.
const fewTargets = 4

// rankedValue is the width of a value with its verdict, and of the heading above it.
const rankedValue = briefValue + 2

// ranking writes a line for each target and a column for each case, in as many tables as the width asks for. Letters
// stand behind values where all targets are compared with each other.
func (t *textReport) ranking(c compare.Comparison, h hero) {
	name, letters := 0, lettersOf(c)
	for _, column := range h.Columns {
		name = max(name, prose.Width(prose.Plain(column.Short)))
	}
	name = min(name, 24)
	width := 2 + rankedValue
	for _, l := range letters {
		width = max(width, 2+rankedValue+prose.Width(l))
	}
	each := max((t.width()-name)/width, 1)
	for rest := h.Rows; len(rest) > 0; rest = rest[min(each, len(rest)):] {
		t.rank(h.Columns, rest[:min(each, len(rest))], letters, name, width)
	}
	key := fmt.Sprintf("▲ better, ▼ worse, = equivalent within ±%.3g %%, ~ undecided, each against %s",
		c.Delta*100, h.Columns[0].Short)
	if len(letters) > 0 {
		key += "; targets that share a letter cannot be told apart"
	}
	t.faint(key + ".")
}

// rank is one table of the ranking.
func (t *textReport) rank(columns []heroColumn, rows []heroRow, letters map[[3]string]string, name, width int) {
	var heads [][]string
	lines := 0
	for _, row := range rows {
		head := append(prose.Wrap(prose.Plain(row.Subject), width-2), prose.Cut(prose.Plain(row.Quantity), width-2))
		heads, lines = append(heads, head), max(lines, len(head))
	}
	for i := range lines {
		line := strings.Repeat(" ", name)
		for _, head := range heads {
			text := ""
			if at := i - lines + len(head); at >= 0 {
				text = head[at]
			}
			line += "  " + prose.Left(text, width-2)
		}
		t.Line(t.style("1", strings.TrimRight(line, " ")))
	}
	for i, column := range columns {
		line := prose.Left(prose.Cut(prose.Plain(column.Short), name), name)
		for _, row := range rows {
			cell := row.Cells[i]
			mark := " "
			if cell.Word != "" {
				mark = t.style(verdictCodes[cell.Mark], sign(cell.Mark))
			}
			letter := letters[[3]string{row.Case, row.Metric, column.Name}]
			line += "  " + prose.Right(shortText(cell), briefValue) + " " + mark + prose.Left(letter, width-2-rankedValue)
		}
		t.Line(strings.TrimRight(line, " "))
	}
	t.Line("")
}

// lettersOf are those of the groups of targets that cannot be told apart, by case, metric and target.
func lettersOf(c compare.Comparison) map[[3]string]string {
	letters := map[[3]string]string{}
	for _, g := range c.Groups {
		for _, m := range g.Members {
			letters[[3]string{g.Case, g.Metric, m.Target}] = m.Letters
		}
	}
	return letters
}
