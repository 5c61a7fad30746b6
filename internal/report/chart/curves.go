package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// A Point is a point of a percentile curve: the share of samples at or below Value.
type Point struct {
	Quantile float64 // 0 to below 1
	Value    float64
}

// A Curve is the latency distribution of one target: of all its runs together, and of each run alone.
type Curve struct {
	Label  string
	Index  int // of the target, from 0; selects the style of its line
	Points []Point
	Runs   [][]Point // single runs, drawn as thin lines behind
}

// Curves overlays distributions: latency, on a logarithmic axis, over the percentile, on an axis that gives each
// further nine the same space, because the figure is about tails.
type Curves struct {
	Caption Caption
	Curves  []Curve
	Labels  func([]float64) []string // formats the ticks of the latency axis
}

const (
	curvesHeight = 250.0 // px
	curvesBottom = 22.0  // px, for the labels of the percentiles
	labelRise    = 6.0   // px, from the edge to their base line, for descenders
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

// YAxis draws the labels of the latencies.
func (c Curves) YAxis() template.HTML {
	_, y := c.scales()
	return yAxis(y, curvesHeight, curvesBottom, c.Labels)
}

// Plot draws the curves.
func (c Curves) Plot() template.HTML {
	x, y := c.scales()
	out := newCanvas("plot", curvesHeight, c.Caption)
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

// styles is the number of styles of targets in figure.css, series1 and fill1 onwards. More targets use them again.
const styles = 6

// StyleNumber returns the number, from 1, of the style of the i-th target.
func StyleNumber(i int) int { return i%styles + 1 }

// Key draws a short line in the style of the i-th curve, for a legend.
func Key(i int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="plot key" aria-hidden="true"><path class="series%d" d="M0 5h30"/></svg>`,
		StyleNumber(i)))
}
