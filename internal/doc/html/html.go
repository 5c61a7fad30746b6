// Package html renders blocks of documents for a page, whose frame, styles and scripts are its user's.
package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// MaxRows is the largest number of rows of a table, and of entries of a list, so that every browser can open a page.
// What is left out is said.
const MaxRows = 500

// maxOpenRows is the largest number of rows with which the table of a figure is shown without a click.
const maxOpenRows = 6

//go:embed block.html
var source string

// blocks returns the templates. They are parsed when the first page is made, since most commands make none.
var blocks = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"typeset": prose.Typeset, "breakable": Breakable, "kind": kind, "chunks": doc.Table.Chunks, "pair": newCell,
		"legend":    legend,
		"rest":      func(all int) string { return Rest(min(all, MaxRows), all) },
		"first":     func(list []doc.Row) []doc.Row { return list[:min(len(list), MaxRows)] },
		"shown":     func(list doc.Items) doc.Items { return list[:min(len(list), MaxRows)] },
		"entries":   func(list doc.Entries) doc.Entries { return list[:min(len(list), MaxRows)] },
		"add":       func(a, b int) int { return a + b },
		"arguments": doc.Arguments,
		"short":     func(t doc.Table) bool { return len(t.Rows) <= maxOpenRows },
		"folded": func(b doc.Block) bool {
			return b.Level == doc.Data && b.Title != "" || b.Level == doc.Detail && b.Count != ""
		},
		"tone": func(p doc.Paragraph) string { return [...]string{"", "warn", "about", "code"}[p.Tone] },
	}).Parse(source))
})

// drawnSigns replaces the signs of marks by those that a page draws.
var drawnSigns = strings.NewReplacer("= equivalent", "■ equivalent", "~ undecided", "○ undecided")

func legend(t doc.Table) string {
	return strings.TrimSpace(drawnSigns.Replace(t.Legend) + " " + t.Drawn)
}

// A cell is a cell with its column. That of a large table has the parts of its value, which have different sizes.
type cell struct {
	Column       doc.Column
	Cell         doc.Cell
	Lead         bool
	Number, Unit string
	Class        string // of CSS
}

func newCell(t doc.Table, column int, from doc.Cell) cell {
	c := cell{Column: t.Columns[column], Cell: from, Lead: t.Lead, Class: string(from.Mark)}
	switch {
	case c.Column.Words:
		c.Class = "words"
	case c.Column.Axis != "":
		c.Class = "drawing"
	}
	if from.Best {
		c.Class += " best"
	}
	if !t.Lead {
		return c
	}
	c.Number = from.Text
	if c.Number != "" && strings.ContainsAny(c.Number[:1], "-0123456789") {
		c.Number, c.Unit, _ = strings.Cut(c.Number, " ")
	} else {
		c.Class += " none"
	}
	return c
}

// Block returns a block as a section with a heading of the second level. The error is one of the templates.
func Block(b doc.Block) (template.HTML, error) {
	var s strings.Builder
	if err := blocks().ExecuteTemplate(&s, "section", b); err != nil {
		return "", fmt.Errorf("render %s: %w", b.ID, err)
	}
	return template.HTML(s.String()), nil
}

// Inner returns a block as a part of a section of its user's: below a smaller heading, or folded.
func Inner(b doc.Block) (template.HTML, error) {
	var s strings.Builder
	if err := blocks().ExecuteTemplate(&s, "block", b); err != nil {
		return "", fmt.Errorf("render %s: %w", b.Title, err)
	}
	return template.HTML(s.String()), nil
}

// kind returns the name of the template of a part.
func kind(p doc.Element) string {
	switch p.(type) {
	case doc.Paragraph:
		return "paragraph"
	case doc.Items:
		return "list"
	case doc.Entries:
		return "entries"
	case doc.Choice:
		return "choice"
	case doc.Table:
		return "table"
	case doc.Figure:
		return "figure"
	}
	return "block"
}

// Rest returns a note about entries that are left out; empty if none are.
func Rest(shown, all int) string {
	if shown >= all {
		return ""
	}
	return fmt.Sprintf("The first %d of %d are in this page.", shown, all)
}

// separators are the characters after which a long name may be broken.
const separators = ":+/_-"

// Breakable escapes a name and allows line breaks after separators.
func Breakable(name string) template.HTML {
	var b strings.Builder
	for {
		i := strings.IndexAny(name, separators)
		if i < 0 || i == len(name)-1 {
			b.WriteString(template.HTMLEscapeString(name))
			return template.HTML(b.String())
		}
		b.WriteString(template.HTMLEscapeString(name[:i+1]) + "<wbr>")
		name = name[i+1:]
	}
}
