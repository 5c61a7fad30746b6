// Package chart draws the figures of the report as inline SVG: numbers and labels in, markup out.
// It stands at the far right of the data flow, knows nothing of experiments, and leaves colours and
// type to the style sheet of the page, by class names, so that light, dark and print are one file.
//
// Every figure is as wide as its place: positions along x are percentages, those along y pixels,
// and text keeps its size, so that the same markup is read on a desk and on a phone.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// A canvas collects the elements of one figure.
type canvas struct {
	b      strings.Builder
	height float64
}

// newCanvas begins a figure of a height in pixels; label is what a screen reader says of it.
func newCanvas(class string, height float64, label string) *canvas {
	c := &canvas{height: height}
	fmt.Fprintf(&c.b, `<svg class="%s" width="100%%" height="%s" role="img" aria-label="%s">`,
		html.EscapeString(class), num(height), html.EscapeString(label))
	return c
}

func (c *canvas) done() template.HTML {
	c.b.WriteString("</svg>")
	// Every text above went through html.EscapeString, everything else is a number.
	return template.HTML(c.b.String())
}

// num is a coordinate: two decimals at most, so that output does not depend on the last bit.
func num(v float64) string {
	s := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// line draws from (x1, y1) to (x2, y2); x in percent of the width, y in pixels.
func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s%%" y1="%s" x2="%s%%" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// A box goes from x1 to x2 percent, and from y on by height pixels.
type box struct{ x1, x2, y, height float64 }

func (c *canvas) rect(class string, b box, title string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s%%" y="%s" width="%s%%" height="%s">%s</rect>`,
		class, num(b.x1), num(b.y), num(math.Max(b.x2-b.x1, 0)), num(b.height), titleElement(title))
}

// text writes s at (x, y); anchor is start, middle or end.
func (c *canvas) text(class string, x, y float64, anchor, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s%%" y="%s" text-anchor="%s">%s</text>`, class, num(x), num(y), anchor, html.EscapeString(s))
}

// path draws a shape, given around its own origin in pixels, at (x, y).
func (c *canvas) path(class string, x, y float64, d, title string) {
	fmt.Fprintf(&c.b, `<svg x="%s%%" y="%s" class="at"><path class="%s" d="%s">%s</path></svg>`,
		num(x), num(y), class, d, titleElement(title))
}

func (c *canvas) circle(class string, x, y, r float64, title string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s%%" cy="%s" r="%s">%s</circle>`, class, num(x), num(y), num(r), titleElement(title))
}

func titleElement(s string) string {
	if s == "" {
		return ""
	}
	return "<title>" + html.EscapeString(s) + "</title>"
}

// anchorAt keeps a label inside the figure: those at the edges grow inwards.
func anchorAt(x float64) string {
	switch {
	case x < 6:
		return "start"
	case x > 94:
		return "end"
	}
	return "middle"
}
