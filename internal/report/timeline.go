package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// timelineKinds are the kinds of requests, in the order of drawing.
var timelineKinds = []struct{ part, name string }{
	{metric.NewProbes, "new connections"}, {metric.TCPProbes, "an open connection"}, {metric.UDPProbes, "UDP"},
}

// The range of a timeline, in s: how long before the event it begins, and how long after the event it lasts at least.
const (
	timelineBefore = 0.1
	timelineLeast  = 0.3
)

// timeline draws requests around an event, in the first run that counts of each target; none if a case has none.
func (b *builder) timeline(m caseResult) []doc.Element {
	t := chart.Timeline{From: -timelineBefore, To: timelineLeast}
	slowest := 0.0
	var columns, kinds []doc.Label
	for _, target := range b.columns {
		runs := b.runs[m.Case][target]
		i := slices.IndexFunc(runs, func(r run) bool {
			return r.state == chart.Counts && slices.ContainsFunc(r.Series, hasMarks)
		})
		if i < 0 {
			continue
		}
		set := timelineColumn(runs[i].Series)
		for _, k := range set.Kinds {
			slowest = max(slowest, slices.Max(append(k.Slowest, 0)))
			t.To = max(t.To, 1.2*lastLost(k))
		}
		var notes []string
		for _, mark := range runs[i].Series[slices.IndexFunc(runs[i].Series, hasMarks)].Marks {
			set.Marks = append(set.Marks, mark.At)
			t.To = max(t.To, 1.2*mark.At)
			notes = append(notes, mark.Name+" "+unit.Format(mark.At, unit.Second))
		}
		t.Sets = append(t.Sets, set)
		columns = append(columns, doc.Label{Name: target, Note: strings.Join(notes, ", ")})
	}
	if len(t.Sets) == 0 || slowest == 0 {
		return nil
	}
	for i, k := range timelineKinds {
		kinds = append(kinds, doc.Label{Name: k.name, Style: chart.StyleNumber(i)})
	}
	// The rows of lost requests stand above the slowest response.
	t.Scale, t.Labels = chart.Linear(0, 1.3*slowest), axisLabels(unit.Second)
	t.Height, t.Count = timelineHeight, len(t.Sets)
	span := unit.Format(timelineBefore, unit.Second) + " before to " + unit.Format(t.To, unit.Second) + " after"
	f := b.names.figure(t, "Requests around the change of "+m.Case+": latencies of new connections, an open connection "+
		"and UDP, from "+span+", and what was lost", "change", m.Case)
	f.Title, f.Note, f.Legend, f.Columns = m.Case, "latency, "+span, kinds, columns
	return []doc.Element{f}
}

const timelineHeight = 190.0

// hasMarks reports whether a series is around an event.
func hasMarks(s result.Series) bool { return len(s.Marks) > 0 && s.Step > 0 }

// timelineColumn returns the requests of a run, by kind.
func timelineColumn(series []result.Series) (c chart.TimelineColumn) {
	for _, kind := range timelineKinds {
		k := chart.TimelineKind{}
		for _, s := range series {
			if !hasMarks(s) {
				continue
			}
			switch s.Name {
			case kind.part + metric.Latency:
				k.Begin, k.Step, k.Slowest = s.Begin, s.Step, s.Values
			case kind.part + metric.Lost:
				k.Begin, k.Step, k.Lost = s.Begin, s.Step, s.Values
			}
		}
		c.Kinds = append(c.Kinds, k)
	}
	return c
}

// lastLost returns the end of the last step in which requests of a kind were lost, in s; 0 if none were.
func lastLost(k chart.TimelineKind) float64 {
	for n := len(k.Lost) - 1; n >= 0; n-- {
		if k.Lost[n] > 0 {
			return k.Begin + float64(n+1)*k.Step
		}
	}
	return 0
}
