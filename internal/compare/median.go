package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Median is one metric of one case on one target by itself, which is all that there is to say where nothing is
// compared.
type Median struct {
	Case   string        `json:"case"`
	Metric string        `json:"metric"`
	Unit   unit.Unit     `json:"unit"`
	Better metric.Better `json:"better"`
	Role   result.Role   `json:"role"` // of the case, upper bounds too
	Target string        `json:"target"`
	Runs   int           `json:"runs"`
	Median Number        `json:"median"` // over the runs that count
	// CI holds the median of the distribution that the runs are from, by their order alone (stats.QuantileInterval), each
	// interval for itself. At 95 % it has no ends with fewer than six runs.
	CI    Interval `json:"ci"`
	Level float64  `json:"level"` // confidence asked of this one interval
	// Detectable is the smallest change, as a fraction, that the planned blocks would show with a probability of 80 % on
	// another target whose runs spread alike, were all primary cases compared; null where they would show none.
	Detectable Number `json:"detectable"`
	// UpperBound is what the path could reach at most, with the same share twice; nil where it was not measured.
	UpperBound *UpperBound `json:"upper_bound,omitempty"`
}

// addMedians fills in what there is to say where nothing is compared.
func (c *Comparison) addMedians(t *trial) {
	if len(c.Comparisons) > 0 {
		return
	}
	c.Medians = t.medians()
	c.Warnings = append(c.Warnings, t.trends(c.Medians)...)
}

// medians are those of every metric of every case on every target, in the order of the plan, a case's own metric first.
func (t *trial) medians() []Median {
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
				m.Detectable = t.apart(values)
				m.UpperBound = upperBound(rc, Row{Case: rc.Name, Metric: v.Metric, Unit: v.Unit,
					Better: v.Better, BaselineMedian: m.Median, TargetMedian: m.Median}, versus{x.Name, x.Name}, t)
				list = append(list, m)
			}
		}
	}
	return list
}

// apart is the smallest change that could be told apart from these values. Of two targets with the same spread, the log
// ratio of a block's runs spreads √2 times as much.
func (t *trial) apart(values []float64) Number {
	if len(values) < 2 || t.e.Design.Blocks == 0 || t.look == nil || slices.Min(values) <= 0 {
		return Missing()
	}
	_, variance := stats.Moments(logarithms(values))
	return t.detectable(math.Sqrt(2*variance), t.e.Design.Alpha/float64(max(primaryCases(t.e.Cases), 1)))
}

// newMedian is a metric over runs, not yet of a case and a target. It is not ok if they disagree on the metric's unit
// or have no usable value.
func newMedian(v result.Value, runs map[int]*result.Run, level float64) (m Median, ok bool) {
	var r Row
	values, ok := r.values(v, runs)
	if !ok || len(values) == 0 {
		return Median{}, false
	}
	m = Median{Metric: v.Metric, Unit: v.Unit, Better: v.Better,
		Runs: len(values), Median: Number(stats.Median(values)), Level: level, Detectable: Missing()}
	m.CI.Lo, m.CI.Hi = stats.QuantileInterval(values, 0.5, level)
	return m, true
}

// trends warn of cases whose own metric rises or falls from run to run. In a comparison a block's drift is on both
// sides; by itself a median has nothing to tell it by, and its interval takes the runs for independent. All these tests
// together are wrong at alpha at most.
func (t *trial) trends(list []Median) []string {
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
	return []string{fmt.Sprintf("From run to run these rise or fall, more than by chance: %s. Their intervals take "+
		"runs for alike and do not cover that.", prose.Some(names))}
}

// measuredSummary is the sentence about an experiment with one target.
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
