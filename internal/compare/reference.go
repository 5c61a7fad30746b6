package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// upperBound compares a row of a case's own metric with the case's reference, each side with the reference on its own
// underlay in its own experiment; it returns nil if neither has one. Other metrics get no share: a slower path may well
// have fewer retransmits.
func (t *runTable) upperBound(rc result.Case, r Row) *UpperBound {
	if r.Metric != rc.Metric {
		return nil
	}
	nameA, boundA := t.boundOf(r, r.Baseline)
	nameB, boundB := t.boundOf(r, r.Target)
	if len(boundA)+len(boundB) == 0 {
		return nil
	}
	bound := UpperBound{Case: cmp.Or(nameA, nameB), Median: Number(stats.Median(boundA)),
		TargetMedian: Number(stats.Median(boundB))}
	bound.BaselineShare = share(r.Better, r.BaselineMedian, stats.Median(boundA))
	bound.TargetShare = share(r.Better, r.TargetMedian, stats.Median(boundB))
	return &bound
}

// share returns the share of a bound that a median reaches.
func share(better metric.Better, median Number, bound float64) Number {
	if better == metric.Lower {
		return Number(bound / float64(median))
	}
	return Number(float64(median) / bound)
}

// boundOf returns the name of the case that is the reference of the row's case, and its values above 0 on the underlay
// of a target.
func (t *runTable) boundOf(r Row, target string) (name string, values []float64) {
	t = t.tableOf(target)
	rc, _ := t.e.Case(r.Case)
	runs := t.valid(rc.Bound, t.e.BoundsOf(target))
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		v, has := valueIn(runs[n], result.Value{Metric: r.Metric, Unit: r.Unit})
		if has && v.Unit == r.Unit && v.Usable() && v.Number > 0 {
			values = append(values, v.Number)
		}
	}
	return rc.Bound, values
}

// judgeReferences marks the references that a target exceeds by more than delta. They are no limit, so all shares of
// them are removed.
func (c *Comparison) judgeReferences() {
	type key struct{ rc, metric string }
	all := map[key][]*UpperBound{}
	fastest := map[key]UpperBound{}
	addShare := func(of key, b *UpperBound, target string, share Number) {
		all[of] = append(all[of], b)
		if by := share - 1; by.Known() && by > max(Number(c.Delta), fastest[of].ExceededBy) {
			fastest[of] = UpperBound{ExceededBy: by, Faster: target}
		}
	}
	for _, r := range c.Comparisons {
		if b := r.UpperBound; b != nil {
			addShare(key{r.Case, r.Metric}, b, r.Baseline, b.BaselineShare)
			addShare(key{r.Case, r.Metric}, b, r.Target, b.TargetShare)
		}
	}
	for _, m := range c.Medians {
		if b := m.UpperBound; b != nil {
			addShare(key{m.Case, m.Metric}, b, m.Target, b.TargetShare)
		}
	}
	for of, f := range fastest {
		for _, b := range all[of] {
			b.BaselineShare, b.TargetShare, b.ExceededBy, b.Faster = Missing(), Missing(), f.ExceededBy, f.Faster
		}
	}
}
