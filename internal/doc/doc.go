// Package doc has documents: what a reader is told, apart from how a terminal, a comment or a page shows it. The
// packages below it render them. Whatever depends on a medium is there: widths, escaping, limits of size and of rows.
package doc

import (
	"html/template"
	"slices"
	"strings"
)

// A Block is a part of a document with a heading, such as the prices of a report.
type Block struct {
	ID    string // of the element and its link in a page, such as price
	Title string // empty: it continues the block before
	About string // introduction, which stands below the title
	Level Depth
	// Count counts what the block has, such as "3 warnings", for media that leave it out or fold it.
	Count string
	Parts []Element
}

// A Depth is how far a reader must go to see a block.
type Depth int

// The depths.
const (
	Answer Depth = iota // everywhere
	Detail              // in a comment and a page, on a terminal with --verbose
	Data                // in a page, folded
)

// An Element is a piece of a block: a [Paragraph], [Items], [Entries], a [Table], a [Choice], a [Figure] or another
// [Block].
type Element interface{ element() }

func (Paragraph) element() {}
func (Items) element()     {}
func (Entries) element()   {}
func (Choice) element()    {}
func (Table) element()     {}
func (Figure) element()    {}
func (Block) element()     {}

// A Paragraph is a text with a tone.
type Paragraph struct {
	Text string
	Tone Tone
	Link Hyperlink // to what tells more, in media with links; without a label: none
}

// A Tone is how a text is meant.
type Tone int

// The tones.
const (
	Plain   Tone = iota
	Warning      // a reader must know it
	Faint        // matters less than what is around it
	Code         // is typed as it is
)

// Arguments splits a command before its flags, so that each flag stays on a line with its value.
func Arguments(command string) []string {
	list := strings.Split(command, " --")
	for i := range list[1:] {
		list[i+1] = "--" + list[i+1]
	}
	return list
}

// Items are a list of equal rank.
type Items []string

// Entries are a list of things that each have a label, perhaps a verdict and details.
type Entries []Entry

// An Entry is one of them.
type Entry struct {
	ID      string // of the element in a page, for links; empty: none
	Mark    Mark
	Label   string
	Text    string
	Details []string // a list below the text
}

// A Choice has the same table from several points of view, of which a page shows the one that its reader chooses. Other
// media have the first.
type Choice struct {
	ID      string // of the group in the page
	Label   string // what is chosen
	Options []Option
}

// An Option is one of the tables of a choice.
type Option struct {
	Name  string
	Table Table
}

// A Mark is a verdict on what a cell or an entry holds.
type Mark string

// The marks. The zero value is none.
const (
	Better    Mark = "better"
	Worse     Mark = "worse"
	Same      Mark = "same"
	Undecided Mark = "undecided"
	Passed    Mark = "passed"
	Failed    Mark = "failed"
)

// Sign returns a sign of one column for a mark, which does not depend on colour; empty for none.
func (m Mark) Sign() string {
	switch m {
	case Better:
		return "▲"
	case Worse:
		return "▼"
	case Same:
		return "="
	case Undecided:
		return "~"
	case Passed:
		return "✓"
	case Failed:
		return "✗"
	}
	return ""
}

// A Table has a row for each thing that is told of, and a column for each property.
type Table struct {
	Name    string // of the file with its figure; empty: it is not copied
	Columns []Column
	Rows    []Row
	Legend  string // of marks and letters
	Drawn   string // what the plots of its cells show, for media that draw
	Lead    bool   // it is the answer: a page shows it large
	// Apart allows media without enough width to show some of the columns in a table below, with the same rows.
	Apart bool
}

// WithoutEmptyColumns returns the table without the columns in which no cell has a text.
func (t Table) WithoutEmptyColumns() Table {
	kept := t
	kept.Columns, kept.Rows = nil, slices.Clone(t.Rows)
	for i := range kept.Rows {
		kept.Rows[i].Cells = nil
	}
	for k, column := range t.Columns {
		if !slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[k].Text != "" }) {
			continue
		}
		kept.Columns = append(kept.Columns, column)
		for i, row := range t.Rows {
			kept.Rows[i].Cells = append(kept.Rows[i].Cells, row.Cells[k])
		}
	}
	return kept
}

// maxLeadColumns is the number of columns of the answer that are next to each other in a drawing if they may be apart.
const maxLeadColumns = 4

// Chunks splits the columns of an answer that may be apart into tables with the same rows.
func (t Table) Chunks() []Table {
	if !t.Lead || !t.Apart {
		return []Table{t}
	}
	var list []Table
	for from := 0; from < len(t.Columns); from += maxLeadColumns {
		to := min(from+maxLeadColumns, len(t.Columns))
		part := t
		part.Columns, part.Rows = t.Columns[from:to], slices.Clone(t.Rows)
		for i := range part.Rows {
			part.Rows[i].Cells = part.Rows[i].Cells[from:to]
		}
		list = append(list, part)
	}
	return list
}

// A Column is the heading of a column. That of the rows' heads is not among the columns.
type Column struct {
	Head  string
	Note  string        // below the head
	Words bool          // cells hold words, not numbers
	Axis  template.HTML // of a column of plots, which media that do not draw leave out
}

// A Row has a cell for each column.
type Row struct {
	Group string // heading that it shares with the rows around
	Head  string
	Sub   string // a second, smaller line of the head
	Cells []Cell
}

// A Cell is a text, with what is told of it.
type Cell struct {
	Text    string
	Mark    Mark
	Best    bool        // no other is known to be better, which only a page shows
	Letters string      // of the groups that cannot be told apart
	Parts   []string    // such as a change, its interval and its verdict, the most important first
	Notes   []string    // small texts below, such as a reason
	More    []string    // small texts for which only a page has room
	Links   []Hyperlink // to what is told of it elsewhere in the document
	Plot    template.HTML
}

// A Hyperlink points to a block, or to an item that it names.
type Hyperlink struct {
	ID    string
	Sign  string
	Label string
}

// A Figure is a drawing. Media that do not draw have its caption and a table that tells the same.
type Figure struct {
	Name    string // of its file
	Title   string
	Note    string      // after the title, such as a metric
	Links   []Hyperlink // after the note
	Caption string
	Legend  []Label // above the plot
	Axis    template.HTML
	Plot    template.HTML
	Columns []Label     // below the plot
	Data    template.JS // what the scripts of a page draw in place of the plot
	Table   Table
}

// A Label names a column or a line of a figure.
type Label struct {
	Name, Note string
	Style      int  // of its line or bars in the drawing, from 1; 0 if it has none
	Bars       bool // whether the style is one of bars
}
