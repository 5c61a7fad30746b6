package report

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// longest is the latency in nanoseconds up to which histograms are merged: an hour.
const longest = 3600 * 1e9

// A distribution is the latencies of all runs that count of one case on one target, merged. It is for
// looking at; verdicts come from the percentiles of single runs.
type distribution struct {
	Case, Name, Target string
	histogram          *hdrhistogram.Histogram
	Broken             []string // runs whose histogram could not be read, with the reason
}

// distributions merges the histograms of the runs, by case, name and target, in order of appearance.
func distributions(runs []run) []*distribution {
	var all []*distribution
	at := map[[3]string]*distribution{}
	for _, r := range runs {
		if r.state != chart.Counts {
			continue
		}
		for _, h := range r.Histograms {
			key := [3]string{r.Case, h.Name, r.label}
			d := at[key]
			if d == nil {
				d = &distribution{Case: r.Case, Name: h.Name, Target: r.label, histogram: hdrhistogram.New(1, longest, 3)}
				at[key] = d
				all = append(all, d)
			}
			if err := d.merge(h); err != nil {
				d.Broken = append(d.Broken, fmt.Sprintf("run %s: %v", r.ID, err))
			}
		}
	}
	return all
}

func (d *distribution) merge(h result.Histogram) error {
	if h.Unit != "ns" {
		return fmt.Errorf("histogram %s is in %q, not in ns", h.Name, h.Unit)
	}
	decoded, err := hdrhistogram.Decode([]byte(h.Encoded))
	if err != nil {
		return fmt.Errorf("decode histogram %s: %w", h.Name, err)
	}
	if dropped := d.histogram.Merge(decoded); dropped > 0 {
		return fmt.Errorf("histogram %s: %d latencies above an hour are left out", h.Name, dropped)
	}
	return nil
}

func (d *distribution) count() int64 { return d.histogram.TotalCount() }

// enough says whether there are samples enough for a two-sided 95 % interval of the quantile.
func (d *distribution) enough(quantile float64) bool {
	return d.count() > 0 && (quantile == 0 || d.count() >= int64(stats.MinSamples(quantile, 0.95)))
}

// at returns the latency of a quantile in seconds.
func (d *distribution) at(quantile float64) float64 {
	return float64(d.histogram.ValueAtQuantile(quantile*100)) / 1e9
}

// curve is the distribution as far as its samples carry it: 20 points for each nine.
func (d *distribution) curve() chart.Curve {
	c := chart.Curve{Label: d.Target}
	for i := 0; i <= 120; i++ {
		quantile := 1 - math.Pow(10, -float64(i)/20)
		if !d.enough(quantile) {
			break
		}
		c.Points = append(c.Points, chart.Point{Quantile: quantile, Value: d.at(quantile)})
	}
	return c
}
