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

// Longer is the factor by which a [Window] assumes that runs get longer.
const Longer = 3

// windowConfidence is the confidence of the interval of a [Window].
const windowConfidence = 0.95

// A Window predicts the effect of longer runs on a primary case: the share of the variance of pairs that arises within
// runs, over all comparisons of the case. The rest arises between blocks, and longer runs do not reduce it.
type Window struct {
	Case    string  `json:"case"`
	Metric  string  `json:"metric"`
	Seconds float64 `json:"seconds"` // of a run that was measured
	// The standard deviation of a pair's log ratio, averaged over the comparisons of the case: as measured, and for
	// runs Longer times as long.
	Spread       compare.Number `json:"spread"`
	SpreadLonger compare.Number `json:"spread_longer"`
	// Share is from 0 to 1, with its interval at 95 % confidence.
	Share compare.Number    `json:"share"`
	CI    *compare.Interval `json:"ci,omitempty"`
	Lack  string            `json:"lack,omitempty"` // why the numbers above are not known; empty if they are
}

// Advice is the conclusion from a [Window].
type Advice int

// The kinds of advice. They depend on whether more than a quarter of the variance arises within runs: below that, runs
// three times as long reduce the spread by less than a tenth.
const (
	Undecided Advice = iota
	LongerRuns
	MoreBlocks
)

// Advice returns the advice that holds for the whole interval of the share.
func (w Window) Advice() Advice {
	const quarter = 0.25
	switch {
	case w.CI == nil:
		return Undecided
	case w.CI.Lo > quarter:
		return LongerRuns
	case w.CI.Hi < quarter:
		return MoreBlocks
	}
	return Undecided
}

// windows returns a Window for each case whose runs have a series of the compared metric.
func windows(rows []compare.Row, runs []result.Run) []Window {
	var all []Window
	for i, r := range rows {
		if i > 0 && rows[i-1].Case == r.Case {
			continue
		}
		var sameCase []compare.Row
		for _, other := range rows {
			if other.Case == r.Case {
				sameCase = append(sameCase, other)
			}
		}
		if w, has := newWindow(sameCase, runs); has {
			all = append(all, w)
		}
	}
	return all
}

// newWindow returns the Window of a case from its comparisons; has is false if no run has a series.
func newWindow(rows []compare.Row, runs []result.Run) (w Window, has bool) {
	missing := compare.Missing()
	w = Window{Case: rows[0].Case, Metric: rows[0].Metric, Spread: missing, SpreadLonger: missing, Share: missing}
	series := map[string][][]float64{} // by target
	steps := math.MaxInt
	for _, r := range runs {
		if x := seriesOf(r, w.Metric); r.Case == w.Case && r.Valid() && len(x) > 0 {
			series[r.Target] = append(series[r.Target], x)
			steps = min(steps, len(x))
			w.Seconds = r.Window
		}
	}
	within, pairs, n := 0.0, 0.0, 0.0
	least := math.MaxInt // fewest pairs of a comparison
	correlated := false
	for _, r := range rows {
		a, b := series[r.Baseline], series[r.Target]
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		has = true
		va, ca := stats.WithinVariance(a...)
		vb, cb := stats.WithinVariance(b...)
		correlated = correlated || max(ca, cb) > stats.MostCorrelated
		within, pairs, n = within+va+vb, pairs+float64(r.Spread*r.Spread), n+1
		least = min(least, r.Blocks)
	}
	switch {
	case !has:
		return w, false
	case steps < stats.Batches:
		w.Lack = fmt.Sprintf("the series of its runs have %d steps, and it takes %d", steps, stats.Batches)
	case least < 2:
		w.Lack = "it takes at least two blocks with valid runs of both targets"
	case correlated:
		w.Lack = "within runs it varies so slowly that a window does not average it"
	case !(pairs > 0) || math.IsNaN(within):
		w.Lack = "the runs do not differ"
	}
	if w.Lack != "" {
		return w, true
	}
	within, pairs = within/n, pairs/n
	share := math.Min(within/pairs, 1)
	lo, hi := stats.VarianceShare(within, pairs, least, windowConfidence)
	w.Spread, w.Share = compare.Number(math.Sqrt(pairs)), compare.Number(share)
	w.SpreadLonger = compare.Number(math.Sqrt(pairs * (1 - share*(1-1.0/Longer))))
	w.CI = &compare.Interval{Lo: lo, Hi: hi}
	return w, true
}

// seriesOf returns the complete steps of a metric's series within the window of a run. For the mean latency of a closed
// loop it is the series of the rate: by Little's law the latency is the number of outstanding requests over the rate.
func seriesOf(r result.Run, name string) []float64 {
	if name == metric.Mean && r.Fact(audit.FactLoop) == "closed" {
		name = metric.Rate
	}
	for _, s := range r.Series {
		if s.Name == name && s.Step > 0 && len(s.Marks) == 0 {
			whole := int(r.Window/s.Step + 1e-6)
			return s.Values[:min(whole, len(s.Values))]
		}
	}
	return nil
}
