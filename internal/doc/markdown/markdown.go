// Package markdown renders documents in GitHub's dialect, for a comment on a pull request.
package markdown

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// MaxBytes is the largest size of a text: GitHub accepts 65 536 characters in a comment.
const MaxBytes = 65_000

// A Comment has blocks below each other, up to the size that GitHub accepts.
type Comment struct {
	Omitted int // lines without room

	b strings.Builder
}

// String returns what was written, with the number of lines that had no room.
func (m *Comment) String() string {
	text := strings.TrimRight(m.b.String(), "\n") + "\n"
	if m.Omitted > 0 {
		text += "\n" + unit.Plural(m.Omitted, "line") +
			" had no room in a comment; the report and its JSON have everything.\n"
	}
	return text
}

// Put writes a line or paragraph as it is if there is room, and counts it otherwise. The free bytes are for what is
// always written: ends of folded parts, and the last line.
func (m *Comment) Put(text string) bool {
	const free = 500
	if m.b.Len()+len(text) > MaxBytes-free {
		m.Omitted++
		return false
	}
	m.b.WriteString(text)
	return true
}

// Line writes a paragraph as it is, unless it is empty.
func (m *Comment) Line(text string) {
	if text != "" {
		m.Put(text + "\n\n")
	}
}

// Fold writes a part that a click opens.
func (m *Comment) Fold(title string, part func()) {
	if m.Put("<details>\n<summary>" + Escape(title) + "</summary>\n\n") {
		part()
		m.b.WriteString("</details>\n\n")
	}
}

// Block writes a block below its heading; the data of a page are left out. Details with a count are folded below it.
func (m *Comment) Block(b doc.Block) {
	switch {
	case b.Level == doc.Data || len(b.Parts) == 0:
	case b.Level == doc.Detail && b.Count != "":
		m.Fold(b.Count, func() { m.parts(b) })
	default:
		if b.Title != "" {
			m.Line("### " + Escape(b.Title))
		}
		m.parts(b)
	}
}

func (m *Comment) parts(b doc.Block) {
	m.Line(Escape(b.About))
	for _, p := range b.Parts {
		switch p := p.(type) {
		case doc.Paragraph:
			m.Paragraph(p)
		case doc.Items:
			m.List(p)
		case doc.Entries:
			m.entries(p)
		case doc.Table:
			m.table(p)
		case doc.Choice:
			m.table(p.Options[0].Table)
		case doc.Figure:
			switch {
			case len(p.Table.Rows) > 0:
				m.table(p.Table)
			case p.Caption != "":
				m.List([]string{p.Caption})
			}
		case doc.Block:
			if p.Level == doc.Data {
				continue
			}
			if p.Title != "" {
				m.Line("**" + Escape(p.Title) + "**")
			}
			m.parts(p)
		}
	}
}

// List writes a list.
func (m *Comment) List(items []string) {
	for _, item := range items {
		m.Put("- " + Escape(item) + "\n")
	}
	m.End()
}

func (m *Comment) entries(list doc.Entries) {
	for _, e := range list {
		text := "- " + strings.TrimSpace(e.Mark.Sign()+" **"+Escape(e.Label)+"**")
		if e.Text != "" {
			text += ": " + Escape(e.Text)
		}
		m.Put(text + "\n")
		for _, detail := range e.Details {
			m.Put("  - " + Escape(detail) + "\n")
		}
	}
	m.End()
}

// End writes the empty line after a list or a table.
func (m *Comment) End() { m.b.WriteString("\n") }

// Paragraph writes a paragraph in its tone.
func (m *Comment) Paragraph(p doc.Paragraph) {
	switch p.Tone {
	case doc.Code:
		m.Line("```sh\n" + strings.ReplaceAll(prose.Plain(p.Text), "```", "` ` `") + "\n```")
	case doc.Warning:
		m.Line("**!** " + Escape(p.Text))
	default:
		m.Line(Escape(p.Text))
	}
}

func (m *Comment) table(t doc.Table) {
	if len(t.Rows) == 0 {
		return
	}
	head, rule := "| ", "|--"
	for _, c := range t.Columns {
		head += "| " + Escape(c.Head)
		if c.Note != "" {
			head += "<br>" + Escape(c.Note)
		}
		head += " "
		if c.Words {
			rule += "|--"
		} else {
			rule += "|--:"
		}
	}
	if !m.Put(head + "|\n" + rule + "|\n") {
		m.Omitted += len(t.Rows)
		return
	}
	for _, row := range t.Rows {
		lines := []string{Escape(row.Head)}
		if row.Group != "" {
			lines[0] = Escape(row.Group + " · " + row.Head)
		}
		if row.Sub != "" {
			lines = append(lines, Escape(row.Sub))
		}
		text := "| " + strings.Join(lines, "<br>")
		for _, c := range row.Cells {
			text += " | " + cell(c)
		}
		m.Put(text + " |\n")
	}
	m.End()
	m.Line(Escape(t.Legend))
}

// cell returns a cell, with its parts and notes below the text to keep the table narrow.
func cell(c doc.Cell) string {
	lines := []string{Escape(strings.TrimSpace(c.Text + " " + c.Letters))}
	sign := ""
	if c.Mark != "" {
		sign = c.Mark.Sign() + " "
	}
	if len(c.Parts) > 0 {
		lines = append(lines, sign+Escape(strings.Join(c.Parts, " ")))
	} else {
		lines[0] = sign + lines[0]
	}
	for _, n := range c.Notes {
		lines = append(lines, Escape(n))
	}
	return strings.Join(lines, "<br>")
}

// Escape escapes text from outside so that it appears unchanged, also in a cell of a table.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range prose.Plain(s) {
		switch {
		case r == '@', r == '#':
			// GitHub reads @name and #1 in the rendered text, where a backslash is gone: it would notify, and link.
			fmt.Fprintf(&b, "%c&#8203;", r)
		case strings.ContainsRune("\\`*_[]|~", r):
			b.WriteString("\\" + string(r))
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
