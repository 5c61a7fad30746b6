package report

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// A File is one of the files of a format that writes several.
type File struct{ Name, Text string }

// figureFile matches the names of the files that svgFiles creates.
var figureFile = regexp.MustCompile(
	`^(card|order|answer(-exploratory)?|(forest|scale|paths|percentiles|runs|change|series)(-[a-z0-9.-]*)?)\.svg$`)

// svgFiles draws the card and each figure of the page.
func svgFiles(in Input) ([]File, error) {
	p := newPage(in)
	d := &drawer{in: in, shapes: p.Shapes, files: []File{{"card.svg", card(in)}}}
	for _, b := range slices.Concat(p.Top, p.Sections) {
		d.block(b)
	}
	return d.files, nil
}

// figureNames makes unique names for figures in the page and as files. It counts the uses of each name.
type figureNames map[string]int

// unique joins parts with characters that every file system accepts, and appends a number to a name that was used
// before.
func (n figureNames) unique(parts ...string) string {
	name := strings.ToLower(strings.Join(nonEmpty(parts...), "-"))
	name = strings.Trim(strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.'
	}), "-"), ".")
	name = name[:min(len(name), 80)]
	if n[name]++; n[name] > 1 {
		return n.unique(fmt.Sprintf("%s-%d", name[:min(len(name), 70)], n[name]))
	}
	return name
}

// The fonts of the files.
var (
	titleFont  = chart.Font{Size: 20, Bold: true}
	strongFont = chart.Font{Size: 14, Bold: true}
	bodyFont   = chart.Font{Size: 14}
	smallFont  = chart.Font{Size: 13, Class: "muted"}
)

const (
	sheetWidth = 960.0 // px
	axisWidth  = 84.0  // px, of the labels of values
)

// A drawer draws the figures of a page as files.
type drawer struct {
	in     Input
	shapes template.HTML // that rows of forest plots refer to
	files  []File
}

// block draws the figures of a block, and its tables with names.
func (d *drawer) block(b doc.Block) {
	for _, part := range b.Parts {
		switch part := part.(type) {
		case doc.Figure:
			d.figure(b, part)
		case doc.Table:
			d.table(b, part)
		case doc.Choice:
			d.table(b, part.Options[0].Table)
		case doc.Block:
			part.About = cmp.Or(part.About, b.About)
			d.block(part)
		}
	}
}

// hasVerdicts reports whether a cell has a mark.
func hasVerdicts(t doc.Table) bool {
	return slices.ContainsFunc(t.Rows, func(row doc.Row) bool {
		return slices.ContainsFunc(row.Cells, func(c doc.Cell) bool { return c.Mark != "" })
	})
}

// begin returns a sheet with a heading.
func (d *drawer) begin(width float64, title, about string) *chart.Sheet {
	s := chart.NewSheet(width, prose.Plain(title+", "+about))
	s.Paragraph(prose.Typeset(prose.Plain(title)), titleFont)
	s.Paragraph(prose.Typeset(prose.Plain(about)), smallFont)
	s.Y += 10
	return s
}

// end writes the notes and the origin below a figure, and adds its file.
func (d *drawer) end(name string, s *chart.Sheet, notes ...string) {
	s.Y += 8
	origin := "Knotmeter"
	if id := d.in.Comparison.Experiment; id != "" {
		origin += ", experiment " + id
	}
	for _, text := range append(nonEmpty(notes...), origin) {
		s.Paragraph(prose.Typeset(prose.Plain(text)), smallFont)
	}
	d.files = append(d.files, File{name + ".svg", s.File(0)})
}

// figure draws a figure with its axis and columns, whose names stand below, and the introduction of its block.
func (d *drawer) figure(b doc.Block, f doc.Figure) {
	s := d.begin(sheetWidth, f.Title, f.Note)
	s.Legend(f.Legend, bodyFont)
	x, width := chart.Edge+axisWidth, s.Inner()-axisWidth
	s.Place(f.Axis, chart.Edge, s.Y, axisWidth-8)
	s.Y += s.Place(f.Plot, x, s.Y, width) + 4
	below := s.Y
	for i, c := range f.Columns {
		column := width / float64(len(f.Columns))
		middle := x + (float64(i)+0.5)*column
		y := s.Lines(prose.Plain(c.Name), middle, below, chart.Middle, strongFont, column-10, 4)
		y = s.Lines(prose.Typeset(prose.Plain(c.Note)), middle, y, chart.Middle, smallFont, column-10, 4)
		s.Y = max(s.Y, y)
	}
	d.end(f.Name, s, f.Caption, b.About)
}

// Widths of the columns of a table, px.
const (
	headColumn = 208.0 // the names of rows
	leadColumn = 188.0 // the least of one among columns of equal widths
	wordColumn = 170.0 // the most of one next to a plot
	columnGap  = 14.0
)

// sheetColumns returns the width of the sheet of a table, and those of its columns: those of plots share what the
// others leave; without plots all have the same.
func sheetColumns(t doc.Table) (width float64, columns []float64) {
	n, plots, used := float64(len(t.Columns)), 0.0, headColumn
	columns = make([]float64, len(t.Columns))
	for i, c := range t.Columns {
		if c.Axis != "" {
			plots++
			continue
		}
		columns[i] = strongFont.Width(c.Head)
		for _, row := range t.Rows {
			columns[i] = max(columns[i], bodyFont.Width(typesetUnbroken(prose.Plain(row.Cells[i].Text)))+2)
			if row.Cells[i].Mark != "" {
				columns[i] = max(columns[i], strongFont.Width(row.Cells[i].Text)+16)
			}
		}
		columns[i] = min(columns[i]+columnGap, wordColumn)
		used += columns[i]
	}
	width = sheetWidth
	if plots == 0 {
		width = max(width, 2*chart.Edge+headColumn+n*leadColumn)
	}
	for i, c := range t.Columns {
		switch {
		case plots == 0:
			columns[i] = (width - 2*chart.Edge - headColumn) / n
		case c.Axis != "":
			columns[i] = (width - 2*chart.Edge - used) / plots
		}
	}
	return width, columns
}

