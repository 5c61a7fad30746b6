package chart

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Columns is the common frame of figures that show targets side by side: one column each and one scale for all. The
// caller writes the names of the columns below the figure.
type Columns struct {
	Height float64 // in pixels
	Count  int     // number of columns
	Scale  Scale
	Bounds []float64                // reference of each column, drawn as a dashed line; NaN if unknown; may be empty
	Labels func([]float64) []string // formats the ticks of the value axis
}

const (
	panelTop      = 8.0
	columnsBottom = 8.0
	margin        = 0.08 // empty part of a column at each of its sides
)

// YAxis draws the labels of the values, for a separate column to the left.
func (f Columns) YAxis() template.HTML { return yAxis(f.Scale, f.Height, columnsBottom, f.Labels) }

// x returns the position in column i of a share, from 0 at its left to 1 at its right, in thousandths of the figure.
func (f Columns) x(i int, share float64) float64 {
	return (float64(i) + margin + share*(1-2*margin)) / float64(max(f.Count, 1)) * 1000
}

func (f Columns) y(v float64) float64 { return yAt(f.Scale, v, f.Height, columnsBottom) }

// begin starts the figure, draws the background of all columns, and leaves the inner figure open.
func (f Columns) begin(caption Caption) *canvas {
	c := newCanvas("plot", f.Height, caption)
	c.stretch()
	c.stroke("grid", gridLines(f.Scale, f.Height, columnsBottom))
	var between strings.Builder
	for i := 1; i < f.Count; i++ {
		between.WriteString("M" + decimal1(float64(i)/float64(f.Count)*1000) + " 0V" + decimal1(f.Height))
	}
	c.stroke("between", between.String())
	c.stroke("bound", f.bounds())
	return c
}

// bounds returns a path with a line across each column at its bound, one line across neighbours with the same bound.
func (f Columns) bounds() string {
	var path strings.Builder
	for i, v := range f.Bounds {
		if math.IsNaN(v) {
			continue
		}
		if i == 0 || v != f.Bounds[i-1] {
			path.WriteString("M" + decimal1(float64(i)/float64(f.Count)*1000) + " " + decimal1(f.y(v)))
		}
		path.WriteString("H" + decimal1(float64(i+1)/float64(f.Count)*1000))
	}
	return path.String()
}

// A Dot is one run.
type Dot struct {
	Block int // from 1
	Value float64
	State State
	Title string
}

// A State is the state of a run: it counts, or one of the reasons why it does not.
type State int

// The states: a run that counts is drawn as a dot, one that failed a check as a cross, and one that passed but whose
// block was repeated as a ring.
const (
	Counts State = iota
	Invalid
	Superseded
)

// A DotColumn holds every run of one target, and the box of those that count.
type DotColumn struct {
	Runs   []Dot
	Median float64 // drawn as a line across the column; NaN if there is none
	Box    *Box    // nil if there is none
}

// Dots shows every run of one case on all targets, by block.
type Dots struct {
	Columns
	Blocks int  // x goes from 1 to Blocks within a column
	Titled bool // each dot has a title; otherwise all dots are one short path
	Sets   []DotColumn
}

// cross is the mark of a run that failed a check.
const cross = "M-4,-4L4,4M-4,4L4,-4"

// Plot draws the runs.
func (d Dots) Plot(caption Caption) template.HTML {
	c := d.begin(caption)
	d.boxes(c)
	var medians, dots pen
	for i, set := range d.Sets {
		if !math.IsNaN(set.Median) {
			medians.move(d.x(i, 0), d.y(set.Median))
			medians.line(d.x(i, 1), d.y(set.Median))
		}
		for _, r := range set.Runs {
			if r.State == Counts && !d.Titled {
				dots.move(d.runX(i, r), d.y(r.Value))
				dots.dot()
			}
		}
	}
	c.stroke("median", medians.String())
	c.stroke("dots", dots.String())
	c.unstretch()
	for i, set := range d.Sets {
		for _, r := range set.Runs {
			d.mark(c, r, d.runX(i, r)/10)
		}
	}
	return c.done()
}

// mark draws a run that is not part of the common path; x is in percent.
func (d Dots) mark(c *canvas, r Dot, x float64) {
	switch {
	case r.State == Invalid:
		c.path("dot invalid", x, d.y(r.Value), cross, r.Title)
	case r.State == Superseded:
		c.circle("dot superseded", x, d.y(r.Value), 3.2, r.Title)
	case d.Titled:
		c.circle("dot", x, d.y(r.Value), 3.6, r.Title)
	}
}

// runX returns the position of a run, with half a step of space at both ends of the column, in thousandths.
func (d Dots) runX(column int, r Dot) float64 {
	return d.x(column, (float64(r.Block)-0.5)/float64(max(d.Blocks, 1)))
}

// A Box holds the order statistics of one column: quartiles, and the ends of the whiskers.
type Box struct{ Lowest, Q1, Median, Q3, Highest float64 }

// boxes draws the boxes of the columns and their whiskers. The median is drawn by Plot.
func (d Dots) boxes(c *canvas) {
	var boxes, whiskers strings.Builder
	for i, set := range d.Sets {
		if set.Box == nil {
			continue
		}
		b := set.Box
		left, middle, right := decimal1(d.x(i, 0)), decimal1(d.x(i, 0.5)), decimal1(d.x(i, 1))
		y := func(v float64) string { return decimal1(d.y(v)) }
		boxes.WriteString("M" + left + " " + y(b.Q1) + "H" + right + "V" + y(b.Q3) + "H" + left + "Z")
		for _, w := range [][2]float64{{b.Lowest, b.Q1}, {b.Highest, b.Q3}} {
			whiskers.WriteString("M" + middle + " " + y(w[0]) + "V" + y(w[1]))
		}
	}
	c.stroke("box", boxes.String())
	c.stroke("whiskers", whiskers.String())
}

// Traces shows a quantity over the time within runs: a thin line for each run.
type Traces struct {
	Columns
	Longest float64 // seconds; x goes from 0 to Longest within a column
	Step    float64 // seconds between values
	Sets    []TraceColumn
}

// A TraceColumn holds the runs of one target, each as values at equal steps.
type TraceColumn struct {
	Index int // of the target, from 0; selects the style of its lines
	Runs  [][]float64
}

// Plot draws the lines.
func (t Traces) Plot(caption Caption) template.HTML {
	c := t.begin(caption)
	for i, set := range t.Sets {
		var p pen
		for _, values := range set.Runs {
			t.trace(&p, i, values)
		}
		c.stroke("trace series"+strconv.Itoa(StyleNumber(set.Index)), p.String())
	}
	c.unstretch()
	return c.done()
}

// trace draws one run. A missing value breaks the line; an isolated value is a point.
func (t Traces) trace(p *pen, column int, values []float64) {
	drawing := false
	for k, v := range values {
		x, y := t.x(column, (float64(k)+0.5)*t.Step/t.Longest), t.y(v)
		switch {
		case math.IsNaN(v):
			drawing = false
		case drawing:
			p.line(x, y)
		default:
			p.move(x, y)
			p.dot()
			drawing = true
		}
	}
}
