package page

import (
	"cmp"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// unknownBase is the reason for not reading a change without the figures that it is about.
const unknownBase = "a change of which the table does not say from what"

// A spot is a cell by row and column.
type spot struct{ row, column int }

// readChanges adds the claims in columns of changes, and records those that cannot be read.
func (t *tableRuns) readChanges(figures []int) {
	for _, c := range t.with(isChange) {
		for row, r := range t.grid.rows {
			text := r.cell(c)
			if role := roleOf(t.labels[row]); missing(text) || !t.byRow && (role == isParameter || role == isCount) {
				continue
			}
			reason := unknownBase
			if from, to, known := t.compared(figures, row, c); known {
				if from == to {
					continue
				}
				reason = t.addChange(from, to, c, text)
			}
			_, problem := t.style.peek(text)
			if reason != "" && problem != noFigure {
				t.addUnread(r.line, t.columns[c].text, text, cmp.Or(problem, reason))
			}
		}
	}
}

// compared returns the two figures that a change in a row is about: those of the only two columns before it, or, where
// rows are targets and the first of them has no change, those of the first row and of its own in the nearest column in
// which the first is not zero.
func (t *tableRuns) compared(figures []int, row, column int) (from, to spot, known bool) {
	var before []int
	for _, i := range figures {
		first, reason := t.style.peek(t.grid.rows[0].cell(i))
		if zero := reason == "" && first[0].number == 0; i < column && !(t.byRow && zero) {
			before = append(before, i)
		}
	}
	switch {
	case t.byRow && len(before) > 0 && t.isBaseline(column):
		last := before[len(before)-1]
		return spot{0, last}, spot{row, last}, true
	case !t.byRow && !t.oneTarget && len(before) == 2:
		return spot{row, before[0]}, spot{row, before[1]}, true
	}
	return spot{}, spot{}, false
}

// isBaseline reports whether the first row has no change in a column: a placeholder, zero, or the whole.
func (t *tableRuns) isBaseline(column int) bool {
	parsed, reason := t.style.peek(t.grid.rows[0].cell(column))
	return reason == noFigure || len(parsed) == 1 && (parsed[0].number == 0 || parsed[0].isWhole())
}

// isWhole reports whether a figure is 100 % or a factor of one.
func (f figure) isWhole() bool {
	return f.factor && f.number == 1 || f.unit == unit.Ratio && f.number == 100
}

// addChange adds a claimed change between two figures. If it cannot, the reason is a phrase.
func (t *tableRuns) addChange(from, to spot, column int, text string) (reason string) {
	parsed, reason := t.parseCell(t.grid.rows[to.row].line, text)
	switch {
	case reason != "":
		return reason
	case len(parsed) > 1:
		return "several changes in a cell"
	}
	f := parsed[0]
	change, digit := f.number/100, f.digit/100
	switch {
	case f.factor:
		change, digit = f.number-1, f.digit
	case f.unit != unit.Ratio && (f.unit != "" || t.columns[column].measure.unit != unit.Ratio):
		return "a difference, not a change in percent"
	}
	first, _ := t.style.peek(t.grid.rows[0].cell(column))
	if t.byRow && !f.factor && len(first) == 1 && first[0].isWhole() {
		change--
	}
	p, against := t.position(from.row, from.column), t.position(to.row, to.column)
	values, others := t.valuesAt(from), t.valuesAt(to)
	switch {
	case len(values) == 0 || len(others) == 0 || values[0].Metric != others[0].Metric || values[0].Unit != others[0].Unit:
		return unknownBase
	case f.factor && values[0].Unit == unit.Second:
		return unknownBase // of a time, a factor may be that of the time or of the speed
	}
	name := values[0].Metric + audit.ChangeSuffix
	facts := factsWithValues(audit.FactPlace, t.place(t.grid.rows[to.row].line), audit.FactTable, t.name, audit.FactRow,
		p.label.short, audit.FactAgainst, against.target)
	t.runs = append(t.runs, result.Run{Case: p.measure.caseOf(p.label.text, values, t.families).Name, Target: p.target,
		Facts:  append(facts, digitFact(name, digit)),
		Values: []result.Value{{Metric: name, Unit: unit.Ratio, Number: change}}})
	return ""
}

// valuesAt returns the values in a cell with one figure; nil for other cells.
func (t *tableRuns) valuesAt(s spot) []result.Value {
	figures, reason := t.style.peek(t.grid.rows[s.row].cell(s.column))
	if reason != "" || len(figures) > 1 {
		return nil
	}
	values, err := t.position(s.row, s.column).measure.values(figures)
	if err != nil {
		return nil
	}
	return values
}