// table draws a table with a name, and below what must be known of its verdicts.
func (d *drawer) table(b doc.Block, t doc.Table) {
	if t.Name == "" {
		return
	}
	title, about, verdicts := b.Title, b.About, hasVerdicts(t)
	switch {
	case t.Lead:
		title, about = d.in.Comparison.Headline, d.in.Comparison.Summary
	case verdicts:
		title, about = figureTitle(d.in.Comparison), b.Title+". "+b.About
	}
	chunks := t.Chunks()
	width, _ := sheetColumns(chunks[0])
	s := d.begin(width, title, about)
	s.Define(d.shapes)
	for _, chunk := range chunks {
		drawTable(s, chunk)
	}
	notes := []string{html.Rest(min(len(t.Rows), maxRows), len(t.Rows)), t.Drawn}
	if !verdicts {
		d.end(t.Name, s, append(notes, t.Legend)...)
		return
	}
	s.Y += 8
	s.Verdicts(d.in.Comparison.Delta, smallFont)
	d.end(t.Name, s, slices.Concat(d.caveats(), notes, []string{d.in.Comparison.Scope})...)
}

// drawTable draws the cells of a table below its heads.
func drawTable(s *chart.Sheet, t doc.Table) {
	_, columns := sheetColumns(t)
	top, x := s.Y, chart.Edge+headColumn
	for i, c := range t.Columns {
		if c.Axis != "" {
			s.Y = max(s.Y, top+s.Place(c.Axis, x, top, columns[i]-columnGap))
		}
		y := s.Lines(prose.Plain(c.Head), x, top, chart.Start, strongFont, columns[i]-columnGap, 3)
		s.Y = max(s.Y, s.Lines(prose.Plain(c.Note), x, y, chart.Start, smallFont, columns[i]-columnGap, 2))
		x += columns[i]
	}
	s.Y += 6
	group := ""
	for _, row := range t.Rows[:min(len(t.Rows), maxRows)] {
		switch {
		case t.Lead:
			s.Rule(chart.Edge, s.Y, s.Inner())
			row.Head = strings.Join(nonEmpty(row.Group, row.Head), " · ")
		case row.Group != group:
			group = row.Group
			s.Rule(chart.Edge, s.Y, s.Inner())
			s.Y += 6
			s.Paragraph(prose.Typeset(prose.Plain(group)), strongFont)
		}
		top, x := s.Y, chart.Edge+headColumn
		font := bodyFont
		if t.Lead {
			font = strongFont
		}
		y := s.Lines(prose.Plain(row.Head), chart.Edge, top+5, chart.Start, font, headColumn-columnGap, 5)
		s.Y = s.Lines(prose.Plain(row.Sub), chart.Edge, y, chart.Start, smallFont, headColumn-columnGap, 8)
		for i, c := range row.Cells {
			s.Y = max(s.Y, drawCell(s, c, font, x, top, columns[i]-columnGap))
			x += columns[i]
		}
		s.Y += 6
	}
}

// drawCell draws a cell, whose text has a font, with its verdict, and returns the y of its end, px.
func drawCell(s *chart.Sheet, c doc.Cell, font chart.Font, x, y, width float64) float64 {
	text, parts := strings.TrimSpace(c.Text+" "+c.Letters), prose.Typeset(prose.Plain(strings.Join(c.Parts, " ")))
	if c.Best {
		text = "★ " + text
	}
	text = typesetUnbroken(prose.Plain(text))
	verdict := chart.Font{Size: 14, Bold: c.Mark != doc.Undecided, Class: string(c.Mark)}
	switch {
	case c.Mark == "" || parts != "":
		y = s.Lines(text, x, y+5, chart.Start, font, width, 4)
	default:
		s.Mark(c.Mark, x+5, y+14, 14)
		y = s.Lines(text, x+15, y+5, chart.Start, verdict, width-15, 4)
	}
	if parts != "" {
		s.Mark(c.Mark, x+5, y+10, 14)
		y = s.Lines(parts, x+15, y+1, chart.Start, verdict, width-15, 3)
	}
	for _, n := range slices.Concat(c.Notes, c.More) {
		y = s.Lines(prose.Typeset(prose.Plain(n)), x, y, chart.Start, smallFont, width, 4)
	}
	if c.Plot == "" {
		return y
	}
	if text == "" {
		y -= 5
	}
	return y + s.Place(c.Plot, x, y, width)
}

// caveats returns the warnings that belong to comparisons.
func (d *drawer) caveats() []string {
	c := d.in.Comparison
	warnings := warningSentences(c.Warnings[:min(len(c.Warnings), maxNotes)])
	return slices.Concat(nonEmpty(unpaired(d.in)), sessionChanges(c), warnings)
}

// unpaired returns the warning about comparisons without blocks; empty for paired ones.
func unpaired(in Input) string {
	if in.Comparison.Paired {
		return ""
	}
	return unpairedText
}

// figureTitle names the compared targets, or their number if the names need more than two lines.
func figureTitle(c compare.Comparison) string {
	text := prose.Plain(title(c))
	if n := len(comparedTargets(c)); n > 1 && prose.Width(text) > 120 {
		return fmt.Sprintf("%d targets against %s", n, prose.Plain(prose.Enumerate(baselines(c))))
	}
	return text
}
