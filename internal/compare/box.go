package compare

import (
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// whisker is the maximum length of a whisker in interquartile ranges.
const whisker = 1.5

// boxes returns a box of the valid runs for each case's own metric on each target, also for bounds.
func (t *runTable) boxes() []Box {
	boxes := []Box{}
	for _, rc := range t.e.Cases {
		for _, metric := range boxMetrics(rc.Metric) {
			for _, x := range t.e.Targets {
				values, u := ownValues(metric, t.valid(rc.Name, x.Name))
				if len(values) > 0 {
					boxes = append(boxes, newBox(Box{Case: rc.Name, Metric: metric, Unit: u, Target: x.Name}, values))
				}
			}
		}
	}
	return boxes
}

// boxMetrics returns the metrics that get boxes: the case's own, and for a mean latency also those in published tables.
func boxMetrics(of string) []string {
	if of == metric.Mean {
		return []string{of, metric.P99, metric.Max, metric.Min}
	}
	return []string{of}
}

// ownValues returns the values of a metric in the unit of the first run that has it. Values in other units are skipped,
// because they measure another quantity.
func ownValues(metric string, runs map[int]*result.Run) (values []float64, u unit.Unit) {
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		v, has := runs[n].Value(metric)
		if !has || !v.Usable() || len(values) > 0 && v.Unit != u {
			continue
		}
		u = v.Unit
		values = append(values, v.Number)
	}
	return values, u
}

// newBox computes the statistics of a box from at least one value.
func newBox(b Box, values []float64) Box {
	values = stats.EqualiseRounding(values)[0]
	s := stats.Summarise(values)
	b.Runs, b.Beyond = s.N, []Number{}
	b.Lowest, b.Q1, b.Median, b.Q3, b.Highest = Number(s.Q1), Number(s.Q1), Number(s.Median), Number(s.Q3), Number(s.Q3)
	reach := whisker * (s.Q3 - s.Q1)
	for _, v := range slices.Sorted(slices.Values(values)) {
		if v < s.Q1-reach || v > s.Q3+reach {
			b.Beyond = append(b.Beyond, Number(v))
			continue
		}
		b.Lowest, b.Highest = min(b.Lowest, Number(v)), max(b.Highest, Number(v))
	}
	return b
}
