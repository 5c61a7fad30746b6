package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
)

// A Mark is the shape and style of a point, so that its meaning never rests on colour alone.
type Mark string

// The marks: a triangle points up for better and down for worse, whichever way the value went; a
// square is equivalent, a hollow circle undecided.
const (
	Better    Mark = "better"
	Worse     Mark = "worse"
	Same      Mark = "same"
	Undecided Mark = "undecided"
)

// An Interval is one row of a forest plot: a relative change with its interval, as fractions. Lo may
// be -1 or -Inf and Hi +Inf where the data does not bound them.
type Interval struct {
	Change, Lo, Hi float64
	Mark           Mark
	Primary        bool
	Caption        Caption
}

// A Forest is the common axis of rows: relative change on a logarithmic axis, on which halving and
// doubling are equally far from the middle.
type Forest struct {
	scale Scale // of ln(1+change)
	delta float64
}

// NewForest makes the axis for rows. Interval ends far beyond all estimates do not stretch it; they
// are drawn as arrows. Delta is the smallest difference that matters, as a fraction.
func NewForest(rows []Interval, delta float64) Forest {
	reach := math.Max(math.Log1p(math.Max(delta, 0))*2, 0.01)
	for _, r := range rows {
		if v := logChange(r.Change); !math.IsInf(v, 0) && !math.IsNaN(v) {
			reach = math.Max(reach, math.Abs(v))
		}
	}
	lo, hi := -reach*0.25, reach*0.25
	for _, r := range rows {
		for _, v := range []float64{r.Change, r.Lo, r.Hi, delta * 1.5, -delta * 1.5} {
			if l := logChange(v); math.Abs(l) <= reach*1.6 {
				lo, hi = math.Min(lo, l), math.Max(hi, l)
			}
		}
	}
	air := (hi - lo) * 0.05
	return Forest{scale: Scale{Lo: lo - air, Hi: hi + air}, delta: delta}
}

// logChange is the position of a relative change: -Inf for everything at or below -100 %.
func logChange(change float64) float64 {
	if change <= -1 {
		return math.Inf(-1)
	}
	return math.Log1p(change)
}

func (f Forest) at(change float64) float64 { return f.scale.At(logChange(change)) }

// ticks are round percentages with room for their labels, zero always among them.
func (f Forest) ticks() []float64 {
	const room = 15 // percent of the width
	round := []float64{1, 2, 5, 10, 20, 30, 50, 100, 200, 400, 900, 1900}
	falling := []float64{-1, -2, -5, -10, -20, -30, -40, -50, -60, -70, -80, -90, -95, -98}
	kept := []float64{0}
	for _, side := range [][]float64{falling, round} {
		last := f.at(0)
		for i := range side {
			x := f.at(side[i] / 100)
			if math.Abs(x-last) < room || x <= 3 || x >= 97 {
				continue
			}
			kept, last = append(kept, side[i]/100), x
		}
	}
	return kept
}

// Axis draws the labels of the axis.
func (f Forest) Axis() template.HTML {
	c := newCanvas("plot axis", 20, Caption{})
	for _, t := range f.ticks() {
		label := fmt.Sprintf("%+g %%", math.Round(t*100))
		if t == 0 {
			label = "0"
		}
		x := f.at(t)
		c.text(x, 14, anchorAt(x), label)
	}
	return c.done()
}

const rowHeight = 28

// The ids of what rows refer to: the ground, and before the number of a mark.
const (
	groundID = "fg"
	markID   = "fm"
)

// marks are all marks, at their number twice, small and large.
func marks() []Mark { return []Mark{Better, Worse, Same, Undecided} }

func markHref(r Interval) string {
	n := slices.Index(marks(), r.Mark) * 2
	if r.Primary {
		n++
	}
	return markID + strconv.Itoa(max(n, 0))
}

// Shapes is what rows refer to, once for a page: the ground behind them with the band of delta and the
// grid, and the marks.
func (f Forest) Shapes() template.HTML {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg class="shapes" width="0" height="0" aria-hidden="true"><symbol id="%s" viewBox="0 0 1000 %d" preserveAspectRatio="none">`, groundID, rowHeight)
	if f.delta > 0 {
		left, right := f.at(-f.delta)*10, f.at(f.delta)*10
		fmt.Fprintf(&c.b, `<rect class="delta" x="%s" width="%s" height="%d"/>`, short(left), short(right-left), rowHeight)
	}
	grid := ""
	for _, t := range f.ticks() {
		if t != 0 {
			grid += "M" + short(f.at(t)*10) + " 0V" + num(rowHeight)
		}
	}
	c.stroke("grid", grid)
	c.stroke("zero", "M"+short(f.at(0)*10)+" 0V"+num(rowHeight))
	c.b.WriteString("</symbol>")
	for _, m := range marks() {
		for _, primary := range []bool{false, true} {
			r := Interval{Mark: m, Primary: primary}
			fmt.Fprintf(&c.b, `<path id="%s" class="mark" d="%s"/>`, markHref(r), shape(r))
		}
	}
	return c.done()
}

// Row draws one comparison, with the Shapes of its forest.
func (f Forest) Row(r Interval) template.HTML {
	c := newCanvas("plot", rowHeight, r.Caption)
	fmt.Fprintf(&c.b, `<use href="#%s"/>`, groundID)
	if math.IsNaN(r.Change) || math.IsNaN(r.Lo) || math.IsNaN(r.Hi) {
		return c.done() // nothing is known: the row says so in words
	}
	class := string(r.Mark)
	if r.Primary {
		class += " primary"
	}
	fmt.Fprintf(&c.b, `<g class="%s">`, class)
	f.whisker(c, r)
	fmt.Fprintf(&c.b, `<svg x="%s%%" y="%d"><use href="#%s"/></svg></g>`, num(f.at(r.Change)), rowHeight/2, markHref(r))
	return c.done()
}

// whisker draws the interval, with an arrow at an end that is outside the axis or has no bound.
func (f Forest) whisker(c *canvas, r Interval) {
	const y = rowHeight / 2
	c.line(f.at(r.Lo), y, f.at(r.Hi), y)
	c.end(f.at(r.Lo), y, logChange(r.Lo) < f.scale.Lo, -1)
	c.end(f.at(r.Hi), y, logChange(r.Hi) > f.scale.Hi, 1)
}

func (c *canvas) end(x, y float64, open bool, way float64) {
	if open {
		c.path("arrow", x, y, fmt.Sprintf("M%s,-4L0,0L%s,4", num(-6*way), num(-6*way)), "")
		return
	}
	c.line(x, y-4, x, y+4)
}

// shape is the mark as a path around its own middle; primaries are larger.
func shape(r Interval) string {
	s := 5.0
	if r.Primary {
		s = 6.5
	}
	switch r.Mark {
	case Better:
		return fmt.Sprintf("M0,%sL%s,%sH%sZ", num(-s), num(s), num(s*0.8), num(-s))
	case Worse:
		return fmt.Sprintf("M0,%sL%s,%sH%sZ", num(s), num(s), num(-s*0.8), num(-s))
	case Same:
		return fmt.Sprintf("M%s,%sH%sV%sH%sZ", num(-s*0.8), num(-s*0.8), num(s*0.8), num(s*0.8), num(-s*0.8))
	}
	return fmt.Sprintf("M%s,0a%s,%s 0 1,0 %s,0a%s,%s 0 1,0 %s,0Z",
		num(-s), num(s), num(s), num(2*s), num(s), num(s), num(-2*s))
}
