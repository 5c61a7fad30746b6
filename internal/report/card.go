package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Sizes of a card, in pixels. Link previews in chats and feeds are 1200 by 630, often shown at half of that size.
const (
	cardWidth  = 1200.0
	cardHeight = 630.0
	cardCases  = 350.0 // width of the column of cases
	cardRow    = 82.0
	cardNotes  = 548.0 // top of the notes
)

// The maximum numbers of rows and columns of a card.
const (
	maxCardRows    = 4
	maxCardColumns = 4
)

// The fonts of a card.
var (
	cardBrand  = chart.Font{Size: 20, Bold: true, Class: "accent"}
	cardTarget = chart.Font{Size: 21, Bold: true, Class: "muted"}
	cardCase   = chart.Font{Size: 20, Bold: true}
	cardValue  = chart.Font{Size: 26, Bold: true}
	cardSmall  = chart.Font{Size: 19, Class: "muted"}
)

// card draws the headline, the first rows of the matrix (medians if nothing is compared), and a few counts.
func card(in Input) string {
	h := newAnswer(in, groups(in), nil)
	table := h.matrix(in)
	if len(table.Rows) == 0 {
		medians, _ := splitMedians(in)
		table = mediansTable(medians)
		var names []string
		for _, c := range table.Columns {
			names = append(names, c.Head)
		}
		short := prose.Unprefixed(names)
		for i, name := range names {
			table.Columns[i].Head = short[name]
		}
	}
	s := chart.NewSheet(cardWidth, prose.Plain(in.Comparison.Headline))
	s.Box("accent", 0, 0, cardWidth, 10)
	s.Text("KNOTMETER", chart.Edge, 50, chart.Start, cardBrand, s.Inner())
	headline, font := prose.Typeset(prose.Plain(in.Comparison.Headline)), chart.Font{Size: 42, Bold: true}
	for font.Size > 26 && len(font.Lines(headline, s.Inner(), 5)) > 3 {
		font.Size -= 2
	}
	s.Y = s.Lines(headline, chart.Edge, 60, chart.Start, font, s.Inner(), 4) + 14
	columns := table.Columns[:min(len(table.Columns), maxCardColumns)]
	width := (s.Inner() - cardCases) / float64(max(len(columns), 1))
	x := func(i int) float64 { return chart.Edge + cardCases + float64(i)*width }
	top := s.Y
	for i, c := range columns {
		s.Y = max(s.Y, s.Lines(prose.Plain(c.Head), x(i), top, chart.Start, cardTarget, width-16, 2))
	}
	s.Y += 8
	rows := 0
	for _, r := range table.Rows[:min(len(table.Rows), maxCardRows)] {
		if s.Y+cardRow > cardNotes {
			break
		}
		rows++
		s.Rule(chart.Edge, s.Y, s.Inner())
		y := s.Lines(prose.Typeset(prose.Plain(r.Group)), chart.Edge, s.Y+10, chart.Start, cardCase, cardCases-20, 2)
		if y-s.Y < 60 { // a subject of one line
			s.Lines(prose.Plain(r.Head), chart.Edge, y, chart.Start, cardSmall, cardCases-20, 1)
		}
		for i, c := range r.Cells[:min(len(r.Cells), len(columns))] {
			drawCardCell(s, c, x(i), width-16)
		}
		s.Y += cardRow
	}
	note := cardNote(in, len(table.Rows)-rows, len(table.Columns)-len(columns))
	s.Lines(note, chart.Edge, cardNotes+8, chart.Start, cardSmall, s.Inner(), 2)
	return s.File(cardHeight)
}

// drawCardCell draws a value, and below it the change with the mark of its verdict.
func drawCardCell(s *chart.Sheet, c doc.Cell, x, width float64) {
	font := cardValue
	if !strings.Contains(c.Text, " ") || c.Text == notMeasuredText {
		font = cardSmall
	}
	s.Text(typesetUnbroken(prose.Plain(c.Text)), x, s.Y+37, chart.Start, font, width)
	if c.Mark == "" {
		if len(c.Notes) > 0 {
			s.Text(prose.Typeset(prose.Plain(c.Notes[0])), x, s.Y+66, chart.Start, cardSmall, width)
		}
		return
	}
	s.Mark(c.Mark, x+7, s.Y+59, 20)
	changeFont := chart.Font{Size: 20, Bold: c.Mark != doc.Undecided, Class: string(c.Mark)}
	text := typesetUnbroken(prose.Plain(c.Parts[0])) + " " + c.Parts[len(c.Parts)-1]
	if changeFont.Width(text) > width-22 {
		text = typesetUnbroken(prose.Plain(c.Parts[0])) // the mark shows the verdict
	}
	s.Text(text, x+22, s.Y+66, chart.Start, changeFont, width-22)
}

// cardNote returns further facts for the space of two lines, the most important first.
func cardNote(in Input, rows, columns int) string {
	list := slices.Concat(recordedWarnings(in.Comparison), sessionChanges(in.Comparison))
	if rows > 0 {
		list = append(list, unit.Plural(rows, "more case"))
	}
	if columns > 0 {
		list = append(list, unit.Plural(columns, "more target"))
	}
	list = append(list, nonEmpty(unpaired(in), in.Comparison.Summary)...)
	if about := runInfo(in); len(about) > 1 {
		list = append(list, about[1:]...)
	}
	if len(in.Comparison.Comparisons)+len(in.Comparison.Medians) == 0 {
		list = append(list, nothingToCompareText)
	}
	return prose.Typeset(prose.Plain(strings.Join(list, " · ")))
}
