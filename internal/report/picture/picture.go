// Package picture draws the forest plot, and the answer as a card, as a PNG, for places that show no HTML: wikis,
// chats, slides, links.
//
// It stands beside chart, which draws the same plot for the page: the axis, its ticks and the shapes of marks are
// chart's. A shape says what a verdict is and a colour only repeats it; what is undecided is hollow and grey, what is
// primary bold. Every text comes from report. Letters that the Go fonts do not have (they have Latin, Greek and
// Cyrillic) become empty boxes.
package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"math"

	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// A Picture is what is drawn, from top to bottom. Its texts have one line each; those too wide are
// wrapped, or cut where they are names.
type Picture struct {
	Title    string
	Summary  string
	Against  string // what the change is against, for the axis
	Delta    float64
	Sections []Section
	Notes    []string // below
}

// A Section is rows under a heading. All sections have one common axis.
type Section struct {
	Title, About string
	Groups       []Group
}

// A Group is one metric of one case.
type Group struct {
	Case, Metric string
	Primary      bool
	Rows         []Row
}

// A Row is a target.
type Row struct {
	Target, Change, Range, Word string
	Interval                    chart.Interval
}

// A colour is 0xRRGGBB. The values are those of the page in daylight.
type colour uint32

const (
	paper  colour = 0xffffff
	ink    colour = 0x1b2227
	muted  colour = 0x5c6870
	rule   colour = 0xe2e6e8
	zero   colour = 0x8a969e
	band   colour = 0xdbe9f0
	better colour = 0x0b6e99
	worse  colour = 0xb34a12
)

// RGBA makes it a [color.Color].
func (c colour) RGBA() (r, g, b, a uint32) {
	return uint32(c>>16&0xff) * 0x101, uint32(c>>8&0xff) * 0x101, uint32(c&0xff) * 0x101, 0xffff
}

// Columns and lines, in points.
const (
	width       = 960
	edge        = 28 // outside of which nothing is drawn
	targetWidth = 196
	plotLeft    = 240
	plotRight   = 640
	changeRight = 718
	rangeRight  = 846
	wordLeft    = 862
	rowHeight   = 24
)

// Encode writes the picture as a PNG of two pixels to the point.
func Encode(w io.Writer, p Picture) error {
	d, err := newPage(p)
	if err != nil {
		return err
	}
	return encode(w, d.draw())
}

func encode(w io.Writer, drawn *image.RGBA) error {
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(w, indexed(drawn)); err != nil {
		return fmt.Errorf("write the picture as PNG: %w", err)
	}
	return nil
}

// A page is a picture in the making: what is drawn next stands at y.
type page struct {
	Picture
	canvas
	axis chart.Forest
	y    float64
}

func newPage(p Picture) (*page, error) {
	fonts, err := newFonts()
	if err != nil {
		return nil, err
	}
	axis := chart.NewForest(p.intervals(), p.Delta)
	return &page{Picture: p, canvas: canvas{fonts: fonts}, axis: axis, y: edge - 6}, nil
}

func (d *page) draw() *image.RGBA {
	d.paragraph(d.Title, titleStyle, ink, 28)
	d.paragraph(d.Summary, leadStyle, ink, 21)
	for _, s := range d.Sections {
		d.section(s)
	}
	d.y += 14
	if len(d.Sections) > 0 {
		d.legend()
		d.y += 6
	}
	for _, n := range d.Notes {
		d.paragraph(n, smallStyle, muted, 17)
	}
	return d.image(width, d.y+edge-8)
}

func (p Picture) intervals() []chart.Interval {
	var list []chart.Interval
	for _, s := range p.Sections {
		for _, g := range s.Groups {
			for _, r := range g.Rows {
				list = append(list, r.Interval)
			}
		}
	}
	return list
}

// paragraph writes a text in lines of a height, broken between words.
func (d *page) paragraph(s string, look style, shade colour, height float64) {
	for _, line := range d.lines(s, look, width-2*edge, math.MaxInt) {
		d.y += height
		d.text(line, point{edge, d.y - height*0.25}, left, look, shade)
	}
}

func (d *page) section(s Section) {
	d.y += 20
	d.paragraph(s.Title, headingStyle, ink, 20)
	d.paragraph(s.About, smallStyle, muted, 16)
	d.y += 6
	for _, g := range s.Groups {
		d.group(g)
	}
	d.ticks()
}

