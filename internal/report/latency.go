package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

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
			h, err := in.loadHistogram(r.Run, h)
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

// loadHistogram returns a histogram with its encoded data, reading them if they are not loaded. The error is that of
// Input.Histogram.
func (in Input) loadHistogram(r *result.Run, h result.Histogram) (result.Histogram, error) {
	if h.Encoded != "" || in.Histogram == nil {
		return h, nil
	}
	return in.Histogram(r, h.Name)
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

// enoughSamples reports whether a histogram has enough samples for a two-sided 95 % interval of a quantile.
func enoughSamples(h latencies, quantile float64) bool {
	n := h.TotalCount()
	return n > 0 && (quantile == 0 || n >= int64(stats.MinSamples(quantile, 0.95)))
}

// points returns the points of a distribution, in seconds, up to the highest quantile with enough samples.
func points(h latencies, quantiles []float64) []chart.Point {
	var percents []float64
	for _, q := range quantiles {
		if !enoughSamples(h, q) {
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

// A latencySection shows the distributions of one case.
type latencySection struct {
	File       string
	Case, Name string
	Marks      []finding
	Axis, Plot template.HTML
	Targets    []latencyRow
	Broken     []string
}

type latencyRow struct {
	Index         int // of the target, from 0
	Target, Count string
	Key           template.HTML
	Quantiles     []string
}

// maxSingleRuns is the number of runs of a target above which single runs are not drawn.
const maxSingleRuns = 40

// tableQuantiles are the columns of the table of percentiles; the template has their headings.
var tableQuantiles = []float64{0.5, 0.9, 0.99, 0.999, 0.9999}

// latencies returns the sections of the cases with figures.
func (b *builder) latencies() folded[latencySection] {
	var list folded[latencySection]
	for i, m := range b.casesWithFigures() {
		for _, s := range b.latencySections(m, "l"+strconv.Itoa(i+1)) {
			list.add(m.Role, s)
		}
	}
	return list
}

// latencySections draws the distributions of a case, one figure for each histogram name.
func (b *builder) latencySections(m caseResult, id string) []latencySection {
	var sections []latencySection
	var curves []chart.Curves
	at := index[string]{}
	single, each := 0, 8
	if m.Role == result.Primary {
		single, each = maxSingleRuns, 20
	}
	for n, target := range b.columns {
		for _, d := range b.in.distributions(b.runs[m.Case][target], single) {
			i, first := at.add(d.Name)
			if first {
				marks := b.findings.marks(m.Case, "", "", "")
				sections = append(sections, latencySection{Case: m.Case, Name: d.Name, Marks: marks})
				caption := chart.Caption{ID: id + "-" + strconv.Itoa(i+1), Title: d.Name + " by percentile of " + m.Case}
				curves = append(curves, chart.Curves{Caption: caption, Labels: latencyLabels})
			}
			sections[i].Broken = append(sections[i].Broken, d.Broken...)
			if d.count() == 0 {
				continue
			}
			sections[i].Targets = append(sections[i].Targets, newLatencyRow(d, n))
			curves[i].Curves = append(curves[i].Curves, chart.Curve{Label: target,
				Index: n, Points: points(d.histogram, curveQuantiles(each)), Runs: d.Runs})
		}
	}
	for i := range sections {
		sections[i].Axis, sections[i].Plot = curves[i].YAxis(), curves[i].Plot()
	}
	return sections
}

// newLatencyRow returns the percentiles of the n-th target as text.
func newLatencyRow(d *distribution, n int) latencyRow {
	row := latencyRow{Index: n, Target: d.Target, Count: strconv.FormatInt(d.count(), 10), Key: chart.Key(n)}
	known := points(d.histogram, tableQuantiles)
	for i := range tableQuantiles {
		text := "too few"
		if i < len(known) {
			text = unit.Format(known[i].Value, unit.Second)
		}
		row.Quantiles = append(row.Quantiles, text)
	}
	row.Quantiles = append(row.Quantiles, unit.Format(float64(d.histogram.Max())/1e9, unit.Second))
	return row
}
