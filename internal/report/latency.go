package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// longestNanoseconds is the largest latency of a merged histogram: an hour.
const longestNanoseconds = 3600 * 1e9

// A distribution merges the latencies of one case on one target, from all runs that count. It is for figures only;
// verdicts come from the percentiles of single runs.
type distribution struct {
	Name, Target string
	histogram    *hdrhistogram.Histogram
	Runs         [][]chart.Point // single runs, if wanted
	Broken       []string        // errors of runs whose histogram could not be read
}

// distributions merges the histograms of runs of one case on one target, by histogram name, in order of appearance. It
// also keeps the single runs if their number is at most single.
func (in Input) distributions(runs []run, maxSingleRuns int) []*distribution {
	var all []*distribution
	at := index[string]{}
	for _, r := range runs {
		if r.state != chart.Counts {
			continue
		}
		for _, h := range r.Histograms {
			i, first := at.add(h.Name)
			if first {
				all = append(all, &distribution{Name: h.Name, Target: r.Target,
					histogram: hdrhistogram.New(1, longestNanoseconds, 3)})
			}
			d := all[i]
			var err error
			if h.Encoded == "" && in.Histogram != nil {
				h, err = in.Histogram(r.Run, h.Name)
			}
			if err == nil {
				err = d.merge(h, len(runs) <= maxSingleRuns)
			}
			if err != nil {
				d.Broken = append(d.Broken, fmt.Sprintf("run %s: %v", r.ID, err))
			}
		}
	}
	return all
}

// merge adds a histogram of a run, and keeps the run if single is set. It returns an error if the unit is not ns, the
// data are damaged, or latencies exceed an hour.
func (d *distribution) merge(h result.Histogram, single bool) error {
	if h.Unit != "ns" {
		return fmt.Errorf("histogram %s is in %q, not in ns", h.Name, h.Unit)
	}
	alone, err := hdrhistogram.DecodePacked([]byte(h.Encoded))
	if err != nil {
		return fmt.Errorf("decode histogram %s: %w", h.Name, err)
	}
	if single {
		d.Runs = append(d.Runs, points(alone, runQuantiles))
	}
	if dropped := alone.MergeInto(d.histogram); dropped > 0 {
		return fmt.Errorf("histogram %s: %d latencies above an hour are left out", h.Name, dropped)
	}
	return nil
}

// count returns the number of latencies.
func (d *distribution) count() int64 { return d.histogram.TotalCount() }

// latencies is a histogram of one run or of merged runs.
type latencies interface {
	TotalCount() int64
	ValueAtPercentilesSlice(percentiles []float64) []int64
}

// points returns the points of a distribution, in seconds, up to the highest quantile with enough samples for a
// two-sided 95 % interval.
func points(h latencies, quantiles []float64) []chart.Point {
	var percents []float64
	for _, q := range quantiles {
		if n := h.TotalCount(); n == 0 || q > 0 && n < int64(stats.MinSamples(q, 0.95)) {
			break
		}
		percents = append(percents, q*100)
	}
	var list []chart.Point
	for i, ns := range h.ValueAtPercentilesSlice(percents) {
		list = append(list, chart.Point{Quantile: quantiles[i], Value: float64(ns) / 1e9})
	}
	return list
}

// curveQuantiles returns the quantiles of a merged curve, from 0 to six nines; each is the number of points per nine.
func curveQuantiles(pointsPerNine int) []float64 {
	var list []float64
	for i := range 6*pointsPerNine + 1 {
		list = append(list, 1-math.Pow(10, -float64(i)/float64(pointsPerNine)))
	}
	return list
}

// runQuantiles are the quantiles of the thin curve of a single run.
var runQuantiles = []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999}

// maxSingleRuns is the number of runs of a target above which single runs are not drawn.
const maxSingleRuns = 40

// tablePercentiles are the percentiles of the table.
var tablePercentiles = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.P9999}

// latency returns the distributions of latencies.
func (b *builder) latency() doc.Block {
	return doc.Block{ID: "latency", Title: "Latency", Level: doc.Data, About: "Thick lines pool all valid runs of a " +
		"target; thin lines are single runs. A percentile is shown if there are enough samples for a 95 % interval. The " +
		"verdicts come from the percentiles of single runs, not from these curves.", Parts: b.perCase(b.latencies)}
}

// latencies draws the distributions of a case, one figure for each histogram name.
func (b *builder) latencies(m caseResult) []doc.Element {
	type drawn struct {
		name   string
		curves chart.Curves
		keys   []doc.Label
		rows   []doc.Row
		broken []string
	}
	var all []drawn
	at := index[string]{}
	single, pointsPerNine := 0, 8
	if m.Role == result.Primary {
		single, pointsPerNine = maxSingleRuns, 20
	}
	keys, quantiles := targetLabels(b.columns, false), curveQuantiles(pointsPerNine)
	for n, target := range b.columns {
		for _, d := range b.in.distributions(b.runs[m.Case][target], single) {
			i, first := at.add(d.Name)
			if first {
				all = append(all, drawn{name: d.Name, curves: chart.Curves{Labels: latencyLabels}})
			}
			x := &all[i]
			if x.broken = append(x.broken, d.Broken...); d.count() == 0 {
				continue
			}
			x.keys, x.rows = append(x.keys, keys[n]), append(x.rows, percentiles(d))
			x.curves.Curves = append(x.curves.Curves,
				chart.Curve{Index: n, Points: points(d.histogram, quantiles), Runs: d.Runs})
		}
	}
	var list []doc.Element
	for _, x := range all {
		if len(x.keys) > 0 {
			f := b.names.figure(x.curves, x.name+" by percentile of "+m.Case, "percentiles", m.Case, x.name)
			f.Title, f.Note, f.Legend = m.Case, x.name+" by percentile, lower is better", x.keys
			f.Links, f.Table.Rows = links(b.findings.marks(m.Case, "", "", "")), x.rows
			for _, name := range slices.Concat(tablePercentiles, []string{"longest", "samples"}) {
				f.Table.Columns = append(f.Table.Columns, doc.Column{Head: name})
			}
			list = append(list, f)
		}
		if n := len(x.broken); n > 0 {
			text := "Left out: " + x.broken[0]
			if n > 1 {
				text = fmt.Sprintf("Left out: %d runs, such as %s", n, x.broken[0])
			}
			list = append(list, doc.Paragraph{Text: text, Tone: doc.Warning})
		}
	}
	return list
}

// percentiles returns the percentiles of a target as a row.
func percentiles(d *distribution) doc.Row {
	row := doc.Row{Head: d.Target}
	var quantiles []float64
	for _, name := range tablePercentiles {
		quantiles = append(quantiles, metric.Quantile(name))
	}
	known := points(d.histogram, quantiles)
	for i := range quantiles {
		text := "too few"
		if i < len(known) {
			text = unit.Format(known[i].Value, unit.Second)
		}
		row.Cells = append(row.Cells, doc.Cell{Text: text})
	}
	row.Cells = append(row.Cells, doc.Cell{Text: unit.Format(float64(d.histogram.Max())/1e9, unit.Second)},
		doc.Cell{Text: strconv.FormatInt(d.count(), 10)})
	return row
}
