package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// fewLines are as many as leave room for all else that an answer has on a terminal of 24 lines.
const fewLines = 14

// gridGap stands before each column of a grid but the first.
const gridGap = 2

// gridWidth is the width of all columns of a grid but the first.
func (h hero) gridWidth(intervals bool) int {
	width := gridGap + briefValue + len(" ~ ") + briefChange
	if intervals {
		width += briefInterval + 1
	}
	return briefValue + (len(h.Columns)-1)*width
}

// grid writes a line for each case, below the name of what it is about, and columns for all targets, with intervals
// where there is room for them.
func (t *textReport) grid(c compare.Comparison, h hero, name int) {
	intervals := false
	if wide := t.width() - h.gridWidth(true); wide >= leastName {
		name, intervals = wide, true
	}
	name = min(name, 36)
	head := strings.Repeat(" ", name) + prose.Right(prose.Cut(prose.Plain(h.Columns[0].Short), briefValue), briefValue)
	width := (h.gridWidth(intervals) - briefValue) / (len(h.Columns) - 1)
	for _, column := range h.Columns[1:] {
		short := prose.Right(prose.Cut(prose.Plain(column.Short), width-gridGap), briefValue)
		head += strings.Repeat(" ", gridGap) + prose.Left(short, width-gridGap)
	}
	t.Line(t.style("1", strings.TrimRight(head, " ")))
	t.byCase(h, name, func(cells []heroCell) string {
		line := prose.Right(shortText(cells[0]), briefValue)
		for _, cell := range cells[1:] {
			line += strings.Repeat(" ", gridGap) + t.gridCell(cell, intervals)
		}
		return strings.TrimRight(line, " ")
	})
	t.Line("")
	t.faint(signs(c, h) + ".")
}

// gridCell is a value with the sign of its verdict, its change and perhaps the interval.
func (t *textReport) gridCell(c heroCell, interval bool) string {
	text, code := prose.Right(shortText(c), briefValue), verdictCodes[c.Mark]
	if c.Word == "" {
		return text + strings.Repeat(" ", len(" ~ ")+briefChange)
	}
	text += " " + t.style(code, sign(c.Mark)+" "+prose.Left(c.Change, briefChange))
	if interval {
		text += " " + t.style("2", prose.Left(shortRange(c), briefInterval))
	}
	return text
}

// signs says what the signs before changes mean.
func signs(c compare.Comparison, h hero) string {
	var baselines []string
	for _, column := range h.Columns {
		if column.Note == "baseline" {
			baselines = append(baselines, column.Short)
		}
	}
	return fmt.Sprintf("▲ better, ▼ worse, = equivalent within ±%.3g %%, ~ undecided, each against %s",
		c.Delta*100, prose.Enumerate(baselines))
}
