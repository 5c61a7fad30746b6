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
		"typeset": prose.Typeset, "breakable": Breakable, "kind": kind, "class": cell.class,
		"rest":   func(all int) string { return Rest(min(all, MaxRows), all) },
		"first":  func(list []doc.Row) []doc.Row { return list[:min(len(list), MaxRows)] },
		"shown":  func(list doc.Items) doc.Items { return list[:min(len(list), MaxRows)] },
		"add":    func(a, b int) int { return a + b },
		"pair":   func(column doc.Column, c doc.Cell) cell { return cell{column, c} },
		"short":  func(t doc.Table) bool { return len(t.Rows) <= maxOpenRows },
		"folded": func(b doc.Block) bool { return b.Level == doc.Data },
		"tone":   func(p doc.Paragraph) string { return [...]string{"", "warn", "about", "code"}[p.Tone] },
	}).Parse(source))
})

// A cell is a cell with its column.
type cell struct {
	Column doc.Column
	Cell   doc.Cell
}

// class returns the CSS class of a cell.
func (c cell) class() string {
	switch {
	case c.Column.Words:
		return "words"
	case c.Column.Axis != "":
		return "drawing"
	}
	return string(c.Cell.Mark)
}

// Block returns a block as a section with a heading of the second level. The error is one of the templates.
func Block(b doc.Block) (template.HTML, error) {
	var s strings.Builder
	if err := blocks().ExecuteTemplate(&s, "section", b); err != nil {
		return "", fmt.Errorf("render %s: %w", b.ID, err)
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
