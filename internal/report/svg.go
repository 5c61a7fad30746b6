package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
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
	in = in.inStorageUnits()
	d := &drawer{in: in, page: newPage(in)}
	d.files = []File{{"card.svg", card(in)}}
	if len(d.page.Answer.Rows) > 0 {
		d.answer(d.page.Answer)
	}
	if len(d.page.Answer.Folded) > 0 {
		d.answer(d.page.Answer.Only(d.page.Answer.Folded))
	}
	for _, f := range d.page.Forests {
		d.forest(f)
	}
	for _, t := range d.page.Trends.Rows {
		s := d.begin(t.Case, t.Metric+", by number of "+t.Option)
		s.Paragraph(prose.Typeset(prose.Plain(t.Sentence)), bodyFont)
		d.figure(s, figure{Axis: t.Axis, Plot: t.Plot})
		d.end(t.File, s)
	}
	d.paths()
	for _, l := range slices.Concat(d.page.Latency.Shown, d.page.Latency.Folded) {
		d.latency(l)
	}
	for _, c := range slices.Concat(d.page.Cases.Shown, d.page.Cases.Folded) {
		d.runs(c)
	}
	d.order()
	for _, t := range slices.Concat(d.page.Timelines.Shown, d.page.Timelines.Folded) {
		s := d.begin(t.Case, "latency, "+t.Span)
		var keys []chart.Entry
		for i, k := range timelineKinds {
			keys = append(keys, chart.Entry{Name: k.name, Index: i})
		}
		s.Legend(keys, smallFont)
		d.figure(s, t.Figure)
		d.end(t.File, s)
	}
	for _, x := range slices.Concat(d.page.Series.Shown, d.page.Series.Folded) {
		s := d.begin(x.Case, x.Name+" within the runs, a line for each run")
		d.figure(s, x.Figure)
		d.end(x.File, s)
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

// nameFigures names the figures of a page, in its order.
func (p *page) nameFigures() {
	names := figureNames{}
	for i := range p.Forests {
		p.Forests[i].File = names.unique("forest", p.Forests[i].ID)
	}
	for i := range p.Trends.Rows {
		t := &p.Trends.Rows[i]
		t.File = names.unique("scale", t.Case, t.Metric[:strings.LastIndex(t.Metric, ",")], t.Option)
	}
	if p.Paths != nil {
		for i := range p.Paths.Sections {
			p.Paths.Sections[i].File = names.unique("paths", p.Paths.Sections[i].Title)
		}
	}
	for _, list := range [][]latencySection{p.Latency.Shown, p.Latency.Folded} {
		for i := range list {
			list[i].File = names.unique("percentiles", list[i].Case, list[i].Name)
		}
	}
	for _, list := range [][]caseRuns{p.Cases.Shown, p.Cases.Folded} {
		for i := range list {
			list[i].File = names.unique("runs", list[i].Case, list[i].Metric)
		}
	}
	for _, list := range [][]timelineSection{p.Timelines.Shown, p.Timelines.Folded} {
		for i := range list {
			list[i].File = names.unique("change", list[i].Case)
		}
	}
	for _, list := range [][]seriesSection{p.Series.Shown, p.Series.Folded} {
		for i := range list {
			list[i].File = names.unique("series", list[i].Case, list[i].Name)
		}
	}
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
	in    Input
	page  *page
	files []File
}

// begin returns a sheet with a heading.
func (d *drawer) begin(title, about string) *chart.Sheet {
	s := chart.NewSheet(sheetWidth, prose.Plain(title+", "+about))
	d.head(s, title, about)
	return s
}

// head writes the heading of a sheet.
func (d *drawer) head(s *chart.Sheet, title, about string) {
	s.Paragraph(prose.Typeset(prose.Plain(title)), titleFont)
	s.Paragraph(prose.Typeset(prose.Plain(about)), smallFont)
	s.Y += 10
}

// end writes the notes and the origin below a figure, and adds its file.
func (d *drawer) end(name string, s *chart.Sheet, notes ...string) {
	s.Y += 8
	for _, text := range append(notes, "Knotmeter"+d.experiment()) {
		s.Paragraph(prose.Typeset(prose.Plain(text)), smallFont)
	}
	d.files = append(d.files, File{name + ".svg", s.File(0)})
}

// experiment returns the id of the experiment, after a comma.
func (d *drawer) experiment() string {
	if id := d.in.Comparison.Experiment; id != "" {
		return ", experiment " + id
	}
	return ""
}

// figure draws a figure with its axis and columns, whose names stand below.
func (d *drawer) figure(s *chart.Sheet, f figure) {
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
}

// answer draws the matrix of the first screen.
func (d *drawer) answer(h answer) {
	const first, least = 260.0, 188.0
	n := float64(len(h.Columns))
	width := max(sheetWidth, 2*chart.Edge+first+n*least)
	s := chart.NewSheet(width, prose.Plain(d.in.Comparison.Headline))
	d.head(s, d.in.Comparison.Headline, d.in.Comparison.Summary)
	s.Define(d.page.Shapes)
	column := (s.Inner() - first) / n
	x := func(i int) float64 { return chart.Edge + first + float64(i)*column }
	top := s.Y
	for i, c := range h.Columns {
		y := s.Lines(prose.Plain(c.Short), x(i), top, chart.Start, strongFont, column-14, 3)
		s.Y = max(s.Y, s.Lines(c.Note, x(i), y, chart.Start, smallFont, column-14, 1))
	}
	s.Y += 6
	for _, r := range h.Shown().Rows {
		s.Rule(chart.Edge, s.Y, s.Inner())
		s.Y += 8
		top := s.Y
		y := s.Lines(prose.Typeset(prose.Plain(r.Title())), chart.Edge, top, chart.Start, strongFont, first-18, 4)
		s.Y = s.Lines(prose.Plain(r.Sub), chart.Edge, y, chart.Start, smallFont, first-18, 4)
		for i, c := range r.Cells {
			s.Y = max(s.Y, d.cell(s, c, x(i), top, column-14))
		}
		s.Y += 6
	}
	s.Y += 8
	s.Verdicts(d.in.Comparison.Delta, smallFont)
	d.end(h.File, s, append(d.caveats(), nonEmpty(h.Shown().Rest(), d.in.Comparison.Scope)...)...)
}

// cell draws a value and its comparison, and returns the y of its end, px.
func (d *drawer) cell(s *chart.Sheet, c answerCell, x, y, width float64) float64 {
	font := chart.Font{Size: 17, Bold: true}
	if c.Unit == "" {
		font = smallFont
	}
	y = s.Lines(prose.Typeset(prose.Plain(c.Value())), x, y, chart.Start, font, width, 2)
	if c.Word == "" {
		return s.Lines(prose.Typeset(prose.Plain(c.Share)), x, y, chart.Start, smallFont, width, 2)
	}
	s.Mark(c.Mark, x+5, y+10, 14)
	changeFont := chart.Font{Size: 14, Bold: c.Mark != chart.Undecided, Class: string(c.Mark)}
	y = s.Lines(typesetUnbroken(prose.Plain(c.Change))+" "+c.Word, x+15, y+1, chart.Start, changeFont, width-15, 2)
	y = s.Lines(typesetUnbroken(prose.Plain(c.Range)), x, y, chart.Start, smallFont, width, 2)
	y = s.Lines(c.Why, x, y, chart.Start, smallFont, width, 4)
	return y + s.Place(c.Bar, x, y, width)
}

// Columns of a forest plot: the left edge of the plot and of the verdict, the right edges of the others, px.
const (
	forestPlot   = 236.0
	forestEnd    = 600.0
	forestChange = 690.0
	forestRange  = 840.0
	forestWord   = 854.0
)

// forest draws a forest plot.
func (d *drawer) forest(f forest) {
	s := d.begin(figureTitle(d.in.Comparison), f.Title+". "+f.About)
	s.Define(d.page.Shapes)
	for _, g := range f.Groups {
		s.Rule(chart.Edge, s.Y, s.Inner())
		s.Y += 6
		s.Paragraph(prose.Plain(g.Case), strongFont)
		about := g.Metric + ", " + g.Better
		if g.Against != "" {
			about += ", against " + g.Against
		}
		s.Paragraph(prose.Plain(about), smallFont)
		for _, r := range g.Rows {
			height := s.Place(r.Plot, forestPlot, s.Y, forestEnd-forestPlot)
			base := s.Y + height/2 + 5
			s.Text(typesetUnbroken(change(r.Change)), forestChange, base, chart.End, strongFont, forestChange-forestEnd-6)
			s.Text(typesetUnbroken(interval(r.CI)), forestRange, base, chart.End, smallFont, forestRange-forestChange-6)
			s.Text(verdictWord(r.Row), forestWord, base, chart.Start, chart.Font{Size: 13, Class: class(r.Row)},
				s.Width-forestWord-8)
			names := s.Lines(prose.Plain(r.Target), chart.Edge, s.Y+5, chart.Start, bodyFont, forestPlot-chart.Edge-12, 5)
			if why := whyUndecided(r.Row); why != "" {
				names = s.Lines("undecided: "+why, chart.Edge, names, chart.Start, smallFont, forestPlot-chart.Edge-12, 3)
			}
			s.Y = max(s.Y+height, names+4)
		}
		for _, m := range g.Missing {
			s.Paragraph(prose.Plain(m.Target+" was not measured: "+m.Reason), smallFont)
		}
		s.Y += 4
	}
	s.Y += s.Place(f.Axis, forestPlot, s.Y, forestEnd-forestPlot)
	against := "change against " + prose.Plain(prose.Enumerate(baselines(d.in.Comparison)))
	s.Y = s.Lines(against, (forestPlot+forestEnd)/2, s.Y, chart.Middle, smallFont, s.Inner()-160, 2) + 12
	s.Verdicts(d.in.Comparison.Delta, smallFont)
	notes := append(d.caveats(), nonEmpty(f.Rest())...)
	for _, n := range d.in.Comparison.NotMeasured {
		if n.EveryCase() {
			notes = append(notes, fmt.Sprintf("%s was not measured: %s.", n.Target, n.Reason))
		}
	}
	d.end(f.File, s, append(notes, nonEmpty(d.in.Comparison.Scope)...)...)
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

// paths draws the bars of paths and targets.
func (d *drawer) paths() {
	if d.page.Paths == nil {
		return
	}
	var keys []chart.Entry
	for i, name := range d.page.Paths.Columns {
		keys = append(keys, chart.Entry{Name: prose.Plain(name), Index: i, Bars: true})
	}
	for _, section := range d.page.Paths.Sections {
		if section.Figure.Plot == "" {
			continue
		}
		s := d.begin(section.Title, section.About+", median of each target")
		s.Legend(keys, bodyFont)
		d.figure(s, section.Figure)
		d.end(section.File, s)
	}
}

// latency draws the distributions of a case.
func (d *drawer) latency(l latencySection) {
	s := d.begin(l.Case, l.Name+" by percentile, lower is better")
	var keys []chart.Entry
	for _, t := range l.Targets {
		keys = append(keys, chart.Entry{Name: prose.Plain(t.Target), Index: t.Index})
	}
	s.Legend(keys, bodyFont)
	d.figure(s, figure{Axis: l.Axis, Plot: l.Plot})
	d.end(l.File, s, "Thick lines: all runs of a target. Thin lines: single runs.")
}

// runs draws every run of a case.
func (d *drawer) runs(c caseRuns) {
	s := d.begin(c.Case, c.Metric+", "+c.Better)
	d.figure(s, c.Figure)
	notes := []string{"A dot is a run. Line: median. Box: quartiles. Whiskers: the furthest run within 1.5 " +
		"interquartile ranges. A cross is an invalid run, a ring a run whose block was repeated: neither counts."}
	if c.Bound != "" {
		notes = append(notes, "Dashed: "+c.Bound+".")
	}
	d.end(c.File, s, append(notes, nonEmpty(c.Thinned)...)...)
}

// order draws when the runs happened.
func (d *drawer) order() {
	if d.page.Order == nil {
		return
	}
	const names = 250.0
	s := d.begin("When the runs happened", "minutes since the start")
	for _, r := range d.page.Order.Rows {
		y := s.Lines(prose.Plain(r.Target), chart.Edge, s.Y, chart.Start, bodyFont, names-14, 3)
		y = s.Lines(r.Count, chart.Edge, y, chart.Start, smallFont, names-14, 2)
		s.Place(r.Strip, chart.Edge+names, s.Y+4, s.Inner()-names)
		s.Y = max(y, s.Y+26) + 8
	}
	s.Y += s.Place(d.page.Order.Axis, chart.Edge+names, s.Y, s.Inner()-names)
	d.end("order", s, "Solid: measuring. Pale: a site was made or removed, or a run started or ended. Empty: other "+
		"targets had their turn. A cross marks an invalid run.")
}
