package chart

import (
	"html/template"
	"strconv"
	"strings"
)

// A Timeline shows requests around an event, a column for each target: answers as dots at their latencies, unanswered
// requests as bars at the top, a row for each kind of request, and events as vertical lines.
type Timeline struct {
	Columns
	From, To float64 // s, range of the time axis of a column
	Sets     []TimelineColumn
}

// A TimelineColumn holds the requests of one target, by kind, and its events.
type TimelineColumn struct {
	Kinds []TimelineKind
	Marks []float64 // times of events, s, between From and To
}

// A TimelineKind holds the requests of one kind, in steps of time.
type TimelineKind struct {
	Begin   float64   // s, of the first step
	Step    float64   // s
	Slowest []float64 // largest latency of a step, s; 0 without an answer
	Lost    []float64 // unanswered requests of a step
}

// The rows of unanswered requests, in pixels.
const (
	lostTop = 5.0
	lostRow = 7.0
)

// Plot draws the columns.
func (t Timeline) Plot(caption Caption) template.HTML {
	c := t.begin(caption)
	var marks strings.Builder
	for i, set := range t.Sets {
		for _, at := range set.Marks {
			marks.WriteString("M" + decimal1(t.timeX(i, at)) + " 0V" + decimal1(t.Height))
		}
	}
	c.stroke("mark", marks.String())
	for i, set := range t.Sets {
		for k, kind := range set.Kinds {
			class := " series" + strconv.Itoa(StyleNumber(k))
			c.stroke("probes"+class, t.answers(i, kind))
			c.stroke("lost"+class, t.losses(i, k, kind))
		}
	}
	c.unstretch()
	return c.done()
}

// timeX returns the position of a time in a column, in thousandths of the figure.
func (t Timeline) timeX(column int, s float64) float64 { return t.x(column, (s-t.From)/(t.To-t.From)) }

// answers returns the path of the answers to requests of a kind.
func (t Timeline) answers(column int, kind TimelineKind) string {
	var p pen
	for n, v := range kind.Slowest {
		if at := kind.Begin + (float64(n)+0.5)*kind.Step; v > 0 && at >= t.From && at <= t.To {
			p.move(t.timeX(column, at), t.y(v))
			p.dot()
		}
	}
	return p.String()
}

// losses returns the path of the times in which requests of a kind were unanswered.
func (t Timeline) losses(column, row int, kind TimelineKind) string {
	var b strings.Builder
	y := decimal1(lostTop + float64(row)*lostRow)
	for n := 0; n < len(kind.Lost); n++ {
		from := n
		for n < len(kind.Lost) && kind.Lost[n] > 0 {
			n++
		}
		begin, end := max(t.From, kind.Begin+float64(from)*kind.Step), min(t.To, kind.Begin+float64(n)*kind.Step)
		if n > from && begin < end {
			b.WriteString("M" + decimal1(t.timeX(column, begin)) + " " + y + "H" + decimal1(t.timeX(column, end)))
		}
	}
	return b.String()
}
