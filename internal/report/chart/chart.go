// Package chart draws the figures of the report as inline SVG: numbers and labels in, markup out. It knows nothing of
// experiments. Colours and type come from the style sheet of the page, by class names, so that light, dark and print
// share one file.
//
// Every figure is as wide as its container: positions along x are percentages, or thousandths in an inner figure that
// is stretched to the width; positions along y are pixels, and text keeps its size. So the same markup works on a phone
// and on a large screen. The markup is short, because a page may have many figures.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// A Caption describes a figure for screen readers. ID is the id of the title element, unique in the page. A figure
// without a title is hidden from screen readers: the text next to it has the same content.
type Caption struct{ ID, Title string }

// A canvas collects the elements of one figure.
type canvas struct {
	b      strings.Builder
	height float64
}

// newCanvas begins a figure; height is in pixels.
func newCanvas(class string, height float64, caption Caption) *canvas {
	c := &canvas{height: height}
	fmt.Fprintf(&c.b, `<svg class="%s" height="%s"`, html.EscapeString(class), decimal2(height))
	if caption.Title == "" {
		c.b.WriteString(` aria-hidden="true">`)
		return c
	}
	fmt.Fprintf(&c.b, ` role="img" aria-labelledby="%[1]s"><title id="%[1]s">%[2]s</title>`,
		html.EscapeString(caption.ID), html.EscapeString(caption.Title))
	return c
}

// done ends the figure and returns its markup.
func (c *canvas) done() template.HTML {
	c.b.WriteString("</svg>")
	// Every text above went through html.EscapeString; everything else is a number.
	return template.HTML(c.b.String())
}

// decimal2 formats a coordinate with at most two decimals, so that output does not depend on the last bit.
func decimal2(v float64) string { return rounded(v, 2) }

// decimal1 formats a coordinate of an inner figure, in thousandths of its width or in pixels.
func decimal1(v float64) string { return rounded(v, 1) }

func rounded(v float64, decimals int) string {
	s := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', decimals, 64), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// stretch begins an inner figure of stretchedWidth units over the whole width; y is in pixels. The style sheet keeps
// its lines from being stretched too. Texts would be stretched, so they are drawn outside, in percent of the width.
func (c *canvas) stretch() {
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %d %s" preserveAspectRatio="none">`, stretchedWidth, decimal2(c.height))
}

// stretchedWidth is the width of an inner figure in its own units. Its paths are drawn in these, because a path has no
// percentages.
const stretchedWidth = 1000

// stretched returns the position in an inner figure of a percentage of the width.
func stretched(percent float64) float64 { return percent * (stretchedWidth / 100) }

// unstretch ends the inner figure.
func (c *canvas) unstretch() { c.b.WriteString("</svg>") }

// stroke draws a path of the inner figure; it draws nothing if d is empty.
func (c *canvas) stroke(class, d string) {
	if d != "" {
		fmt.Fprintf(&c.b, `<path class="%s" d="%s"/>`, class, d)
	}
}

// line draws from (x1, y1) to (x2, y2); x is in percent of the width, y in pixels.
func (c *canvas) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line x1="%s%%" y1="%s" x2="%s%%" y2="%s"/>`,
		decimal2(x1), decimal2(y1), decimal2(x2), decimal2(y2))
}

// text writes s at (x, y); anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, s string) {
	fmt.Fprintf(&c.b, `<text x="%s%%" y="%s" text-anchor="%s">%s</text>`,
		decimal2(x), decimal2(y), anchor, html.EscapeString(s))
}

// path draws a shape at (x, y); d is relative to that point, in pixels.
func (c *canvas) path(class string, x, y float64, d, title string) {
	fmt.Fprintf(&c.b, `<svg x="%s%%" y="%s" class="at"><path class="%s" d="%s"`, decimal2(x), decimal2(y), class, d)
	if title == "" {
		c.b.WriteString(`/></svg>`)
		return
	}
	fmt.Fprintf(&c.b, `>%s</path></svg>`, titleElement(title))
}

func (c *canvas) circle(class string, x, y, r float64, title string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s%%" cy="%s" r="%s">%s</circle>`,
		class, decimal2(x), decimal2(y), decimal2(r), titleElement(title))
}