func (d *page) group(g Group) {
	look := plainStyle
	if g.Primary {
		look = strongStyle
	}
	d.box(edge, d.y, width-edge, d.y+0.5, rule)
	d.y += 22
	metric := fit(d.fonts[smallStyle], g.Metric, 260)
	room := width - 2*edge - measure(d.fonts[smallStyle], metric) - 10
	name := fit(d.fonts[look], g.Case, room)
	d.text(name, point{edge, d.y - 6}, left, look, ink)
	d.text(metric, point{edge + measure(d.fonts[look], name) + 10, d.y - 6}, left, smallStyle, muted)
	for _, r := range g.Rows {
		d.row(look, r)
	}
	d.y += 5
}

func (d *page) row(look style, r Row) {
	top, base := d.y, d.y+rowHeight/2+4.5
	d.y += rowHeight
	d.ground(top)
	d.text(fit(d.fonts[plainStyle], r.Target, targetWidth-10), point{edge + 10, base}, left, plainStyle, ink)
	d.interval(r.Interval, top+rowHeight/2)
	d.text(r.Change, point{changeRight, base}, right, look, ink)
	d.text(r.Range, point{rangeRight, base}, right, plainStyle, muted)
	word := fit(d.fonts[look], r.Word, width-wordLeft-8)
	d.text(word, point{wordLeft, base}, left, look, shadeOf(r.Interval.Mark))
}

// x is where a change stands.
func (d *page) x(change float64) float64 {
	return plotLeft + d.axis.At(change)/100*(plotRight-plotLeft)
}

// ground is what a row is drawn on: the band of differences that do not matter, and lines at the ticks.
func (d *page) ground(top float64) {
	if d.Delta > 0 {
		d.box(d.x(-d.Delta), top, d.x(d.Delta), top+rowHeight, band)
	}
	for _, t := range d.axis.Ticks() {
		shade := rule
		if t == 0 {
			shade = zero
		}
		d.box(d.x(t), top, d.x(t)+0.5, top+rowHeight, shade)
	}
}

func (d *page) ticks() {
	d.y += 15
	for _, t := range d.axis.Ticks() {
		d.text(chart.TickLabel(t), point{d.x(t), d.y - 3}, middle, smallStyle, muted)
	}
	d.y += 15
	against := fit(d.fonts[smallStyle], "change against "+d.Against, plotRight-plotLeft+2*40)
	d.text(against, point{(plotLeft + plotRight) / 2, d.y - 3}, middle, smallStyle, muted)
}

func shadeOf(m chart.Mark) colour {
	switch m {
	case chart.Better:
		return better
	case chart.Worse:
		return worse
	case chart.Same:
		return ink
	}
	return muted
}

// interval draws a mark and its whiskers, with an arrow at an end that is outside the axis or has no bound.
func (d *page) interval(r chart.Interval, y float64) {
	if !r.Known() {
		return
	}
	thick, shade := 1.3, shadeOf(r.Mark)
	if r.Primary {
		thick = 2.4
	}
	d.stroke(point{d.x(r.Lo), y}, point{d.x(r.Hi), y}, thick, shade)
	for way, v := range map[float64]float64{-1: r.Lo, 1: r.Hi} {
		x := d.x(v)
		if !d.axis.Outside(v) {
			d.stroke(point{x, y - 4}, point{x, y + 4}, thick, shade)
			continue
		}
		d.polygon(shade, point{x + 1.5*way, y}, point{x - 6*way, y - 4.5}, point{x - 6*way, y + 4.5})
	}
	d.mark(r.Mark, point{d.x(r.Change), y}, r.Primary)
}

// mark draws the shape of a verdict, a hollow circle for what is undecided; larger for a primary comparison.
func (d *page) mark(m chart.Mark, at point, primary bool) {
	size := markSize
	if primary {
		size = 6.2
	}
	d.canvas.mark(m, at, size)
}

// markSize is that of a mark which is not primary, in points.
const markSize = 4.6

var legend = []struct {
	mark chart.Mark
	text string
}{{chart.Better, "better"}, {chart.Worse, "worse"}, {chart.Same, "equivalent"}, {chart.Undecided, "undecided"}}

// legend says what the marks mean.
func (d *page) legend() {
	d.y += 20
	x, y := float64(edge)+6, d.y-9
	for _, m := range legend {
		d.mark(m.mark, point{x, y}, true)
		d.text(m.text, point{x + 12, y + 4}, left, smallStyle, ink)
		x += 12 + measure(d.fonts[smallStyle], m.text) + 26
	}
	if d.Delta > 0 {
		d.box(x-6, y-7, x+12, y+7, band)
		text := fmt.Sprintf("within ±%.3g %%: too small to matter", d.Delta*100)
		d.text(text, point{x + 19, y + 4}, left, smallStyle, ink)
	}
}
