package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Widths of the columns of a brief table. What is left of a line is for the names at its left.
const (
	briefValue    = 11
	briefChange   = 8
	briefInterval = 15
	briefWord     = 12
	briefIndent   = 2
)

// leastName is the least room for a name before values are put on lines of their own.
const leastName = 16

// brief is the answer that fits a terminal: headline, matrix, and what to know before believing it.
func (t *textReport) brief(in Input) {
	c := in.Comparison
	t.Paragraph("", "", c.Headline+".")
	t.faint(c.Summary)
	if !c.Paired {
		t.Paragraph("", "", unpairedWords)
	}
	for _, s := range sessionChanges(c) {
		t.Paragraph("! ", "  ", s)
	}
	t.Line("")
	t.gates(c.Gates)
	all := groups(in)
	h := newHero(in, all, nil, nil)
	t.matrix(in, h)
	hidden := t.medians(in)
	if len(all) == 0 && len(c.Medians) == 0 {
		t.Paragraph("", "", nothingWords)
		t.Line("")
	}
	t.published(in)
	for _, s := range c.Slopes {
		if s.Role == result.Primary {
			t.Paragraph("", "  ", s.Sentence)
		}
	}
	for _, sentence := range leakSentences(c) {
		t.Paragraph("", "  ", sentence)
	}
	if text := needed(h); text != "" {
		t.faint(text)
	}
	if text := causesSentence(in); text != "" {
		t.faint(text + " See 'knotmeter explain'.")
	}
	t.part("PRICE: ", pricesWords, priceSentences(c))
	standing := 0
	for _, w := range c.Warnings {
		if compare.Standing(w) {
			standing++
		} else {
			t.Paragraph("! ", "  ", w)
		}
	}
	if worst := newFindings(c).Worst(); worst != "" {
		t.Paragraph("", "  ", worst)
	}
	if more := unseen(in, all, h, hidden, standing); more != "" {
		t.faint(more)
	}
	t.faint(hereAndNow(in))
}

// faint writes a paragraph that is less than the answer.
func (t *textReport) faint(text string) {
	for _, line := range prose.Wrap(prose.Plain(text), t.proseWidth()) {
		t.Line(t.style("2", line))
	}
}

// style puts escape sequences around text, where colours are wanted.
func (t *textReport) style(code, text string) string {
	if !t.options.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// matrix writes two targets side by side where there is room for that, and more of them below each other. Many have a
// line each.
func (t *textReport) matrix(in Input, h hero) {
	if len(h.Rows) == 0 {
		return
	}
	c := in.Comparison
	if h.ranked(in) {
		t.ranking(c, h)
		return
	}
	if name := t.width() - h.gridWidth(false); len(h.Columns) > 2 && name >= leastName &&
		len(h.Rows)*(len(h.Columns)+1) > fewLines {
		t.grid(c, h, name)
		return
	}
	const values = 2*(briefValue+1) + briefChange + 1 + briefInterval + 1 + briefWord
	if name := t.width() - values; h.twoShortColumns() && name >= leastName {
		t.sideBySide(h, min(name, 36))
	} else {
		t.below(h, min(t.width()-values+briefValue+1, 36))
	}
	t.Line("")
}

// twoShortColumns says whether there are two targets whose names fit above their values.
func (h hero) twoShortColumns() bool {
	long := func(c heroColumn) bool { return prose.Width(prose.Plain(c.Short)) > briefValue }
	return len(h.Columns) == 2 && !slices.ContainsFunc(h.Columns, long)
}

// sideBySide writes a line for each case, below the name of what it is about.
func (t *textReport) sideBySide(h hero, name int) {
	var heads []string
	for _, c := range h.Columns {
		heads = append(heads, prose.Right(prose.Plain(c.Short), briefValue))
	}
	t.Line(t.style("1", strings.Repeat(" ", name)+strings.Join(heads, " ")) +
		t.style("2", " "+prose.Right("change", briefChange)+" "+prose.Left("interval, %", briefInterval)))
	t.byCase(h, name, func(cells []heroCell) string {
		return prose.Right(shortText(cells[0]), briefValue) + " " + t.cell(cells[1])
	})
}

// byCase writes a line for each case, below the name of what it is about. What it measures stands in the column of
// names, or above where that is too narrow.
func (t *textReport) byCase(h hero, name int, values func([]heroCell) string) {
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
	}
}

