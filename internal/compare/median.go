package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Median holds one metric of one case on one target by itself, for experiments without comparisons.
type Median struct {
	Case   string        `json:"case"`
	Metric string        `json:"metric"`
	Unit   unit.Unit     `json:"unit"`
	Better metric.Better `json:"better"`
	Role   result.Role   `json:"role"` // of the case, including bounds
	Target string        `json:"target"`
	Runs   int           `json:"runs"`
	Median Number        `json:"median"` // over the valid runs
	// CI is the confidence interval of the median of the distribution of runs, from order statistics alone
	// (stats.QuantileInterval), without correction for several intervals. At 95 % its ends are infinite below six runs.
	CI    Interval `json:"ci"`
	Level float64  `json:"level"` // requested confidence of this single interval
	// Detectable is the smallest change, as a fraction, that the planned blocks would detect with a probability of 80 % on
	// another target with runs of the same spread, if all primary cases were compared; null if they would detect none.
	Detectable Number `json:"detectable"`
	// UpperBound is the node-to-node reference, with the target on both of its sides; nil if it was not measured.
	UpperBound *UpperBound `json:"upper_bound,omitempty"`
}

// addMedians adds the medians and their warnings if nothing is compared.
func (c *Comparison) addMedians(t *runTable) {
	if len(c.Comparisons) > 0 {
		return
	}
	c.Medians = t.medians()
	c.Warnings = append(c.Warnings, t.trendWarnings(c.Medians)...)
}

// medians returns the medians of all metrics of all cases on all targets, in the order of the plan, a case's own metric
// first.
func (t *runTable) medians() []Median {
	var list []Median
	for _, rc := range t.e.Cases {
		for _, x := range t.e.Targets {
			runs := t.valid(rc.Name, x.Name)
			for _, v := range metrics(rc.Metric, runs, runs) {
				m, ok := newMedian(v, runs, 1-t.e.Design.Alpha)
				if !ok {
					continue
				}
				m.Case, m.Role, m.Target = rc.Name, rc.Role, x.Name
				values, _ := ownValues(v.Metric, runs)
				m.Detectable = t.detectableFrom(values)
				m.UpperBound = t.upperBound(rc, Row{Case: rc.Name, Metric: v.Metric, Unit: v.Unit, Better: v.Better,
					Baseline: x.Name, Target: x.Name, BaselineMedian: m.Median, TargetMedian: m.Median})
				list = append(list, m)
			}
		}
	}
	return list
}

// detectableFrom returns the smallest change that could be detected from a target with these values. The log ratio of a
// block of two such targets has √2 times their spread.
func (t *runTable) detectableFrom(values []float64) Number {
	if len(values) < 2 || t.e.Design.Blocks == 0 || t.look == nil || slices.Min(values) <= 0 {
		return Missing()
	}
	_, variance := stats.Moments(logarithms(values))
	return t.detectable(math.Sqrt(2*variance), t.e.Design.Alpha/float64(max(countPrimaryCases(t.e.Cases), 1)))
}

// newMedian computes the median of a metric over runs, without case and target. It is not ok if the runs disagree on
// the metric's unit or have no usable value.
func newMedian(v result.Value, runs map[int]*result.Run, level float64) (m Median, ok bool) {
	r := Row{Metric: v.Metric, Unit: v.Unit, Better: v.Better}
	values, ok := r.values(runs)
	if !ok || len(values) == 0 {
		return Median{}, false
	}
	m = Median{Metric: v.Metric, Unit: v.Unit, Better: v.Better,
		Runs: len(values), Median: Number(stats.Median(values)), Level: level, Detectable: Missing()}
	m.CI.Lo, m.CI.Hi = stats.QuantileInterval(values, 0.5, level)
	return m, true
}

// trendWarnings returns a warning about the cases whose own metric rises or falls from run to run, if there are any. In
// a comparison a block's drift affects both sides; a single target has no such control, and its interval assumes
// independent runs. The error probability of all these tests together is at most alpha.
func (t *runTable) trendWarnings(list []Median) []Warning {
	type test struct {
		name string
		p    float64
	}
	var tests []test
	for _, m := range list {
		if rc, _ := t.e.Case(m.Case); m.Metric == rc.Metric {
			values, _ := ownValues(m.Metric, t.valid(m.Case, m.Target))
			tests = append(tests, test{m.Case, stats.TrendP(values)})
		}
	}
	var names []string
	for _, x := range tests {
		if x.p <= t.e.Design.Alpha/float64(len(tests)) {
			names = append(names, x.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Warning{{Code: Trend, Cases: names}}
}

// measuredSummary returns the sentence about an experiment with one target.
func measuredSummary(c Comparison) string {
	var cases []string
	for _, m := range c.Medians {
		if !slices.Contains(cases, m.Case) {
			cases = append(cases, m.Case)
		}
	}
	return fmt.Sprintf("%s measured on %s, which is compared with nothing.",
		unit.Plural(len(cases), "case"), c.Targets[0].Name)
}
