package chart

import (
	"fmt"
	"html/template"
	"math"
)

// A Bar is the value of a target; NaN where it has none.
type Bar struct {
	Rank  int // of the target, from 0, which gives its style
	Value float64
}

// Bars puts the targets of each column side by side, as bars from 0.
type Bars struct {
	Columns
	Sets [][]Bar
}

// FromZero is a scale of bars: they are compared by their length.
func FromZero(values ...float64) Scale {
	_, hi := extent(values)
	return airy(0, math.Max(hi, 0))
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
			fmt.Fprintf(&c.b, `<path class="fill%d" d="M%s %sH%sV%sH%sZ"/>`, Series(bar.Rank),
				short(left), short(b.y(bar.Value)), short(right), short(b.y(0)), short(left))
		}
	}
	c.unstretch()
	return c.done()
}

// Swatch is the style of a target's bars, for a legend.
func Swatch(rank int) template.HTML {
	return template.HTML(fmt.Sprintf(`<i class="swatch fill%d"></i>`, Series(rank)))
}
