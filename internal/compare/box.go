package compare

import (
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// whisker is how many interquartile ranges a whisker may be long.
const whisker = 1.5

// boxes has a box of each case's own metric on each target, bounds too, of the valid runs that count.
func (t *trial) boxes() []Box {
	boxes := []Box{}
	for _, rc := range t.e.Cases {
		for _, metric := range boxed(rc.Metric) {
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

// boxed are the metrics that have boxes: what the case is about, and where that is a mean latency, what such
// measurements were published with.
func boxed(of string) []string {
	if of == metric.Mean {
		return []string{of, metric.P99, metric.Max, metric.Min}
	}
	return []string{of}
}

// ownValues are the values of a metric in the unit of the first run that has it: what is in another
// unit is another quantity.
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

// newBox fills in a box of at least one value.
func newBox(b Box, values []float64) Box {
	values = stats.Settle(values)[0]
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
