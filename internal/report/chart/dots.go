package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
)

// A Dot is one run: its block, its value, and whether it counts.
type Dot struct {
	Block int // from 1
	Value float64
	State State
	Title string
}

// A State is whether a run counts.
type State int

// The states: a run that counts is a dot; one that failed a gate a cross; one that passed, but whose
// block was run again, a ring.
const (
	Counts State = iota
	Invalid
	Superseded
)

// Dots is a panel that shows every run of one case on one target, by block. Panels of one case share
// their Scale, so that they can be compared by eye.
type Dots struct {
	Label  string // for screen readers
	Runs   []Dot
	Blocks int // of the experiment; x goes from 1 to it
	Scale  Scale
	Median float64                  // NaN if there is none
	Bound  *float64                 // what the path could reach at most, if that was measured
	Labels func([]float64) []string // of values on the axis
}

// cross is the mark of a run that failed a gate.
const cross = "M-4,-4L4,4M-4,4L4,-4"

const (
	panelHeight = 132.0
	panelTop    = 8.0
	panelBottom = 22.0 // below it, block numbers
)

func (d Dots) y(v float64) float64 { return yAt(d.Scale, v, panelHeight) }

func yAt(s Scale, v, height float64) float64 {
	return panelTop + (100-s.At(v))/100*(height-panelTop-panelBottom)
}

// YAxis draws the labels of the panel's values, to stand at its left in a column of its own.
func (d Dots) YAxis() template.HTML { return yAxis(d.Scale, panelHeight, d.Labels) }

func yAxis(s Scale, height float64, labels func([]float64) []string) template.HTML {
	c := newCanvas("plot axis", height, "axis")
	ticks := s.Ticks(4)
	for i, label := range labels(ticks) {
		c.text("tick", 100, yAt(s, ticks[i], height)+4, "end", label)
	}
	return c.done()
}

// Panel draws the runs.
func (d Dots) Panel() template.HTML {
	c := newCanvas("plot", panelHeight, d.Label)
	for _, t := range d.Scale.Ticks(4) {
		c.line("grid", 0, d.y(t), 100, d.y(t))
	}
	if d.Bound != nil {
		c.line("bound", 0, d.y(*d.Bound), 100, d.y(*d.Bound))
	}
	if !math.IsNaN(d.Median) {
		c.line("median", 0, d.y(d.Median), 100, d.y(d.Median))
	}
	for _, b := range d.labels() {
		c.text("tick", d.x(b), panelHeight-4, "middle", strconv.Itoa(b))
	}
	for _, r := range d.Runs {
		x, y := d.x(r.Block), d.y(r.Value)
		switch r.State {
		case Counts:
			c.circle("dot", x, y, 3.6, r.Title)
		case Superseded:
			c.circle("dot superseded", x, y, 3.2, r.Title)
		case Invalid:
			c.path("dot invalid", x, y, cross, r.Title)
		}
	}
	return c.done()
}

// x leaves half a step of room at both ends.
func (d Dots) x(block int) float64 {
	return (float64(block) - 0.5) / float64(max(d.Blocks, 1)) * 100
}

// labels are the block numbers with room for a label: at most about six.
func (d Dots) labels() []int {
	step := (d.Blocks + 5) / 6
	var blocks []int
	for b := 1; b <= d.Blocks; b += max(step, 1) {
		blocks = append(blocks, b)
	}
	return blocks
}

// A Span is one run on the time axis of the experiment, all in seconds from its beginning.
type Span struct {
	Start, Setup, Window, Cleanup float64
	Valid                         bool
	Title                         string
}

const stripHeight = 22.0

// Strip draws when runs happened: pale while places were made and removed, solid while measuring,
// and a cross on those that do not count.
func Strip(label string, spans []Span, total float64) template.HTML {
	c := newCanvas("plot", stripHeight, label)
	s := Scale{Hi: total}
	c.line("grid", 0, stripHeight/2, 100, stripHeight/2)
	for _, r := range spans {
		from := r.Start + r.Setup
		to := from + r.Window
		c.rect("setup", box{s.At(r.Start), s.At(to + r.Cleanup), 6, stripHeight - 12}, r.Title)
		c.rect("window", box{s.At(from), s.At(to), 3, stripHeight - 6}, r.Title)
	}
	for _, r := range spans {
		if !r.Valid {
			c.path("dot invalid", s.At(r.Start+r.Setup+r.Window/2), stripHeight/2, cross, r.Title)
		}
	}
	return c.done()
}

// StripAxis draws the time axis of strips.
func StripAxis(total float64) template.HTML {
	c := newCanvas("plot axis", 18, "axis: time since the first run")
	for t := 0.0; t <= total; t += clockStep(total / 5) {
		x := (Scale{Hi: total}).At(t)
		c.text("tick", x, 13, anchorAt(x), clock(t))
	}
	return c.done()
}

// clockStep is a round time of at least so many seconds.
func clockStep(least float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200} {
		if step >= least {
			return step
		}
	}
	return math.Ceil(least/86400) * 86400
}

// clock is minutes and seconds.
func clock(seconds float64) string {
	n := int(seconds + 0.5)
	if n >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
	}
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}
