package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Sizes of a card, in pixels: links have pictures of 1200 by 630 in chats and feeds, often at half of that.
const (
	cardWidth  = 1200.0
	cardHeight = 630.0
	cardCases  = 350.0 // the column of cases
	cardRow    = 82.0
	cardNotes  = 548.0 // where the notes begin
)

// What a card has room for.
const (
	mostCardRows    = 4
	mostCardColumns = 4
)

// The letters of a card.
var (
	cardBrand  = chart.Letters{Size: 20, Bold: true, Class: "accent"}
	cardTarget = chart.Letters{Size: 21, Bold: true, Class: "muted"}
	cardCase   = chart.Letters{Size: 20, Bold: true}
	cardValue  = chart.Letters{Size: 26, Bold: true}
	cardSmall  = chart.Letters{Size: 19, Class: "muted"}
)

// card draws the headline, the first rows of the matrix, or where nothing is compared of the medians, and a few counts.
func card(in Input) string {
	h := newHero(in, groups(in), nil, nil)
	if len(h.Rows) == 0 {
		h = mediansHero(in)
	}
	s := chart.NewSheet(cardWidth, prose.Plain(in.Comparison.Headline))
	s.Box("accent", 0, 0, cardWidth, 10)
	s.Text("KNOTMETER", chart.Edge, 50, chart.Start, cardBrand, s.Inner())
	headline := glue(prose.Plain(in.Comparison.Headline))
	s.Y = s.Lines(headline, chart.Edge, 60, chart.Start, headlineLetters(headline, s.Inner()), s.Inner(), 4) + 14
	columns := h.Columns[:min(len(h.Columns), mostCardColumns)]
	width := (s.Inner() - cardCases) / float64(max(len(columns), 1))
	x := func(i int) float64 { return chart.Edge + cardCases + float64(i)*width }
	top := s.Y
	for i, c := range columns {
		s.Y = max(s.Y, s.Lines(prose.Plain(c.Short), x(i), top, chart.Start, cardTarget, width-16, 2))
	}
	s.Y += 8
	rows := 0
	for _, r := range h.Rows[:min(len(h.Rows), mostCardRows)] {
		if s.Y+cardRow > cardNotes {
			break
		}
		rows++
		s.Rule(chart.Edge, s.Y, s.Inner())
		y := s.Lines(glue(prose.Plain(r.Subject)), chart.Edge, s.Y+10, chart.Start, cardCase, cardCases-20, 2)
		if y-s.Y < 60 { // a subject of one line
			s.Lines(prose.Plain(r.Quantity), chart.Edge, y, chart.Start, cardSmall, cardCases-20, 1)
		}
		for i, c := range r.Cells[:min(len(r.Cells), len(columns))] {
			drawCardCell(s, c, x(i), width-16)
		}
		s.Y += cardRow
	}
	s.Lines(cardNote(in, len(h.Rows)-rows, len(h.Columns)-len(columns)), chart.Edge, cardNotes+8, chart.Start, cardSmall,
		s.Inner(), 2)
	return s.File(cardHeight)
}

// headlineLetters are the largest with which a headline takes three lines.
func headlineLetters(text string, width float64) chart.Letters {
	l := chart.Letters{Size: 42, Bold: true}
	for l.Size > 26 && len(l.Lines(text, width, 5)) > 3 {
		l.Size -= 2
	}
	return l
}

// drawCardCell draws a value, and below it the change with the mark of its verdict.
func drawCardCell(s *chart.Sheet, c heroCell, x, width float64) {
	letters := cardValue
	if c.Unit == "" {
		letters = cardSmall
	}
	s.Text(sharp(prose.Plain(c.Value())), x, s.Y+37, chart.Start, letters, width)
	if c.Mark == "" {
		s.Text(glue(prose.Plain(c.Range)), x, s.Y+66, chart.Start, cardSmall, width)
		return
	}
	s.Mark(c.Mark, x+7, s.Y+59, 20)
	look := chart.Letters{Size: 20, Bold: c.Mark != chart.Undecided, Class: string(c.Mark)}
	text := sharp(prose.Plain(c.Change)) + " " + c.Word
	if look.Width(text) > width-22 {
		text = sharp(prose.Plain(c.Change)) // the mark says the verdict
	}
	s.Text(text, x+22, s.Y+66, chart.Start, look, width-22)
}

// cardNote says what else there is to know, as far as two lines reach: first what changes the answer.
func cardNote(in Input, rows, columns int) string {
	list := sessionChanges(in.Comparison)
	if rows > 0 {
		list = append(list, unit.Plural(rows, "more case"))
	}
	if columns > 0 {
		list = append(list, unit.Plural(columns, "more target"))
	}
	list = append(list, nonEmpty(unpaired(in), in.Comparison.Summary)...)
	if about := ran(in); len(about) > 1 {
		list = append(list, about[1:]...)
	}
	if len(in.Comparison.Comparisons)+len(in.Comparison.Medians) == 0 {
		list = append(list, nothingWords)
	}
	return glue(prose.Plain(strings.Join(list, " · ")))
}

// mediansHero is the matrix of what was measured where nothing is compared.
func mediansHero(in Input) hero {
	cases, at := in.casesByName(), index[[2]string]{}
	list, _ := split(in)
	var names []string
	for _, m := range list {
		names = append(names, m.Target)
	}
	names = distinct(names)
	short := prose.Unprefixed(names)
	h := hero{}
	for _, name := range names {
		h.Columns = append(h.Columns, heroColumn{Name: name, Short: short[name]})
	}
	for _, m := range list {
		i, first := at.of([2]string{m.Case, m.Metric})
		if first {
			row := heroRow{Cells: slices.Repeat([]heroCell{{Number: "-"}}, len(names))}
			row.Subject, row.Quantity = inPlainWords(cases[m.Case], m.Metric)
			h.Rows = append(h.Rows, row)
		}
		cell := &h.Rows[i].Cells[slices.Index(names, m.Target)]
		cell.measured(m.Median, m.Unit)
		if cell.Range = around(m); cell.Range == "-" {
			cell.Range = ""
		}
	}
	return h
}
