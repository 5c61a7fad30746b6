// Package text renders documents for a terminal.
package text

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// Columns of a line: the least that is supported, and the most of a paragraph, since longer lines are hard to read.
const (
	MinWidth     = 60
	maxParagraph = 100
)

// A Terminal shows blocks below each other.
type Terminal struct {
	prose.Page
	Colour bool      // escape sequences; the caller honours NO_COLOR
	Level  doc.Depth // the last level that is written
	// Omitted has the counts of the blocks that were left out.
	Omitted []string

	width int // of tables, in columns
}

// NewTerminal returns a writer for lines of at most so many columns, raised to [MinWidth]; [prose.Columns] if 0.
func NewTerminal(width int) *Terminal {
	if width == 0 {
		width = prose.Columns
	}
	w := &Terminal{width: max(width, MinWidth)}
	w.Page.Width = min(w.width, maxParagraph)
	return w
}

// Columns returns the columns of a table.
func (w *Terminal) Columns() int { return w.width }

// Block writes a block below its heading, and an empty line, unless it is beyond the level or has no parts. The answer
// alone does without introductions.
func (w *Terminal) Block(b doc.Block) {
	if len(b.Parts) == 0 {
		return
	}
	if b.Level > w.Level {
		if b.Count != "" {
			w.Omitted = append(w.Omitted, b.Count)
		}
		return
	}
	if b.Title != "" && w.String() != "" && !strings.HasSuffix(w.String(), "\n\n") {
		w.Line("")
	}
	w.styled(bold, strings.ToUpper(prose.Plain(b.Title)))
	w.parts(b)
	if b.Title != "" {
		w.Line("")
	}
}

func (w *Terminal) parts(b doc.Block) {
	if w.Level > doc.Answer {
		w.Faint(b.About)
	}
	for _, p := range b.Parts {
		switch p := p.(type) {
		case doc.Paragraph:
			w.paragraph(p)
		case doc.Items:
			for _, item := range p {
				w.Paragraph("  - ", "    ", item)
			}
		case doc.Entries:
			w.entries(p)
		case doc.Table:
			w.table(p)
		case doc.Choice:
			w.table(p.Options[0].Table)
		case doc.Figure:
			if len(p.Table.Rows) == 0 {
				if p.Caption != "" {
					w.Paragraph("  - ", "    ", p.Caption)
				}
				continue
			}
			w.Paragraph("  ", "  ", p.Title)
			w.Paragraph("  ", "  ", p.Caption)
			w.table(p.Table)
		case doc.Block:
			if p.Level <= w.Level {
				if p.Title != "" {
					w.Line("")
					w.styled(bold, prose.Plain(p.Title))
				}
				w.parts(p)
			}
		}
	}
}

// entries writes a list of entries; the answer alone does without their details.
func (w *Terminal) entries(list doc.Entries) {
	for _, e := range list {
		text := strings.TrimSpace(e.Mark.Sign() + " " + e.Label)
		if e.Text != "" {
			text += ": " + e.Text
		}
		w.Paragraph("  - ", "    ", text)
		if w.Level > doc.Answer {
			for _, detail := range e.Details {
				w.Paragraph("      - ", "        ", detail)
			}
		}
	}
}

func (w *Terminal) paragraph(p doc.Paragraph) {
	switch p.Tone {
	case doc.Warning:
		w.Paragraph("! ", "  ", p.Text)
	case doc.Faint:
		w.Faint(p.Text)
	case doc.Code:
		w.command(prose.Plain(p.Text))
	default:
		w.Paragraph("", "  ", p.Text)
	}
}

// command writes a command on as many lines as it needs, which a shell joins: it is copied.
func (w *Terminal) command(text string) {
	line := "   "
	for i, argument := range doc.Arguments(text) {
		if i > 0 && prose.Width(line)+1+prose.Width(argument) > w.Width-len(" \\") {
			w.Line(line + " \\")
			line = "     "
		}
		line += " " + argument
	}
	w.Line(line)
}

