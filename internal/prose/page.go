// Package prose formats plain text for users: it escapes unsafe characters, measures the width on a terminal, lays out
// lines, paragraphs, aligned columns and enumerations, and suggests names for misspelled ones. It is independent of the
// content.
package prose

import (
	"strconv"
	"strings"
)

// Columns is the default width of a [Page].
const Columns = 80

// A Page is text for a terminal, written line by line.
type Page struct {
	Width int // of its lines in columns; 0 is [Columns]

	b strings.Builder
}

func (p *Page) columns() int {
	if p.Width > 0 {
		return p.Width
	}
	return Columns
}

// String returns the text written so far.
func (p *Page) String() string { return p.b.String() }

// Line writes a line without trailing spaces.
func (p *Page) Line(s string) { p.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// Paragraph writes text in lines; first is the prefix of the first line, rest that of the others.
func (p *Page) Paragraph(first, rest, text string) {
	lead := first
	for _, l := range wrap(Plain(text), p.columns()-Width(first), p.columns()-Width(rest)) {
		p.Line(lead + l)
		lead = rest
	}
}

// Row writes cells in columns of the given widths, followed by the text. The text starts below the cells if they are
// too long, or if one of its words does not fit next to them.
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
	if longestWord(text) <= room {
		p.Paragraph(lead, column, text)
		return
	}
	if strings.TrimSpace(lead) != "" {
		p.Line(lead)
	}
	p.Paragraph(indent+"  ", indent+"  ", text)
}

// longestWord returns the width of the longest word.
func longestWord(text string) int {
	most := 0
	for _, w := range words(Plain(text)) {
		most = max(most, Width(w))
	}
	return most
}

// A Section holds rows of cells below a heading.
type Section struct {
	Heading string     // may be empty
	Rows    [][]string // with the same number of cells each
}

// widestColumn is the maximum width of a column of a [List]; the text of a row with wider cells starts below them.
const widestColumn = 34

// List formats sections, separated by blank lines. The columns of a section are as wide as their widest cell; the last
// column uses the rest of the line.
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

// widths returns the widths of all columns but the last, including two spaces between them.
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

// Enumerate returns "a", "a and b" or "a, b and c".
func Enumerate(names []string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// Some joins at most five of the names, and appends the number of the others.
func Some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}
