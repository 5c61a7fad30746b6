// Package prose is plain text for readers: what of it is safe to print, how wide it is on a terminal, and lines,
// paragraphs, aligned columns and enumerations made of it, and the name that a user probably meant. It knows nothing of
// what the text is about.
package prose

import (
	"strconv"
	"strings"
)

// Columns is the most that a line of a [Page] takes that has no width of its own.
const Columns = 80

// A Page is text for a terminal, written line by line.
type Page struct {
	Width int // of its lines; 0 is [Columns]

	b strings.Builder
}

func (p *Page) columns() int {
	if p.Width > 0 {
		return p.Width
	}
	return Columns
}

// String is what has been written.
func (p *Page) String() string { return p.b.String() }

// Line writes a line as it is, without blanks at its end.
func (p *Page) Line(s string) { p.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// Paragraph writes text in lines: the first begins with first, the others with rest.
func (p *Page) Paragraph(first, rest, text string) {
	lead := first
	for _, l := range wrap(Plain(text), p.columns()-Width(first), p.columns()-Width(rest)) {
		p.Line(lead + l)
		lead = rest
	}
}

// Row writes cells in columns of these widths and the text behind them. The text is
// below the cells where these are too long for it, or where it has words that have no room behind them.
func (p *Page) Row(indent string, widths []int, cells []string, text string) {
	lead, column := indent, indent
	for i, w := range widths {
		lead += Left(Plain(cells[i]), w-1) + " "
		column += strings.Repeat(" ", w)
	}
	room := p.columns() - Width(column)
	if Width(lead) > Width(column) && Width(lead+Plain(text)) > p.columns() {
		p.Line(lead)
		lead = column
	}
	if longest(text) <= room {
		p.Paragraph(lead, column, text)
		return
	}
	if strings.TrimSpace(lead) != "" {
		p.Line(lead)
	}
	p.Paragraph(indent+"  ", indent+"  ", text)
}

// longest is the width of the longest word.
func longest(text string) int {
	most := 0
	for _, w := range words(Plain(text)) {
		most = max(most, Width(w))
	}
	return most
}

// A Section is rows of cells below a heading.
type Section struct {
	Heading string     // may be empty
	Rows    [][]string // of as many cells each
}

// widestColumn is how wide a column of a [List] gets. Cells that are wider have the text below them.
const widestColumn = 34

// List writes sections with blank lines between them. The columns of a section are as wide as their widest cell, the
// last takes the rest of the line.
func List(sections []Section) string {
	var p Page
	for i, s := range sections {
		if i > 0 {
			p.Line("")
		}
		indent := ""
		if s.Heading != "" {
			p.Paragraph("", "  ", s.Heading)
			indent = "  "
		}
		widths := s.widths()
		for _, row := range s.Rows {
			last := len(row) - 1
			p.Row(indent, widths, row[:last], row[last])
		}
	}
	return p.String()
}

// widths are those of all columns but the last, with two blanks between.
func (s Section) widths() []int {
	if len(s.Rows) == 0 {
		return nil
	}
	widths := make([]int, len(s.Rows[0])-1)
	for _, row := range s.Rows {
		for i := range widths {
			widths[i] = max(widths[i], min(Width(Plain(row[i]))+2, widestColumn))
		}
	}
	return widths
}

// Enumerate is "a", "a and b" or "a, b and c".
func Enumerate(names []string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// Some is at most five of the names, and how many more there are.
func Some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}
