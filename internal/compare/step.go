package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// unknownStep is the step of a metric of which only one value was seen, or a lower bound.
const unknownStep = 1

// stepOf returns the fraction in steps of which a metric moves: what the runs know of it, or what their values show.
// Where most values are there several times, that is the smallest distance of two that are not the same; where all are
// the same, no two of them tell how far apart they would be.
func stepOf(known []float64, values ...[]float64) float64 {
	step := 0.0
	if len(known) > 0 {
		step = stats.Median(known)
	}
	all := slices.Concat(values...)
	slices.Sort(all)
	distinct := slices.Compact(slices.Clone(all))
	if len(all) < 4 || 2*len(distinct) > len(all) || distinct[0] <= 0 {
		return step
	}
	least := float64(unknownStep)
	for i, v := range distinct[1:] {
		least = math.Min(least, v/distinct[i]-1)
	}
	return math.Max(step, least)
}

// stepWords explain an interval that is wider than the values alone make it.
func (r *Row) stepWords() string {
	if r.step >= unknownStep {
		return "The resolution of the metric is unknown here, because all values are the same or a search ended without a " +
			"rate that failed; the interval is wider by a factor of two on either side."
	}
	return fmt.Sprintf("The metric moves in steps of about %s here, more than the %s that matter; the interval is wider "+
		"by one step on either side.", percent(r.step), matters(r.Delta))
}

// stepsOf returns the steps that runs know of a metric.
func stepsOf(v result.Value, sides ...map[int]*result.Run) []float64 {
	var steps []float64
	for _, runs := range sides {
		for _, r := range runs {
			if x, has := valueIn(r, v); has {
				steps = append(steps, x.Step)
			}
		}
	}
	return steps
}
