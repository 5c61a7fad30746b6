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

// longest is the latency in nanoseconds up to which histograms are merged: an hour.
const longest = 3600 * 1e9

// A distribution is the latencies of all runs that count of one case on one target, merged. It is for
// looking at; verdicts come from the percentiles of single runs.
type distribution struct {
	Name, Target string
	histogram    *hdrhistogram.Histogram
	Runs         [][]chart.Point // each run alone, if they are wanted
	Broken       []string        // runs whose histogram could not be read, with the reason
}

// distributions merges the histograms of runs of one case on one target, by their names, in order of
// appearance. Single runs are kept too if there are at most so many.
func (in Input) distributions(runs []run, single int) []*distribution {
	var all []*distribution
	at := index[string]{}
	for _, r := range runs {
		if r.state != chart.Counts {
			continue
		}
		for _, h := range r.Histograms {
			i, first := at.of(h.Name)
			if first {
				all = append(all, &distribution{Name: h.Name, Target: r.Target, histogram: hdrhistogram.New(1, longest, 3)})
			}
			d := all[i]
			h, err := in.whole(r.Run, h)
			if err == nil {
				err = d.merge(h, len(runs) <= single)
			}
			if err != nil {
				d.Broken = append(d.Broken, fmt.Sprintf("run %s: %v", r.ID, err))
			}
		}
	}
	return all
}

// whole is a histogram of a run with its code, as long as there is something to read it from.
func (in Input) whole(r *result.Run, h result.Histogram) (result.Histogram, error) {
	if h.Encoded != "" || in.Histogram == nil {
		return h, nil
	}
	return in.Histogram(r, h.Name)
}

// merge adds a histogram of a run, and keeps it alone too if single runs are wanted.
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

func (d *distribution) count() int64 { return d.histogram.TotalCount() }

// latencies are a histogram, of one run or merged.
type latencies interface {
	TotalCount() int64
	ValueAtPercentilesSlice(percentiles []float64) []int64
}

// enough says whether there are samples enough for a two-sided 95 % interval of the quantile.
func enough(h latencies, quantile float64) bool {
	n := h.TotalCount()
	return n > 0 && (quantile == 0 || n >= int64(stats.MinSamples(quantile, 0.95)))
}

// points is a distribution as far as its samples carry it, in seconds.
func points(h latencies, quantiles []float64) []chart.Point {
	var percents []float64
	for _, q := range quantiles {
		if !enough(h, q) {
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

// curveQuantiles are where a merged curve is drawn: so many points for each nine.
func curveQuantiles(each int) []float64 {
	var list []float64
	for i := range 6*each + 1 {
		list = append(list, 1-math.Pow(10, -float64(i)/float64(each)))
	}
	return list
}

// runQuantiles are where the thin curve of a single run is drawn.
var runQuantiles = []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999}

// A latencySection is the distributions of one case.
type latencySection struct {
	File       string
	Case, Name string
	Marks      []finding
	Axis, Plot template.HTML
	Targets    []latencyRow
	Broken     []string
}

type latencyRow struct {
	Rank          int
	Target, Count string
	Key           template.HTML
	Quantiles     []string
}

// mostSingle is the number of runs of a target above which they are not drawn one by one.
const mostSingle = 40

// tableQuantiles are the columns of the table of percentiles; the template has their names.
var tableQuantiles = []float64{0.5, 0.9, 0.99, 0.999, 0.9999}

func (b *builder) latencies() folded[latencySection] {
	var list folded[latencySection]
	for i, m := range b.drawn() {
		for _, s := range b.latencySections(m, "l"+strconv.Itoa(i+1)) {
			list.add(m.Role, s)
		}
	}
	return list
}

// latencySections draws the distributions of a case, one figure for each name of a histogram.
func (b *builder) latencySections(m measured, id string) []latencySection {
	var sections []latencySection
	var curves []chart.Curves
	at := index[string]{}
	single, each := 0, 8
	if m.Role == result.Primary {
		single, each = mostSingle, 20
	}
	for rank, target := range b.columns {
		for _, d := range b.in.distributions(b.runs[m.Case][target], single) {
			i, first := at.of(d.Name)
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
			sections[i].Targets = append(sections[i].Targets, newLatencyRow(d, rank))
			curves[i].Curves = append(curves[i].Curves, chart.Curve{Label: target,
				Rank: rank, Points: points(d.histogram, curveQuantiles(each)), Runs: d.Runs})
		}
	}
	for i := range sections {
		sections[i].Axis, sections[i].Plot = curves[i].YAxis(), curves[i].Plot()
	}
	return sections
}

func newLatencyRow(d *distribution, rank int) latencyRow {
	row := latencyRow{Rank: rank, Target: d.Target, Count: strconv.FormatInt(d.count(), 10), Key: chart.Key(rank)}
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
