package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// corners returns the corners of a mark relative to its middle, y downwards: a triangle points up for better and down
// for worse, whatever the direction of the value, and a square is equivalent; none for the hollow circle of undecided.
func corners(m doc.Mark, size float64) [][2]float64 {
	inner := size * 0.8
	switch m {
	case doc.Better:
		return [][2]float64{{0, -size}, {size, inner}, {-size, inner}}
	case doc.Worse:
		return [][2]float64{{0, size}, {size, -inner}, {-size, -inner}}
	case doc.Same:
		return [][2]float64{{-inner, -inner}, {inner, -inner}, {inner, inner}, {-inner, inner}}
	}
	return nil
}

// An Interval is one row of a forest plot: a relative change with its interval, as fractions. Where the data give no
// bound, Lo is -1 or -Inf, and Hi +Inf.
type Interval struct {
	Change, Lo, Hi float64
	Mark           doc.Mark
	Primary        bool
}

// Known reports whether there is anything to draw.
func (r Interval) Known() bool {
	return !math.IsNaN(r.Change) && !math.IsNaN(r.Lo) && !math.IsNaN(r.Hi)
}

// A Forest is the common axis of rows: relative change on a logarithmic axis, on which halving and doubling are equally
// far from the middle.
type Forest struct {
	scale Scale   // of ln(1+change)
	delta float64 // smallest difference that matters, as a fraction
}

// NewForest returns the axis for rows. It holds all estimates and at least half of the intervals; ends far outside do
// not stretch it and are drawn as arrows. Delta is the smallest difference that matters, as a fraction.
func NewForest(rows []Interval, delta float64) Forest {
	const beyond = 1.6 // ends up to this multiple of the reach are on the axis
	reach := math.Max(math.Log1p(math.Max(delta, 0))*2, 0.01)
	var ends []float64
	for _, r := range rows {
		if v := math.Abs(logChange(r.Change)); v <= math.MaxFloat64 {
			reach = math.Max(reach, v)
		}
		if v := math.Max(math.Abs(logChange(r.Lo)), math.Abs(logChange(r.Hi))); v <= math.MaxFloat64 {
			ends = append(ends, v)
		}
	}
	if len(ends) > 0 {
		slices.Sort(ends)
		reach = math.Max(reach, ends[(len(ends)-1)/2]/beyond)
	}
	lo, hi := -reach*0.25, reach*0.25
	for _, r := range rows {
		for _, v := range []float64{r.Change, r.Lo, r.Hi, delta * 1.5, -delta * 1.5} {
			if l := logChange(v); math.Abs(l) <= reach*beyond {
				lo, hi = math.Min(lo, l), math.Max(hi, l)
			}
		}
	}
	padding := (hi - lo) * 0.05
	return Forest{scale: Scale{Lo: lo - padding, Hi: hi + padding}, delta: delta}
}

// logChange returns ln(1+change): -Inf for everything at or below -100 %.
func logChange(change float64) float64 {
	if change <= -1 {
		return math.Inf(-1)
	}
	return math.Log1p(change)
}

// At returns the position of a relative change on the axis, in percent of its width, clamped to the edges.
func (f Forest) At(change float64) float64 { return f.scale.At(logChange(change)) }

// Outside reports whether a relative change is beyond an end of the axis, or infinite.
func (f Forest) Outside(change float64) bool {
	l := logChange(change)
	return l < f.scale.Lo || l > f.scale.Hi
}

// roundPercents are the possible labels of an axis, to the left of zero and to its right.
var roundPercents = [][]float64{
	{-1, -2, -5, -10, -20, -30, -40, -50, -60, -70, -80, -90, -95, -98},
	{1, 2, 5, 10, 20, 30, 50, 100, 200, 400, 900, 1900},
}

// Ticks returns the round changes whose labels do not overlap, as fractions; zero is always among them.
func (f Forest) Ticks() []float64 {
	const room = 15 // percent of the width
	kept := []float64{0}
	for _, side := range roundPercents {
		last := f.At(0)
		for _, percent := range side {
			x := f.At(percent / 100)
			if math.Abs(x-last) < room || x <= 3 || x >= 97 {
				continue
			}
			kept, last = append(kept, percent/100), x
		}
	}
	return kept
}

// TickLabel returns the label of a tick.
func TickLabel(tick float64) string {
	if tick == 0 {
		return "0"
	}
	if tick >= unit.FactorFrom {
		return fmt.Sprintf("×%g", math.Round(1+tick))
	}
	return fmt.Sprintf("%+g %%", math.Round(tick*100))
}

