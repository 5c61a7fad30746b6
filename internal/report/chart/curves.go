package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A Point of a percentile curve: the share of samples at or below Value.
type Point struct {
	Quantile float64 // 0 to below 1
	Value    float64
}

// A Curve is the latency distribution of one target.
type Curve struct {
	Label  string
	Points []Point
}

// Curves overlays distributions: latency, on a logarithmic axis, over the percentile, on an axis that
// gives each further nine the same room, as tails are what the figure is about.
type Curves struct {
	Label  string
	Curves []Curve
	Labels func([]float64) []string // of values on the axis
}

const curvesHeight = 250.0

// nines is where a quantile stands: 0.9 at 1, 0.99 at 2.
func nines(q float64) float64 { return -math.Log10(1 - q) }

func (c Curves) scales() (x, y Scale) {
	var values, shares []float64
	for _, curve := range c.Curves {
		for _, p := range curve.Points {
			values = append(values, p.Value)
			shares = append(shares, nines(p.Quantile))
		}
	}
	_, most := extent(shares)
	return Scale{Lo: 0, Hi: math.Max(most, 1) * 1.02}, Logarithmic(values...)
}

// YAxis draws the labels of the latencies.
func (c Curves) YAxis() template.HTML {
	_, y := c.scales()
	return yAxis(y, curvesHeight, c.Labels)
}

// Plot draws the curves. The lines lie in an inner figure that is stretched to the width.
func (c Curves) Plot() template.HTML {
	x, y := c.scales()
	out := newCanvas("plot", curvesHeight, c.Label)
	for _, t := range y.Ticks(4) {
		out.line("grid", 0, yAt(y, t, curvesHeight), 100, yAt(y, t, curvesHeight))
	}
	for _, t := range percentileTicks() {
		if at := x.At(nines(t.quantile)); nines(t.quantile) <= x.Hi {
			out.line("grid", at, panelTop, at, curvesHeight-panelBottom)
			out.text("tick", at, curvesHeight-6, anchorAt(at), t.label)
		}
	}
	fmt.Fprintf(&out.b, `<svg viewBox="0 0 1000 %s" width="100%%" height="%s" preserveAspectRatio="none">`, num(curvesHeight), num(curvesHeight))
	for i, curve := range c.Curves {
		fmt.Fprintf(&out.b, `<path class="curve series%d" d="%s" vector-effect="non-scaling-stroke"/>`, Series(i), trace(curve, x, y))
	}
	out.b.WriteString("</svg>")
	return out.done()
}

type percentileTick struct {
	quantile float64
	label    string
}

func percentileTicks() []percentileTick {
	return []percentileTick{{0, "min"}, {0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}, {0.99999, "p99.999"}}
}

func trace(curve Curve, x, y Scale) string {
	var b strings.Builder
	for i, p := range curve.Points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		b.WriteString(command + num(x.At(nines(p.Quantile))*10) + "," + num(yAt(y, p.Value, curvesHeight)))
	}
	return b.String()
}

// Series is the number, from 1 to 6, of the line style of the i-th curve, for its legend.
func Series(i int) int { return i%6 + 1 }

// Key draws a short line in the style of the i-th curve.
func Key(i int) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="plot key" width="30" height="10" aria-hidden="true"><line class="curve series%d" x1="0" y1="5" x2="30" y2="5"/></svg>`, Series(i)))
}
