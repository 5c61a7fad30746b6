package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// answerLines is the largest number of lines of a matrix with which the whole answer fits on 24 lines.
const answerLines = 14

// gridGap is the space before each column of a grid except the first.
const gridGap = 2

// gridWidth returns the width of all columns of a grid except the names.
func (h answer) gridWidth(intervals bool) int {
	width := gridGap + briefValue + len(" ~ ") + briefChange
	if intervals {
		width += briefInterval + 1
	}
	return briefValue + (len(h.Columns)-1)*width
}

// grid writes a line for each case, below its subject, and a column for each target, with intervals if they fit.
func (t *textReport) grid(c compare.Comparison, h answer, name int) {
	intervals := false
	if wide := t.Columns() - h.gridWidth(true); wide >= minNameWidth {
		name, intervals = wide, true
	}
	name = min(name, 36)
	head := strings.Repeat(" ", name) + prose.Right(prose.Cut(prose.Plain(h.Columns[0].Short), briefValue), briefValue)
	width := (h.gridWidth(intervals) - briefValue) / (len(h.Columns) - 1)
	for _, column := range h.Columns[1:] {
		short := prose.Right(prose.Cut(prose.Plain(column.Short), width-gridGap), briefValue)
		head += strings.Repeat(" ", gridGap) + prose.Left(short, width-gridGap)
	}
	t.Line(t.Style("1", strings.TrimRight(head, " ")))
	t.byCase(h, name, func(cells []answerCell) string {
		line := prose.Right(shortText(cells[0]), briefValue)
		for _, cell := range cells[1:] {
			line += strings.Repeat(" ", gridGap) + t.gridCell(cell, intervals)
		}
		return strings.TrimRight(line, " ")
	})
	t.Line("")
	t.Faint(signs(c, h) + ".")
}

// gridCell returns a value with the sign of its verdict, its change and, if wanted, its interval.
func (t *textReport) gridCell(c answerCell, interval bool) string {
	text, code := prose.Right(shortText(c), briefValue), verdictCodes[c.Mark]
	if c.Word == "" {
		return text + strings.Repeat(" ", len(" ~ ")+briefChange)
	}
	text += " " + t.Style(code, verdictSign(c.Mark)+" "+prose.Left(c.Change, briefChange))
	if interval {
		text += " " + t.Style("2", prose.Left(shortRange(c), briefInterval))
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