// Axis draws the labels of the axis.
func (f Forest) Axis() template.HTML {
	c := newCanvas("plot axis", 20, Caption{})
	for _, t := range f.Ticks() {
		x := f.At(t)
		c.text(x, 14, anchorAt(x), TickLabel(t))
	}
	return c.done()
}

const rowHeight = 28 // px

// The ids of shapes that rows refer to: the background, and the prefix of the numbered marks.
const (
	groundID = "fg"
	markID   = "fm"
)

// marks lists all marks; each has two shapes with successive numbers, a small and a large one.
var marks = []doc.Mark{doc.Better, doc.Worse, doc.Same, doc.Undecided}

// markHref returns the id of the shape of a row's mark.
func markHref(r Interval) string {
	n := slices.Index(marks, r.Mark) * 2
	if r.Primary {
		n++
	}
	return markID + strconv.Itoa(max(n, 0))
}

// Shapes draws the shapes that rows refer to, once for a page: the background with the band of delta and the grid, and
// the marks.
func (f Forest) Shapes() template.HTML {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg class="shapes" width="0" height="0" aria-hidden="true">`+
		`<symbol id="%s" viewBox="0 0 1000 %d" preserveAspectRatio="none">`, groundID, rowHeight)
	if f.delta > 0 {
		left, right := stretched(f.At(-f.delta)), stretched(f.At(f.delta))
		fmt.Fprintf(&c.b, `<rect class="delta" x="%s" width="%s" height="%d"/>`,
			decimal1(left), decimal1(right-left), rowHeight)
	}
	grid := ""
	for _, t := range f.Ticks() {
		if t != 0 {
			grid += "M" + decimal1(stretched(f.At(t))) + " 0V" + decimal2(rowHeight)
		}
	}
	c.stroke("grid", grid)
	c.stroke("zero", "M"+decimal1(stretched(f.At(0)))+" 0V"+decimal2(rowHeight))
	c.b.WriteString("</symbol>")
	for _, m := range marks {
		for _, primary := range []bool{false, true} {
			r := Interval{Mark: m, Primary: primary}
			fmt.Fprintf(&c.b, `<path id="%s" class="mark" d="%s"/>`, markHref(r), shape(r))
		}
	}
	return c.done()
}

// Row draws one comparison, next to a text with the same content. It refers to the Shapes of its forest, which the page
// must include.
func (f Forest) Row(r Interval) template.HTML {
	c := newCanvas("plot", rowHeight, Caption{})
	fmt.Fprintf(&c.b, `<use href="#%s"/>`, groundID)
	if !r.Known() {
		return c.done() // the text of the row says that nothing is known
	}
	class := string(r.Mark)
	if r.Primary {
		class += " primary"
	}
	fmt.Fprintf(&c.b, `<g class="%s">`, class)
	f.whisker(c, r)
	fmt.Fprintf(&c.b, `<svg x="%s%%" y="%d"><use href="#%s"/></svg></g>`,
		decimal2(f.At(r.Change)), rowHeight/2, markHref(r))
	return c.done()
}

// whisker draws the interval, with an arrow at an end that is outside the axis or infinite.
func (f Forest) whisker(c *canvas, r Interval) {
	const y = rowHeight / 2
	c.line(f.At(r.Lo), y, f.At(r.Hi), y)
	c.intervalEnd(f.At(r.Lo), y, f.Outside(r.Lo), -1)
	c.intervalEnd(f.At(r.Hi), y, f.Outside(r.Hi), 1)
}

// intervalEnd draws an end of an interval: an arrow if it is open, else a bar; direction is -1 for the lower end, 1 for
// the upper.
func (c *canvas) intervalEnd(x, y float64, open bool, direction float64) {
	if open {
		c.path("arrow", x, y, fmt.Sprintf("M%s,-4L0,0L%s,4", decimal2(-6*direction), decimal2(-6*direction)), "")
		return
	}
	c.line(x, y-4, x, y+4)
}

// shape returns the mark as a path relative to its own middle; marks of primary comparisons are larger.
func shape(r Interval) string {
	size := 3.8
	if r.Primary {
		size = 4.6
	}
	var points []string
	for _, c := range corners(r.Mark, size) {
		points = append(points, decimal2(c[0])+","+decimal2(c[1]))
	}
	if len(points) == 0 {
		return fmt.Sprintf("M%[1]s,0a%[2]s,%[2]s 0 1,0 %[3]s,0a%[2]s,%[2]s 0 1,0 %[4]s,0Z",
			decimal2(-size), decimal2(size), decimal2(2*size), decimal2(-2*size))
	}
	return "M" + strings.Join(points, "L") + "Z"
}