// Faint writes a paragraph that matters less than the others.
func (w *Terminal) Faint(text string) { w.styled(faint, prose.Plain(text)) }

// styled writes a paragraph in a style; nothing if it is empty.
func (w *Terminal) styled(code, text string) {
	if text == "" {
		return
	}
	for _, line := range prose.Wrap(text, w.Width) {
		w.Line(w.style(code, line))
	}
}

// Codes of SGR escape sequences. Yellow and cyan can be told apart with every kind of colour vision.
const (
	bold  = "1"
	faint = "2"
)

var markCodes = map[doc.Mark]string{doc.Worse: "1;33", doc.Better: "1;36", doc.Same: bold, doc.Undecided: faint}

// style puts escape sequences around text if colours are wanted.
func (w *Terminal) style(code, text string) string {
	if !w.Colour || text == "" || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Widths of the columns of names.
const (
	minName = 16
	maxName = 36
	gap     = 2 // between columns
	// maxHeadWord is the width of the longest word of a heading that widens its column.
	maxHeadWord = 14
)

// A layout has the widths of a table's columns.
type layout struct {
	name  int
	text  []int
	part  [][]int // by column and part
	signs []int   // widths of verdicts with their letters
	words []bool  // columns of words
}

// newLayout returns the widths with so many parts of each cell.
func newLayout(t doc.Table, parts int) layout {
	n := len(t.Columns)
	l := layout{text: make([]int, n), part: make([][]int, n), signs: make([]int, n), words: make([]bool, n)}
	for _, row := range t.Rows {
		l.name = max(l.name, prose.Width(prose.Plain(row.Head))+indent(row))
		for i, c := range row.Cells {
			l.text[i] = max(l.text[i], prose.Width(prose.Plain(c.Text)))
			if c.Mark != "" || c.Letters != "" {
				l.signs[i] = max(l.signs[i], len(" ~")+prose.Width(c.Letters))
			}
			for k, p := range c.Parts[:min(parts, len(c.Parts))] {
				if k == len(l.part[i]) {
					l.part[i] = append(l.part[i], 0)
				}
				l.part[i][k] = max(l.part[i][k], prose.Width(prose.Plain(p)))
			}
		}
	}
	l.name = min(l.name, maxName)
	for i, c := range t.Columns {
		l.words[i] = c.Words
		for _, word := range strings.Fields(prose.Plain(c.Head)) {
			l.text[i] += max(min(prose.Width(word), maxHeadWord)-l.column(i), 0)
		}
	}
	return l
}

// column returns the width of a column without its gap.
func (l layout) column(i int) int {
	width := l.text[i] + l.signs[i]
	for _, p := range l.part[i] {
		width += 1 + p
	}
	return width
}

// alike returns the layout with all columns as wide as the widest, for cells below each other.
func (l layout) alike() layout {
	n := len(l.text)
	all := layout{name: l.name, words: l.words, text: make([]int, n), signs: make([]int, n),
		part: make([][]int, n)}
	for i := range n {
		for k := range n {
			if l.words[k] {
				continue
			}
			all.text[i], all.signs[i] = max(all.text[i], l.text[k]), max(all.signs[i], l.signs[k])
			for p, width := range l.part[k] {
				if p == len(all.part[i]) {
					all.part[i] = append(all.part[i], 0)
				}
				all.part[i][p] = max(all.part[i][p], width)
			}
		}
	}
	return all
}

// width returns the width of a line.
func (l layout) width() int {
	width := l.name
	for i := range l.text {
		width += gap + l.column(i)
	}
	return width
}

// indent returns the indent of a row's head.
func indent(row doc.Row) int {
	if row.Group != "" {
		return 2
	}
	return 0
}

// table writes a table with as many parts of its cells as fit the width; words that do not fit next to them become
// notes below the rows. If not even its texts fit, it writes several tables below each other, or a line for each cell.
// Tables without the words of their marks have a legend.
func (w *Terminal) table(t doc.Table) {
	if len(t.Rows) == 0 {
		return
	}
	most := 0
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			most = max(most, len(c.Parts))
		}
	}
	below := withWordsBelow(t)
	long := w.Level == doc.Answer && len(t.Rows)*(len(t.Columns)+1) > screen
	for parts := most; parts >= 0; parts-- {
		if parts == most-1 && hasVerdicts(t) && !long {
			break // every verdict has its interval, unless that takes more than a screen of the answer
		}
		for _, t := range []doc.Table{t, below} {
			if l := newLayout(t, parts); l.width() <= w.width {
				w.grid(t, l)
				if parts < most || most == 0 {
					w.Faint(t.Legend)
				}
				return
			}
		}
	}
	var l layout
	widest, fullest := 0, most
	if long {
		fullest = 0
	}
	for parts := fullest; parts >= 0; parts-- {
		l, widest = newLayout(t, parts), 0
		for i := range t.Columns {
			widest = max(widest, l.name+gap+l.column(i))
		}
		if widest <= w.width {
			break
		}
	}
	if !t.Apart || widest > w.width {
		w.cells(t, newLayout(t, most))
		return
	}
	for from := 0; from < len(t.Columns); {
		width, to := l.name, from
		for ; to < len(t.Columns) && (to == from || width+gap+l.column(to) <= w.width); to++ {
			width += gap + l.column(to)
		}
		w.grid(between(t, from, to),
			layout{l.name, l.text[from:to], l.part[from:to], l.signs[from:to], l.words[from:to]})
		from = to
	}
	w.Faint(t.Legend)
}

