package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Widths of the columns of a brief table. The rest of a line, at its left, is for names.
const (
	briefValue    = 11
	briefChange   = 8
	briefInterval = 15
	briefWord     = 12
	briefIndent   = 2
)

// minNameWidth is the narrowest column of names; with less space, values get their own lines.
const minNameWidth = 16

// brief writes the answer that fits a terminal: headline, matrix, and caveats.
func (t *textReport) brief(in Input) {
	c := in.Comparison
	t.Paragraph("", "", c.Headline+".")
	t.Faint(c.Summary)
	if !c.Paired {
		t.Paragraph("", "", unpairedText)
	}
	for _, s := range sessionChanges(c) {
		t.Paragraph("! ", "  ", s)
	}
	t.Line("")
	t.Block(gates(c))
	all := groups(in)
	h := newAnswer(in, all, nil, nil)
	t.matrix(in, h)
	medians, hidden := measured(in)
	t.Block(medians)
	if len(all) == 0 && len(c.Medians) == 0 {
		t.Paragraph("", "", nothingToCompareText)
		t.Line("")
	}
	t.blocks(conclusionSections(in))
	if text := blocksNeededText(h); text != "" {
		t.Faint(text)
	}
	if text := causesSentence(in); text != "" {
		t.Faint(text)
	}
	t.blocks(sections(in))
	t.blocks(caveats(in))
	if more := t.omittedText(in, all, h, hidden); more != "" {
		t.Faint(more)
	}
	t.Faint(scopeLine(in))
}

// matrix writes the table of results in one of four layouts: a line for each target if they are ranked; a column for
// each target if there is enough space and lines would not fit a screen; two targets side by side if there is enough
// space; otherwise a line for each target below its case.
func (t *textReport) matrix(in Input, h answer) {
	if len(h.Rows) == 0 {
		return
	}
	c := in.Comparison
	if h.ranked(in) {
		t.ranking(c, h)
		return
	}
	if name := t.Columns() - h.gridWidth(false); len(h.Columns) > 2 && name >= minNameWidth &&
		len(h.Rows)*(len(h.Columns)+1) > answerLines {
		t.grid(c, h, name)
		return
	}
	const values = 2*(briefValue+1) + briefChange + 1 + briefInterval + 1 + briefWord
	if name := t.Columns() - values; h.twoShortColumns() && name >= minNameWidth {
		t.sideBySide(h, min(name, 36))
	} else {
		t.byTarget(h, min(t.Columns()-values+briefValue+1, 36))
	}
	t.Line("")
}

// twoShortColumns reports whether there are two targets whose names fit above their values.
func (h answer) twoShortColumns() bool {
	long := func(c answerColumn) bool { return prose.Width(prose.Plain(c.Short)) > briefValue }
	return len(h.Columns) == 2 && !slices.ContainsFunc(h.Columns, long)
}

// sideBySide writes a line for each case, below its subject.
func (t *textReport) sideBySide(h answer, name int) {
	var heads []string
	for _, c := range h.Columns {
		heads = append(heads, prose.Right(prose.Plain(c.Short), briefValue))
	}
	t.Line(t.Style("1", strings.Repeat(" ", name)+strings.Join(heads, " ")) +
		t.Style("2", " "+prose.Right("change", briefChange)+" "+prose.Left("interval, %", briefInterval)))
	t.byCase(h, name, func(cells []answerCell) string {
		return prose.Right(shortText(cells[0]), briefValue) + " " + t.cell(cells[1])
	})
}

// byCase writes a line for each case, below its subject. The quantity stands in the column of names, or above if that
// is too narrow.
func (t *textReport) byCase(h answer, name int, values func([]answerCell) string) {
	before := ""
	for _, row := range h.Rows {
		if row.Subject != before {
			t.Paragraph("", "", row.Subject)
		}
		before = row.Subject
		label := strings.Repeat(" ", briefIndent) + prose.Plain(row.Quantity)
		if prose.Width(label) > name-1 {
			t.Line(label)
			label = ""
		}
		t.Line(prose.Left(label, name) + values(row.Cells))
		var reasons []string
		for _, c := range row.Cells {
			reasons = append(reasons, c.Why)
		}
		t.why(prose.Enumerate(distinct(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }))))
	}
}

