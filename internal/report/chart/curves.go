package chart

import (
	"html/template"
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// A Point is a point of a percentile curve.
type Point struct {
	Quantile float64 // share of the samples at or below Value, from 0 to below 1, which would be infinitely far away
	Value    float64
}

// A Curve is the latency distribution of one target: of all its runs together, and of each run alone.
type Curve struct {
	Index  int       // of the target, from 0; selects the style of its line
	Points []Point   // of all runs together
	Runs   [][]Point // single runs, drawn as thin lines behind
}

// Curves is a figure that overlays distributions: latency, on a logarithmic axis, over the percentile, on an axis on
// which 90 %, 99 % and 99.9 % are equally far apart, because the figure is about tails.
type Curves struct {
	Curves []Curve
	Labels func([]float64) []string // formats the ticks of the latency axis
}

const (
	curvesHeight = 250.0 // px
	curvesBottom = 22.0  // px, for the labels of the percentiles
	labelRise    = 6.0   // px, from the bottom edge to the base line of these labels
)

// nines returns the position of a quantile on the axis: 1 for 0.9, 2 for 0.99.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// scales returns the axes that hold all curves.
func (c Curves) scales() (x, y Scale) {
	var values []float64
	most := 1.0 // at least to p90, which is a tick
	add := func(points []Point) {
		for _, p := range points {
			values = append(values, p.Value)
			most = math.Max(most, nines(p.Quantile))
		}
	}
	for _, curve := range c.Curves {
		add(curve.Points)
		for _, run := range curve.Runs {
			add(run)
		}
	}
	const margin = 1.02 // so that the end of a curve and the last tick are not cut
	return Scale{Lo: 0, Hi: most * margin}, logarithmic(values...)
}

// YAxis draws the labels of the latency axis, which is left of the plot.
func (c Curves) YAxis() template.HTML {
	_, y := c.scales()
	return yAxis(y, curvesHeight, curvesBottom, c.Labels)
}

// Plot draws the grid, the curves and the labels of the percentiles. Lines are drawn in a part that the browser
// stretches to the width of the page; texts are not, since letters would be distorted.
func (c Curves) Plot(caption Caption) template.HTML {
	x, y := c.scales()
	out := newCanvas("plot", curvesHeight, caption)
	out.stretch()
	grid := gridLines(y, curvesHeight, curvesBottom)
	var labels []string
	for _, t := range percentileTicks {
		if at := nines(metric.Quantile(t)); at <= x.Hi {
			grid += "M" + decimal1(stretched(x.At(at))) + " " + decimal1(panelTop) + "V" + decimal1(curvesHeight-curvesBottom)
			labels = append(labels, t)
		}
	}
	out.stroke("grid", grid)
	// Single runs first, so that they are behind.
	for _, curve := range c.Curves {
		var p pen
		for _, run := range curve.Runs {
			drawCurve(&p, run, x, y)
		}
		out.stroke("thin series"+strconv.Itoa(StyleNumber(curve.Index)), p.String())
	}
	for _, curve := range c.Curves {
		var p pen
		drawCurve(&p, curve.Points, x, y)
		out.stroke("curve series"+strconv.Itoa(StyleNumber(curve.Index)), p.String())
	}
	out.unstretch()
	for _, t := range labels {
		at := x.At(nines(metric.Quantile(t)))
		out.text(at, curvesHeight-labelRise, anchorAt(at), t)
	}
	return out.done()
}

var percentileTicks = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.P9999, metric.P99999}

// drawCurve draws a distribution with a pen.
func drawCurve(to *pen, points []Point, x, y Scale) {
	for i, p := range points {
		step := to.line
		if i == 0 {
			step = to.move
		}
		step(stretched(x.At(nines(p.Quantile))), yAt(y, p.Value, curvesHeight, curvesBottom))
	}
}

// styles is the number of styles in figure.css: series1 to series6, and fill1 to fill6. Further targets begin again at
// 1.
const styles = 6

// StyleNumber returns the number, from 1, of the style of a target or another series by its index, from 0.
func StyleNumber(i int) int { return i%styles + 1 }
