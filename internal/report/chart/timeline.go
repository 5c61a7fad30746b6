package chart

import (
	"html/template"
	"strconv"
	"strings"
)

// A Timeline shows requests around an event, a column for each target: answers as dots at their latencies, requests
// that were never answered as bars at the top, a row for each kind of requests, and what happened as upright lines.
type Timeline struct {
	Columns
	From, To float64 // s, of the time within a column
	Sets     []TimelineColumn
}

// A TimelineColumn is the requests of one target, by their kinds.
type TimelineColumn struct {
	Kinds []TimelineKind
	Marks []float64 // s, between From and To
}

// A TimelineKind is the requests of one kind, in steps.
type TimelineKind struct {
	Begin   float64   // s, of the first step
	Step    float64   // s
	Slowest []float64 // latency of a step; 0 without an answer
	Lost    []float64 // requests of a step that were never answered
}

// The rows of what was lost, in pixels.
const (
	lostTop = 5.0
	lostRow = 7.0
)

// Plot draws the columns.
func (t Timeline) Plot() template.HTML {
	c := t.begin()
	var marks strings.Builder
	for i, set := range t.Sets {
		for _, at := range set.Marks {
			marks.WriteString("M" + short(t.at(i, at)) + " 0V" + short(t.Height))
		}
	}
	c.stroke("mark", marks.String())
	for i, set := range t.Sets {
		for k, kind := range set.Kinds {
			class := " series" + strconv.Itoa(Series(k))
			c.stroke("probes"+class, t.dots(i, kind))
			c.stroke("lost"+class, t.bars(i, k, kind))
		}
	}
	c.unstretch()
	return c.done()
}

// at is a time in a column, in thousandths of the figure.
func (t Timeline) at(column int, s float64) float64 { return t.x(column, (s-t.From)/(t.To-t.From)) }

// dots are the answers of a kind.
func (t Timeline) dots(column int, kind TimelineKind) string {
	var p pen
	for n, v := range kind.Slowest {
		if at := kind.Begin + (float64(n)+0.5)*kind.Step; v > 0 && at >= t.From && at <= t.To {
			p.move(t.at(column, at), t.y(v))
			p.dot()
		}
	}
	return p.String()
}

// bars are the times in which requests of a kind were lost.
func (t Timeline) bars(column, row int, kind TimelineKind) string {
	var b strings.Builder
	y := short(lostTop + float64(row)*lostRow)
	for n := 0; n < len(kind.Lost); n++ {
		from := n
		for n < len(kind.Lost) && kind.Lost[n] > 0 {
			n++
		}
		begin, end := max(t.From, kind.Begin+float64(from)*kind.Step), min(t.To, kind.Begin+float64(n)*kind.Step)
		if n > from && begin < end {
			b.WriteString("M" + short(t.at(column, begin)) + " " + y + "H" + short(t.at(column, end)))
		}
	}
	return b.String()
}