// screen is the number of lines of a table with which a whole answer fits on 24 lines.
const screen = 14

// hasVerdicts reports whether cells have marks.
func hasVerdicts(t doc.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r doc.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c doc.Cell) bool { return c.Mark != "" && len(c.Parts) > 1 })
	})
}

// withWordsBelow returns a table without its columns of words, which become notes of the rows.
func withWordsBelow(t doc.Table) doc.Table {
	words := func(i int) bool { return t.Columns[i].Words }
	rows := slices.Clone(t.Rows)
	for i, row := range rows {
		rows[i].Cells = nil
		var notes []string
		for k, c := range row.Cells {
			switch {
			case !words(k):
				rows[i].Cells = append(rows[i].Cells, c)
			case c.Text != "":
				notes = append(notes, t.Columns[k].Head+": "+strings.Join(append([]string{c.Text}, c.Notes...), "; "))
			}
		}
		if last := len(rows[i].Cells) - 1; last >= 0 {
			rows[i].Cells[last].Notes = slices.Concat(rows[i].Cells[last].Notes, notes)
		}
	}
	var columns []doc.Column
	for i, c := range t.Columns {
		if !words(i) {
			columns = append(columns, c)
		}
	}
	t.Columns, t.Rows = columns, rows
	return t
}

// between returns the table with some of its columns.
func between(t doc.Table, from, to int) doc.Table {
	rows := slices.Clone(t.Rows)
	for i := range rows {
		rows[i].Cells = rows[i].Cells[from:to]
	}
	t.Columns, t.Rows = t.Columns[from:to], rows
	return t
}

// grid writes a line for each row.
func (w *Terminal) grid(t doc.Table, l layout) {
	w.heads(t, l)
	group := ""
	for _, row := range t.Rows {
		if row.Group != group {
			w.Paragraph("", "", row.Group)
		}
		group = row.Group
		lead := strings.Repeat(" ", indent(row))
		head := lead + prose.Plain(row.Head)
		if prose.Width(head) > l.name {
			w.Paragraph(lead, lead+"  ", row.Head)
			head = ""
		}
		line := prose.Left(head, l.name)
		for i, c := range row.Cells {
			line += strings.Repeat(" ", gap) + w.cell(c, l, i)
		}
		w.Line(line)
		w.notes(row)
	}
}

