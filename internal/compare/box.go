package compare

import (
	"maps"
	"slices"

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
		for _, x := range t.e.Targets {
			values, u := ownValues(rc.Metric, t.valid(rc.Name, x.Name))
			if len(values) > 0 {
				boxes = append(boxes, newBox(rc, x.Name, u, values))
			}
		}
	}
	return boxes
}

// ownValues are the values of a metric in the unit of the first run that has it: what is in another
// unit is another quantity.
func ownValues(metric string, runs map[int]*result.Run) (values []float64, u unit.Unit) {
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		v, has := runs[n].Value(metric)
		if !has || !usable(v.Number) || len(values) > 0 && v.Unit != u {
			continue
		}
		u = v.Unit
		values = append(values, v.Number)
	}
	return values, u
}

// newBox computes a box of at least one value.
func newBox(rc result.Case, target string, u unit.Unit, values []float64) Box {
	s := stats.Summarise(values)
	b := Box{
		Case: rc.Name, Metric: rc.Metric, Unit: u, Target: target, Runs: s.N,
		Lowest: Number(s.Q1), Q1: Number(s.Q1), Median: Number(s.Median), Q3: Number(s.Q3), Highest: Number(s.Q3), Beyond: []Number{},
	}
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