// byTarget writes a line for each target, below the case.
func (t *textReport) byTarget(h answer, name int) {
	for _, row := range h.Rows {
		t.Paragraph("", "  ", row.Title())
		for i, cell := range row.Cells {
			label := strings.Repeat(" ", briefIndent) + prose.Plain(h.Columns[i].Short)
			if prose.Width(label) > name-1 {
				t.Paragraph("  ", "  ", h.Columns[i].Short)
				label = ""
			}
			t.Line(prose.Left(label, name) + t.cell(cell) + t.Style("2", baselineNote(h.Columns[i], cell)))
			t.why(cell.Why)
		}
	}
}

// baselineNote returns the note after a value without a comparison, such as "baseline".
func baselineNote(c answerColumn, cell answerCell) string {
	if cell.Word != "" || c.Note == "" || cell.Unit == "" {
		return ""
	}
	return " " + c.Note
}

// cell returns a value with its change, interval and verdict, if it has a comparison.
func (t *textReport) cell(c answerCell) string {
	text := prose.Right(shortText(c), briefValue)
	if c.Word == "" {
		return text
	}
	code := verdictCodes[c.Mark]
	return text + " " + t.Style(code, prose.Right(c.Change, briefChange)) + " " +
		t.Style("2", prose.Left(shortRange(c), briefInterval)) + " " + t.Style(code, verdictSign(c.Mark)+" "+c.Word)
}

// shortRange returns an interval that fits its column; empty if it does not.
func shortRange(c answerCell) string {
	interval := strings.TrimSuffix(c.Range, " %")
	if prose.Width(interval) > briefInterval {
		return ""
	}
	return interval
}

// verdictCodes are the SGR codes of verdicts. Yellow and cyan can be told apart with every kind of colour vision.
var verdictCodes = map[chart.Mark]string{
	chart.Worse: "1;33", chart.Better: "1;36", chart.Same: "1", chart.Undecided: "2",
}

// shortText returns a value, shortened to its column.
func shortText(c answerCell) string {
	text := c.Value()
	if prose.Width(text) <= briefValue {
		return text
	}
	if text == notMeasuredText {
		return "not meas."
	}
	return prose.Cut(text, briefValue)
}

// blocksNeededText returns a sentence with the largest number of blocks that would decide a shown comparison; empty if
// there is none.
func blocksNeededText(h answer) string {
	most := 0
	for _, row := range h.Rows {
		for _, c := range row.Cells {
			most = max(most, c.Needed)
		}
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("About %d blocks would decide what is undecided, as far as these runs tell.", most)
}

// omittedText counts what the brief answer omits, and names the outputs that have it; empty if nothing is omitted.
func (t *textReport) omittedText(in Input, all []group, h answer, hidden int) string {
	var parts []string
	count := func(n int, noun string) {
		if n > 0 {
			parts = append(parts, unit.Plural(n, noun))
		}
	}
	count(len(h.Folded), "exploratory case")
	count(hidden, "further metric")
	count(len(rowNotes(all, math.MaxInt)), "note")
	parts = append(parts, t.Omitted...)
	if len(parts) == 0 {
		return ""
	}
	where := "--verbose and the report"
	if causesSentence(in) != "" {
		where = "--verbose, 'knotmeter explain' and the report"
	}
	return "Also: " + prose.Enumerate(parts) + "; " + where + " have them."
}

// scopeLine returns the scope of the results in a line, with the time of the runs.
func scopeLine(in Input) string {
	when := "at this time"
	if len(in.Runs) > 0 {
		byStart := func(a, b result.Run) int { return a.Start.Compare(b.Start) }
		first := slices.MinFunc(in.Runs, byStart).Start.UTC().Format("2006-01-02 15:04")
		last := slices.MaxFunc(in.Runs, byStart).Start.UTC().Format("2006-01-02 15:04")
		switch {
		case slices.ContainsFunc(in.Runs, func(r result.Run) bool { return r.Start.IsZero() }):
		case in.Comparison.Paired || first == last:
			when = "at " + first + " UTC"
		default:
			when = "between " + first + " and " + last + " UTC"
		}
	}
	return "This holds for these targets, on these machines, " + when + "."
}
