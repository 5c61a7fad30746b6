package chart

import (
	"fmt"
	"html/template"
	"math"
)

// Bars draws the values of each column side by side, as bars from 0.
type Bars struct {
	Columns
	Sets [][]float64 // by column and target; NaN if a target has none
}

// FromZero returns a linear scale that begins at 0, for bars: they are compared by their length.
func FromZero(values ...float64) Scale {
	_, hi := extent(values)
	return padded(0, math.Max(hi, 0))
}

// Plot draws the bars.
func (b Bars) Plot(caption Caption) template.HTML {
	c := b.begin(caption)
	for i, set := range b.Sets {
		for k, v := range set {
			if math.IsNaN(v) {
				continue
			}
			n := float64(len(set))
			left, right := b.x(i, float64(k)/n), b.x(i, (float64(k)+0.82)/n)
			fmt.Fprintf(&c.b, `<path class="fill%d" d="M%s %sH%sV%sH%sZ"/>`, StyleNumber(k),
				decimal1(left), decimal1(b.y(v)), decimal1(right), decimal1(b.y(0)), decimal1(left))
		}
	}
	c.unstretch()
	return c.done()
}