func titleElement(s string) string {
	if s == "" {
		return ""
	}
	return "<title>" + html.EscapeString(s) + "</title>"
}

// anchorAt returns the anchor that keeps a label at x percent inside the figure: labels at the edges grow inwards.
func anchorAt(x float64) string {
	switch {
	case x < 6:
		return "start"
	case x > 94:
		return "end"
	}
	return "middle"
}

// yAt returns the y of a value in a figure of a height with space at its top and bottom, all in pixels.
func yAt(s Scale, v, height, bottom float64) float64 {
	return panelTop + (100-s.At(v))/100*(height-panelTop-bottom)
}

// axisWidth is the maximum width of the label of a value, in pixels. Longer labels are cut: imported units may have any
// name.
const axisWidth = 96.0

var axisFont = Font{Size: 13}

// yAxis draws the labels of values, for a separate column to the left of a figure.
func yAxis(s Scale, height, bottom float64, labels func([]float64) []string) template.HTML {
	c := newCanvas("plot axis", height, Caption{})
	ticks := s.Ticks(4)
	for i, label := range labels(ticks) {
		c.text(100, math.Min(yAt(s, ticks[i], height, bottom)+4, height-1), "end", axisFont.Fit(label, axisWidth))
	}
	return c.done()
}

// gridLines returns the path of the horizontal lines of an inner figure at the ticks of a scale.
func gridLines(s Scale, height, bottom float64) string {
	var b strings.Builder
	for _, t := range s.Ticks(4) {
		b.WriteString("M0 " + decimal1(yAt(s, t, height, bottom)) + "H1000")
	}
	return b.String()
}

// A pen builds a path of an inner figure. It rounds to whole units and writes relative steps, which keeps the markup
// short.
type pen struct {
	b    strings.Builder
	x, y int
}

// step goes to (x, y): with command m without a line, with l with a line.
func (p *pen) step(command byte, x, y float64) {
	toX, toY := int(math.Round(x)), int(math.Round(y))
	p.b.WriteByte(command)
	p.b.WriteString(strconv.Itoa(toX - p.x))
	if toY >= p.y {
		p.b.WriteByte(' ')
	}
	p.b.WriteString(strconv.Itoa(toY - p.y))
	p.x, p.y = toX, toY
}

// move goes to (x, y) without a line.
func (p *pen) move(x, y float64) { p.step('m', x, y) }

// line draws a line to (x, y).
func (p *pen) line(x, y float64) { p.step('l', x, y) }

// dot draws a line of length 0 at the current position: with round ends it appears as a point.
func (p *pen) dot() { p.b.WriteString("h0") }

func (p *pen) String() string { return p.b.String() }

// Inline draws a bar whose length is a share of its container, from 0 to 1. The number itself stands next to it.
func Inline(share float64) template.HTML { return InlineRange(share, math.NaN(), math.NaN()) }

// InlineRange draws the bar of a share with a line over it from lo to hi, also shares; no line if one of them is NaN.
func InlineRange(share, lo, hi float64) template.HTML {
	if math.IsNaN(share) {
		return ""
	}
	percent := func(share float64) string { return decimal1(math.Min(1, math.Max(0, share))*100) + "%" }
	line := ""
	if lo <= hi {
		line = `<line x1="` + percent(lo) + `" x2="` + percent(hi) + `" y1="50%" y2="50%"/>`
	}
	return template.HTML(`<svg class="bar" height="6" aria-hidden="true"><rect width="` + percent(share) +
		`" height="6"/>` + line + `</svg>`)
}