// wrapHead returns the lines of a heading. Words that are wider than a line end at slashes.
func wrapHead(text string, width int) []string {
	list := strings.Fields(prose.Plain(text))
	for i, word := range list {
		if prose.Width(word) > width {
			list[i] = strings.ReplaceAll(word, "/", "/ ")
		}
	}
	lines := prose.Wrap(strings.Join(list, " "), width)
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "/ ", "/")
	}
	return lines
}

// heads writes the headings of the columns, on as many lines as the longest needs.
func (w *Terminal) heads(t doc.Table, l layout) {
	var heads [][]string
	lines := 0
	for i, c := range t.Columns {
		head := wrapHead(c.Head, l.column(i))
		heads, lines = append(heads, head), max(lines, len(head))
	}
	for n := range lines {
		line := strings.Repeat(" ", l.name)
		for i, head := range heads {
			text := ""
			if at := n - lines + len(head); at >= 0 {
				text = head[at]
			}
			if prose.Width(text) <= l.text[i] && !t.Columns[i].Words {
				text = prose.Right(text, l.text[i])
			}
			line += strings.Repeat(" ", gap) + prose.Left(text, l.column(i))
		}
		w.Line(w.style(bold, strings.TrimRight(line, " ")))
	}
}

// cell returns a cell in the width of its column.
func (w *Terminal) cell(c doc.Cell, l layout, i int) string {
	text, code := prose.Right(prose.Plain(c.Text), l.text[i]), markCodes[c.Mark]
	if l.words[i] {
		text = prose.Left(prose.Plain(c.Text), l.text[i])
	}
	if l.signs[i] > 0 {
		text += " " + w.style(code, prose.Left(c.Mark.Sign(), 1)) + prose.Left(c.Letters, l.signs[i]-2)
	}
	for k, width := range l.part[i] {
		part := ""
		if k < len(c.Parts) {
			part = prose.Plain(c.Parts[k])
		}
		if k > 0 {
			text += " " + w.style(faint, part) + prose.Left("", width-prose.Width(part))
		} else {
			text += " " + prose.Right("", width-prose.Width(part)) + w.style(code, part)
		}
	}
	return text
}

// cells writes a line for each cell, with the name of its column, below the row's head.
func (w *Terminal) cells(t doc.Table, l layout) {
	name := 0
	for _, c := range t.Columns {
		name = max(name, prose.Width(prose.Plain(c.Head)))
	}
	l = l.alike()
	name = max(min(name, maxName, w.width-l.column(0)-3), minName)
	for _, row := range t.Rows {
		head := row.Head
		if row.Group != "" {
			head = row.Group + " · " + row.Head
		}
		w.Paragraph("", "  ", head)
		for i, c := range row.Cells {
			if c.Text == "" {
				continue
			}
			column := prose.Plain(t.Columns[i].Head)
			if prose.Width(column) > name {
				w.Paragraph("  ", "  ", column)
				column = ""
			}
			lead := "  " + prose.Left(column, name) + " "
			if t.Columns[i].Words || prose.Width(lead)+l.column(i) > w.width {
				text := strings.Join(append([]string{c.Text, c.Mark.Sign()}, c.Parts...), " ")
				w.Paragraph(lead, strings.Repeat(" ", prose.Width(lead)), text)
				continue
			}
			if note := t.Columns[i].Note; note != "" && len(c.Parts) == 0 {
				w.Line(lead + prose.Right(prose.Plain(c.Text), l.text[i]) + " " + w.style(faint, note))
				continue
			}
			w.Line(lead + w.cell(c, l, i))
		}
		w.notes(row)
	}
}

// notes writes the second line of a row's head, and the notes of its cells, each once.
func (w *Terminal) notes(row doc.Row) {
	var list []string
	if row.Sub != "" && w.Level > doc.Answer {
		list = append(list, row.Sub)
	}
	for _, c := range row.Cells {
		for _, n := range c.Notes {
			if !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	for _, n := range list {
		w.Paragraph("    ", "    ", n)
	}
}
