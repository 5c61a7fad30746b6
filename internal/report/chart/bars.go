package chart

import (
	"fmt"
	"html/template"
	"math"
)

// A Bar is the value of a target; NaN if it has none.
type Bar struct {
	Index int // of the target, from 0; selects the style
	Value float64
}

// Bars draws the targets of each column side by side, as bars from 0.
type Bars struct {
	Columns
	Sets [][]Bar
}

// FromZero returns a linear scale that begins at 0, for bars: they are compared by their length.
func FromZero(values ...float64) Scale {
	_, hi := extent(values)
	return padded(0, math.Max(hi, 0))
}

// Plot draws the bars.
func (b Bars) Plot() template.HTML {
	c := b.begin()
	for i, set := range b.Sets {
		for k, bar := range set {
			if math.IsNaN(bar.Value) {
				continue
			}
			n := float64(len(set))
			left, right := b.x(i, float64(k)/n), b.x(i, (float64(k)+0.82)/n)
			fmt.Fprintf(&c.b, `<path class="fill%d" d="M%s %sH%sV%sH%sZ"/>`, StyleNumber(bar.Index),
				decimal1(left), decimal1(b.y(bar.Value)), decimal1(right), decimal1(b.y(0)), decimal1(left))
		}
	}
	c.unstretch()
	return c.done()
}

// Swatch returns a small square in the style of a target's bars, for a legend.
func Swatch(i int) template.HTML {
	return template.HTML(fmt.Sprintf(`<i class="swatch fill%d"></i>`, StyleNumber(i)))
}
