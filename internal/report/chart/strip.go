package chart

import (
	"cmp"
	"html/template"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// A Span is a run, or the setup or cleanup of a site, on the time axis of the experiment. Start is in seconds since the
// beginning of the experiment, the other numbers are durations in seconds. A span with a window of 0 measures nothing.
type Span struct {
	Start, Setup, Window, Cleanup float64
	Valid                         bool
}

const (
	stripHeight = 22.0
	stripMiddle = stripHeight / 2
)

// Strip draws when runs happened: solid while measuring, pale before and after, and a cross on invalid runs; total is
// the length of the axis in seconds. A text next to it names them.
func Strip(spans []Span, total float64) template.HTML {
	c := newCanvas("plot", stripHeight, Caption{})
	c.stretch()
	c.stroke("grid", "M0 11H1000")
	c.stroke("setup", strokes(spans, total, func(s Span) (from, to float64) {
		return s.Start, s.Start + s.Setup + s.Window + s.Cleanup
	}))
	c.stroke("window", strokes(spans, total, func(s Span) (from, to float64) {
		return s.Start + s.Setup, s.Start + s.Setup + s.Window
	}))
	c.unstretch()
	scale, last := Scale{Hi: total}, -1.0 // crosses closer than 0.4 % would overlap
	for _, s := range spans {
		if at := scale.At(s.Start + s.Setup + s.Window/2); !s.Valid && at-last > 0.4 {
			c.path("dot invalid", at, stripMiddle, cross, "")
			last = at
		}
	}
	return c.done()
}

// strokes returns a path of thick horizontal strokes, one for each stretch of time without a gap; part returns the
// begin and end of a span in seconds.
func strokes(spans []Span, total float64, part func(Span) (from, to float64)) string {
	ordered := slices.Clone(spans)
	slices.SortStableFunc(ordered, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var p pen
	scale := Scale{Hi: total}
	begin, end := -1.0, -1.0 // whole thousandths: closer strokes are drawn as one
	flush := func() {
		if begin >= 0 {
			p.move(begin, stripMiddle)
			p.b.WriteString("h" + decimal2(math.Max(end-begin, 1)))
			p.x += int(math.Max(end-begin, 1))
		}
	}
	for _, s := range ordered {
		from, to := part(s)
		if from == to {
			continue
		}
		x1, x2 := math.Round(stretched(scale.At(from))), math.Round(stretched(scale.At(to)))
		if x1 > end || begin < 0 {
			flush()
			begin, end = x1, x2
		}
		end = math.Max(end, x2)
	}
	flush()
	return p.String()
}

// StripAxis draws the time axis of strips; total is in seconds.
func StripAxis(total float64) template.HTML {
	c := newCanvas("plot axis", 18, Caption{})
	const most = 5
	for i := range most + 1 {
		t := float64(i) * clockStep(total/most)
		if t > total {
			break
		}
		x := (Scale{Hi: total}).At(t)
		c.text(x, 13, anchorAt(x), prose.Clock(t))
	}
	return c.done()
}

// clockSteps are the possible steps of a time axis, in seconds.
var clockSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200}

// clockStep returns a round time of at least least seconds.
func clockStep(least float64) float64 {
	for _, step := range clockSteps {
		if step >= least {
			return step
		}
	}
	return math.Ceil(least/86400) * 86400
}
