package chart

import (
	"html/template"
	"strconv"
)

// A Level is the median and quartiles of a metric at one value of a numeric option.
type Level struct {
	Number, Q1, Median, Q3 float64
	Title                  string // tooltip of the point
}

// A Trend shows a metric over a numeric option, with the straight line of the estimated slope if Line is set.
type Trend struct {
	Levels []Level // by ascending numbers; not empty
	Line   bool
	Slope  float64 // change of the metric for an increase of the number by 1
	Labels func([]float64) []string
}

// scales returns the axes that hold all levels.
func (t Trend) scales() (x, y Scale) {
	var values []float64
	for _, l := range t.Levels {
		values = append(values, l.Q1, l.Median, l.Q3)
	}
	last := t.Levels[len(t.Levels)-1].Number
	return Scale{Lo: -0.04 * last, Hi: 1.04 * last}, Linear(values...)
}

// YAxis draws the labels of the values.
func (t Trend) YAxis() template.HTML {
	_, y := t.scales()
	return yAxis(y, curvesHeight, curvesBottom, t.Labels)
}

// Plot draws the levels and the line.
func (t Trend) Plot(caption Caption) template.HTML {
	x, y := t.scales()
	at := func(v float64) float64 { return yAt(y, v, curvesHeight, curvesBottom) }
	out := newCanvas("plot", curvesHeight, caption)
	out.stretch()
	out.stroke("grid", gridLines(y, curvesHeight, curvesBottom))
	var quartiles pen
	for _, l := range t.Levels {
		quartiles.move(stretched(x.At(l.Number)), at(l.Q1))
		quartiles.line(stretched(x.At(l.Number)), at(l.Q3))
	}
	if t.Line {
		out.stroke("curve series1", t.line(x, at))
	}
	out.stroke("whiskers", quartiles.String())
	out.unstretch()
	for _, l := range t.Levels {
		out.circle("dot", x.At(l.Number), at(l.Median), 4, l.Title)
		out.text(x.At(l.Number), curvesHeight-6, anchorAt(x.At(l.Number)), strconv.FormatFloat(l.Number, 'f', -1, 64))
	}
	return out.done()
}

// line draws the straight line through the mean of the levels' numbers and medians.
func (t Trend) line(x Scale, at func(float64) float64) string {
	var number, median float64
	for _, l := range t.Levels {
		n := float64(len(t.Levels))
		number, median = number+l.Number/n, median+l.Median/n
	}
	var line pen
	first, last := t.Levels[0].Number, t.Levels[len(t.Levels)-1].Number
	line.move(stretched(x.At(first)), at(median+t.Slope*(first-number)))
	line.line(stretched(x.At(last)), at(median+t.Slope*(last-number)))
	return line.String()
}