// below writes a line for each target, below the case.
func (t *textReport) below(h hero, name int) {
	for _, row := range h.Rows {
		t.Paragraph("", "  ", row.Title())
		for i, cell := range row.Cells {
			label := strings.Repeat(" ", briefIndent) + prose.Plain(h.Columns[i].Short)
			if prose.Width(label) > name-1 {
				t.Paragraph("  ", "  ", h.Columns[i].Short)
				label = ""
			}
			t.Line(prose.Left(label, name) + t.cell(cell) + t.style("2", baselineNote(h.Columns[i], cell)))
		}
	}
}

// baselineNote is what stands behind a value that nothing is compared with.
func baselineNote(c heroColumn, cell heroCell) string {
	if cell.Word != "" || c.Note == "" || cell.Unit == "" {
		return ""
	}
	return " " + c.Note
}

// cell is a value and what it is compared with.
func (t *textReport) cell(c heroCell) string {
	text := prose.Right(shortText(c), briefValue)
	if c.Word == "" {
		return text
	}
	code := verdictCodes[c.Mark]
	return text + " " + t.style(code, prose.Right(c.Change, briefChange)) + " " +
		t.style("2", prose.Left(shortRange(c), briefInterval)) + " " + t.style(code, sign(c.Mark)+" "+c.Word)
}

// shortRange is an interval within its column; empty for what has no ratio, or no bounds to speak of.
func shortRange(c heroCell) string {
	interval := strings.TrimSuffix(c.Range, " %")
	if prose.Width(interval) > briefInterval {
		return ""
	}
	return interval
}

// verdictCodes are the colours of verdicts: yellow and cyan differ for every kind of colour vision.
var verdictCodes = map[chart.Mark]string{
	chart.Worse: "1;33", chart.Better: "1;36", chart.Same: "1", chart.Undecided: "2",
}

// shortText is a value within its column.
func shortText(c heroCell) string {
	text := c.Value()
	if prose.Width(text) <= briefValue {
		return text
	}
	if text == notMeasuredText {
		return "not meas."
	}
	return prose.Cut(text, briefValue)
}

// needed is the largest number of blocks that would decide a comparison that is shown.
func needed(h hero) string {
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

// unseen counts what the brief answer leaves out, and says where it is.
func unseen(in Input, all []group, h hero, hidden, standing int) string {
	c := in.Comparison
	var parts []string
	count := func(n int, noun string) {
		if n > 0 {
			parts = append(parts, unit.Plural(n, noun))
		}
	}
	count(len(h.Folded), "exploratory case")
	if len(concluded(c.Groups)) > 0 {
		parts = append(parts, "the order of all targets")
	}
	count(hidden, "further metric")
	count(standing, "standing warning")
	count(len(c.Findings), "audit finding")
	count(len(rowNotes(all, math.MaxInt)), "note")
	if n := len(c.NotMeasured); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not measured", n))
	}
	count(invalidCount(c), "invalid run")
	if n := len(alsoDiffers(c)); n > 0 {
		parts = append(parts, unit.Plural(n, "target")+map[bool]string{true: " that differs", false: " that differ"}[n == 1]+
			" in other facts")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Also: " + prose.Enumerate(parts) + "; --verbose and the report have them."
}

func invalidCount(c compare.Comparison) int {
	n := 0
	for _, t := range c.Targets {
		n += t.Invalid
	}
	return n
}

// hereAndNow is the scope in a line.
func hereAndNow(in Input) string {
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
