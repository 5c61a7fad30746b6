package plan

import (
	"fmt"
	"math"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// LongerFactor is the factor by which [LongerRuns] assumes that runs get longer.
const LongerFactor = 3

// shareConfidence is the confidence of the interval of a share in [LongerRuns].
const shareConfidence = 0.95

// noRatio is the reason why the spread of some pairs is not known.
const noRatio = "some runs measured 0, and pairs with them have no ratio"

// LongerRuns predicts the effect of longer runs on a primary case: the share of the variance of pairs that arises
// within runs, over all comparisons of the case. The rest arises between blocks, and longer runs do not reduce it.
type LongerRuns struct {
	Case    string  `json:"case"`
	Metric  string  `json:"metric"`
	Seconds float64 `json:"seconds"` // of a run that was measured
	// The standard deviation of a pair's log ratio, averaged over the comparisons of the case: as measured, and for
	// runs LongerFactor times as long.
	Spread       compare.Number `json:"spread"`
	SpreadLonger compare.Number `json:"spread_longer"`
	// Share is from 0 to 1, with its interval at 95 % confidence.
	Share compare.Number    `json:"share"`
	CI    *compare.Interval `json:"ci,omitempty"`
	Lack  string            `json:"lack,omitempty"` // why the numbers above are not known; empty if they are
}

// Advice is the conclusion from [LongerRuns].
type Advice int

// The kinds of advice. They depend on whether more than a quarter of the variance arises within runs: below that, runs
// three times as long reduce the spread by less than a tenth.
const (
	NoAdvice Advice = iota
	AdviseLongerRuns
	AdviseMoreBlocks
)

// Advice returns the advice that holds for the whole interval of the share.
func (l LongerRuns) Advice() Advice {
	const quarter = 0.25
	switch {
	case l.CI == nil:
		return NoAdvice
	case l.CI.Lo > quarter:
		return AdviseLongerRuns
	case l.CI.Hi < quarter:
		return AdviseMoreBlocks
	}
	return NoAdvice
}

// longerRuns returns the LongerRuns of each case that has series of the compared metric on both targets of a
// comparison.
func longerRuns(rows []compare.Row, runs []result.Run) []LongerRuns {
	var cases []string
	byCase := map[string][]compare.Row{}
	for _, r := range rows {
		if byCase[r.Case] == nil {
			cases = append(cases, r.Case)
		}
		byCase[r.Case] = append(byCase[r.Case], r)
	}
	var all []LongerRuns
	for _, name := range cases {
		if l, found := newLongerRuns(byCase[name], runs); found {
			all = append(all, l)
		}
	}
	return all
}

// newLongerRuns returns the LongerRuns of a case from its comparisons; found is false if no comparison has a series on
// both of its targets.
func newLongerRuns(rows []compare.Row, runs []result.Run) (l LongerRuns, found bool) {
	missing := compare.Missing()
	l = LongerRuns{Case: rows[0].Case, Metric: rows[0].Metric, Spread: missing, SpreadLonger: missing, Share: missing}
	series := map[string][][]float64{} // by target
	steps := math.MaxInt
	for _, r := range runs {
		if x := seriesOf(r, l.Metric); r.Case == l.Case && r.Valid() && len(x) > 0 {
			series[r.Target] = append(series[r.Target], x)
			steps = min(steps, len(x))
			l.Seconds = r.Window
		}
	}
	withinVariance, pairVariance, comparisons := 0.0, 0.0, 0.0 // sums over the comparisons
	fewestPairs := math.MaxInt
	correlated := false
	for _, r := range rows {
		a, b := series[r.Baseline], series[r.Target]
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		found = true
		// A pair's log ratio is the difference of two logarithms, so what varies within the two runs adds up.
		va, ca := stats.WithinVariance(a...)
		vb, cb := stats.WithinVariance(b...)
		withinVariance += va + vb
		pairVariance += float64(r.Spread * r.Spread)
		comparisons++
		correlated = correlated || max(ca, cb) > stats.MostCorrelated
		fewestPairs = min(fewestPairs, r.Blocks)
	}
	switch {
	case !found:
		return l, false
	case steps < stats.Batches:
		l.Lack = fmt.Sprintf("the series of its runs have %d steps, and it takes %d", steps, stats.Batches)
	case fewestPairs < 2:
		l.Lack = "it takes at least two blocks with valid runs of both targets"
	case correlated:
		l.Lack = "within runs it varies so slowly that a window does not average it"
	case math.IsNaN(pairVariance):
		l.Lack = noRatio
	case math.IsNaN(withinVariance):
		l.Lack = "the series of all runs of a target are 0"
	case pairVariance == 0:
		l.Lack = "the runs do not differ"
	}
	if l.Lack != "" {
		return l, true
	}
	withinVariance, pairVariance = withinVariance/comparisons, pairVariance/comparisons
	share := math.Min(withinVariance/pairVariance, 1) // both are estimates, so that the part may exceed the whole
	lo, hi := stats.VarianceShare(withinVariance, pairVariance, fewestPairs, shareConfidence)
	l.Spread, l.Share = compare.Number(math.Sqrt(pairVariance)), compare.Number(share)
	// Longer runs divide the variance within runs by LongerFactor and leave the rest.
	l.SpreadLonger = compare.Number(math.Sqrt(pairVariance * (1 - share + share/LongerFactor)))
	l.CI = &compare.Interval{Lo: lo, Hi: hi}
	return l, true
}

// seriesOf returns the complete steps of a metric's series within the window of a run. For the mean latency of a closed
// loop it is the series of the rate: by Little's law the latency is the number of outstanding requests, which is
// constant, over the rate, so the variances of their logarithms are equal. Series with marks are about an event and not
// about the whole window, so longer runs would not average them.
func seriesOf(r result.Run, name string) []float64 {
	if name == metric.Mean && r.Fact(audit.FactLoop) == "closed" {
		name = metric.Rate
	}
	for _, s := range r.Series {
		if s.Name == name && s.Step > 0 && len(s.Marks) == 0 {
			whole := int(r.Window/s.Step + 1e-6) // 10 s in steps of 0.1 s are 100 steps despite rounding
			return s.Values[:min(whole, len(s.Values))]
		}
	}
	return nil
}
