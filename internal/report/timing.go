package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// timing holds how the wall time of an experiment was spent; zero without runs, and for unpaired comparisons.
type timing struct {
	First time.Time
	Total float64 // seconds from the first start of a site or run to the last end
	Share float64 // share of Total spent measuring, from 0 to 1
}

// timingOf returns the timing of an input.
func timingOf(in Input) timing {
	if len(in.Runs) == 0 || !in.Comparison.Paired {
		return timing{}
	}
	first, last := in.Runs[0].Start, in.Runs[0].Start
	cover := func(start, end time.Time) {
		if start.Before(first) {
			first = start
		}
		if end.After(last) {
			last = end
		}
	}
	for _, r := range in.Runs {
		cover(r.Start, r.End())
	}
	for _, s := range in.Sites {
		cover(s.Start, s.End())
	}
	t := timing{First: first, Total: last.Sub(first).Seconds()}
	if t.Total > 0 {
		t.Share = measuringSeconds(in.Runs, in.Experiment.Design.Parallel) / t.Total
	}
	return t
}

// overhead returns medians of what the sites and runs of a target took in addition to measuring, from its runs, valid
// or not; false if there are none.
func overhead(in Input, target string) (row doc.Row, known bool) {
	var outside, setup, cleanup, pods, calls []float64
	inSite := map[int]float64{}
	for _, r := range in.Runs {
		if r.Target != target {
			continue
		}
		outside = append(outside, r.Setup+r.Cleanup)
		if r.Site > 0 {
			inSite[r.Site]++
		}
	}
	for _, s := range in.Sites {
		if s.Target != target {
			continue
		}
		setup, cleanup = append(setup, s.Setup), append(cleanup, s.Cleanup)
		if v, ok := s.Value(metric.Pods); ok {
			pods = append(pods, v.Number)
		}
		if v, ok := s.Value(metric.APICalls); ok {
			calls = append(calls, v.Number)
		}
	}
	took := func(x []float64) doc.Cell {
		if len(x) == 0 {
			return doc.Cell{}
		}
		return doc.Cell{Text: fmt.Sprintf("%.1f s", stats.Median(x))}
	}
	had := func(x []float64) doc.Cell {
		if len(x) == 0 || len(setup) == 0 || stats.Median(x) == 0 {
			return doc.Cell{}
		}
		return doc.Cell{Text: strconv.FormatFloat(math.Round(stats.Median(x)*2)/2, 'f', -1, 64)} // it may be a half
	}
	sites := doc.Cell{}
	if len(setup) > 0 {
		sites.Text = strconv.Itoa(len(setup))
	}
	return doc.Row{Head: target, Cells: []doc.Cell{sites, took(setup), took(cleanup),
		had(slices.Collect(maps.Values(inSite))), had(pods), had(calls), took(outside)}}, len(outside) > 0
}

// measuringSeconds returns the total time of measuring. Of parallel runs only the longest counts.
func measuringSeconds(runs []result.Run, parallel bool) (total float64) {
	type attempt struct {
		name          string
		block, number int
	}
	longest := map[attempt]float64{}
	for _, r := range runs {
		if !parallel {
			total += r.Window
			continue
		}
		at := attempt{r.Case, r.Block, r.Attempt}
		if more := r.Window - longest[at]; more > 0 {
			total += more
			longest[at] = r.Window
		}
	}
	return total
}

// seconds converts seconds to a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// timeSpent returns how the wall time of an experiment was spent; without parts if its runs have no times.
func timeSpent(in Input) doc.Block {
	t := timingOf(in)
	if t.Total <= 0 {
		return doc.Block{}
	}
	table := doc.Table{}
	for _, head := range []string{"sites", "to make", "to remove", "runs each", "pods each", "API requests each",
		"around a run"} {
		table.Columns = append(table.Columns, doc.Column{Head: head})
	}
	for _, target := range in.Experiment.Targets {
		if row, known := overhead(in, target.Name); known {
			table.Rows = append(table.Rows, row)
		}
	}
	return doc.Block{Title: "Time", Level: doc.Detail, Parts: append([]doc.Element{doc.Paragraph{Text: fmt.Sprintf(
		"%.0f %% of the %s from start to end were spent measuring. Medians of each site, and of the time around a run:",
		t.Share*100, seconds(t.Total).Round(time.Second))}}, parts(table.WithoutEmptyColumns())...)}
}

// overTime returns when the runs happened, and what happened within them.
func (b *builder) overTime() doc.Block {
	return doc.Block{ID: "time", Title: "Over time", Level: doc.Data, Parts: nested(
		b.order(), timeSpent(b.in),
		doc.Block{Title: "Around a change", Parts: b.perCase(b.timeline), About: "The first run of each target. A dot is " +
			"the slowest response to the requests of 10 ms, at the time of the requests; a bar at the top is a time in which " +
			"some were never answered. Upright: the request for the change, when the API server told of it, and when new " +
			"connections showed it."},
		doc.Block{Title: "Within the runs", Parts: b.perCase(b.series), About: "A line is a run from start to end, without " +
			"its ramp."})}
}

// order returns when every run happened, and when the sites were set up and cleaned up.
func (b *builder) order() doc.Block {
	t := timingOf(b.in)
	if t.Total <= 0 {
		return doc.Block{}
	}
	since := func(at time.Time) float64 { return at.Sub(t.First).Seconds() }
	spans, runs, invalid := map[string][]chart.Span{}, map[string]int{}, map[string]int{}
	for _, s := range b.in.Sites {
		spans[s.Target] = append(spans[s.Target], chart.Span{Start: since(s.Start), Setup: s.Setup, Valid: true},
			chart.Span{Start: since(s.Start) + s.Setup + s.Used, Cleanup: s.Cleanup, Valid: true})
	}
	for _, r := range b.in.runs() {
		runs[r.Target]++
		if !r.Valid() {
			invalid[r.Target]++
		}
		spans[r.Target] = append(spans[r.Target], chart.Span{Start: since(r.Start), Setup: r.Setup, Window: r.Window,
			Cleanup: r.Cleanup, Valid: r.Valid()})
	}
	table := doc.Table{Name: "order", Columns: []doc.Column{{Axis: chart.StripAxis(t.Total)}}, Legend: "Solid: " +
		"measuring. Pale: a site was made or removed, or a run started or ended. Empty: other targets had their turn. A " +
		"cross marks an invalid run."}
	for _, target := range b.columns {
		table.Rows = append(table.Rows, doc.Row{Head: target,
			Sub:   fmt.Sprintf("%s, %d invalid", unit.Plural(runs[target], "run"), invalid[target]),
			Cells: []doc.Cell{{Plot: chart.Strip(spans[target], t.Total)}}})
	}
	return doc.Block{Title: "When the runs happened, in minutes since the start", Parts: parts(table)}
}
