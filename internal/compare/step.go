package compare

import (
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// unknownStep is the step, as a fraction, of a metric with a single distinct value, or of which only a lower bound is
// known.
const unknownStep = 1

// stepOf returns the resolution of a metric as a fraction: the one that the runs record, or the one that their values
// show, whichever is larger. If most values occur several times, the latter is the smallest distance between distinct
// values; if all values are the same, the resolution is unknown.
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

// warnStep explains an interval that is wider than the values alone require.
func (r *Row) warnStep(delta float64) {
	if r.step >= unknownStep {
		r.warn(Warning{Code: StepUnknown})
		return
	}
	r.warn(Warning{Code: CoarseStep, Step: Number(r.step), Delta: Number(delta)})
}
