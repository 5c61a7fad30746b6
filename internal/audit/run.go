package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the rules of one run.
const (
	closesFrom, closesTo = 0.97, 1.03 // rate times mean latency over the outstanding requests
	fewRequests          = 100        // minimum per outstanding request in a window; below, a single request matters
	atEdge               = 0.02       // relative excess over a limit that clocks and the ends of a window may cause
	underWay             = 0.1        // seconds of traffic that may be under way at the ends of a window
	lossCloses           = 0.02       // accepted difference between the reported loss and the loss that the rates imply
	confidence           = 0.95       // confidence level of the interval of a percentile
	fewOdd               = 0.01       // share of requests without success up to which they are a note
	muchLoss             = 0.01       // share of datagrams lost at a rate that is reported as a path's capacity
)

// runRules check a single run for errors.
var runRules = []Rule{
	{Name: "closed-loop", Severity: Error, checkRun: closedLoop,
		About: "In a closed loop the rate times the mean latency is the number of requests outstanding, within 3 % " +
			"and what the ends of a short window can hide, or more where requests failed; " +
			"a warning in runs of fewer than 100 requests.",
		Why:  "Either the loop stood still for part of the time, or rate and latency are from different tests.",
		More: "Little's law; the netperf manual on RT_LATENCY and MEAN_LATENCY"},
	{Name: "receiver-above-sender", Severity: Error, checkRun: receiver,
		About: "Nothing receives more than was sent, within 2 % and 100 ms of traffic under way at the window's ends.",
		Why:   "What arrives was sent before: one of the two numbers has another time or another unit."},
	{Name: "above-link", Severity: Error, checkRun: aboveLink,
		About: "No rate of payload on a path between nodes is above the link's, nor both directions together above twice " +
			"that; a warning where the link is known by the size of the VM alone.",
		Why: "The traffic did not take that link, or the number is from another time than stated."},
	{Name: "zero", Severity: Error, checkRun: checkPositive,
		About: "Throughputs, rates and latencies are above zero.",
		Why:   "A zero is a failure until shown otherwise, and averages as if it were a result."},
	{Name: "order", Severity: Error, checkRun: checkOrder,
		About: "Percentiles rise with their rank, up to the largest value and 10 % for the bins of histograms; a mean " +
			"lies between the smallest and the largest value, a share between 0 and 1.",
		Why: "Numbers that cannot come from one sample come from several, or from none."},
	{Name: "failures-as-samples", Severity: Error, checkRun: failures,
		About: "Latencies are of requests with a 2xx status; 1 % of others or more is an error, less is a note.",
		Why:   "A redirect or an error is answered without the work, so it counts as a fast success.",
		More:  "vegeta counts every status from 200 to 399 as a success"},
}

// runWarnings check a single run for numbers that are not wrong but need attention.
var runWarnings = []Rule{
	{Name: "loss-and-rates", Severity: Warning, checkRun: loss,
		About: "Of datagrams and requests, rate = offered x (1 - loss), within 2 % and 100 ms of traffic under way at the " +
			"window's ends.",
		Why: "Loss and rates were not counted for the same packets."},
	{Name: "few-samples", Severity: Warning, checkRun: fewSamples,
		About: "A percentile has enough samples for a two-sided 95 % interval: 368 for p99, 3688 for p99.9.",
		Why:   "With fewer, the number depends on the few slowest requests, and changes from run to run.",
		More:  "stats.MinSamples; David and Nagaraja, Order Statistics, section 7.1"},
	{Name: "mean-of-percentiles", Severity: Warning, checkRun: meanOfPercentiles,
		About: "Percentiles and extremes over several runs come from merged samples, not from a mean.",
		Why:   "A mean of percentiles is not a percentile, and a mean of maxima was never reached."},
	{Name: "saturated", Severity: Note, checkRun: saturated,
		About: "A mean latency with ten or more requests outstanding in a closed loop.",
		Why: "There the mean latency is the number of requests over the throughput: it shows the throughput, not how long " +
			"a request takes at a moderate load.",
		More: "Little's law"},
	{Name: "lossy-rate", Severity: Note, checkRun: lossyRate,
		About: "A throughput of datagrams with a loss above 1 %.",
		Why: "It shows how much of an overload the receiver picked up, which depends on buffers and CPUs; the capacity " +
			"of a path is the highest rate without loss.",
		More: "RFC 2544, section 26.1"},
}

// oneFinding returns a list with one finding about a metric.
func oneFinding(of, format string, a ...any) []Finding {
	return []Finding{{Metric: of, Saw: fmt.Sprintf(format, a...)}}
}

func closedLoop(r measuredRun) ([]Finding, int) {
	n := outstanding(r)
	rate, hasRate := number(r.Run, metric.Rate)
	mean, hasMean := number(r.Run, metric.Mean)
	lost, _ := number(r.Run, metric.Loss)
	failed, _ := number(r.Run, metric.Failed)
	if n == 0 || !hasRate || !hasMean || rate <= 0 || mean <= 0 {
		return nil, 0
	}
	slower := 0.0
	if lost > 0 || failed > 0 {

		// Lost and failed requests took time that is in neither number, unless there is a histogram of all requests,
		// which records failures as no faster than the slowest success.
		all := histogramCount(r.Run)
		if all == 0 || r.Window <= 0 || r.planned.Load.Outstanding == 0 {
			return nil, 0
		}
		rate, slower = float64(all)/r.Window, math.Inf(1)
	}
	share, slack := rate*mean/n, 0.0
	if longest, ok := number(r.Run, metric.Max); ok && r.Window > 0 {
		// A request under way at an end of the window counts completely or not at all.
		slack = 2 * math.Max(longest, 0) / r.Window
	}
	if share >= closesFrom-slack && share <= closesTo+slack+slower {
		return nil, 1
	}
	means := "more than there were"
	if share < 1 {
		means = unit.Format(1-share, unit.Ratio) + " of the window is unaccounted for"
	}
	found := oneFinding(metric.Mean, "%s x %s = %.2f requests outstanding instead of %g: %s.",
		unit.Format(rate, unit.PerSecond), unit.Format(mean, unit.Second), rate*mean, n, means)
	if r.Window > 0 && rate*r.Window < fewRequests*n {
		found[0].Severity = Warning // the request that was under way at the end may have been longer than all others
	}
	return found, 1
}

// transfers lists pairs of metrics of which the first cannot exceed the second.
var transfers = []struct{ received, sent string }{
	{metric.Throughput, metric.ThroughputSent}, {metric.Rate, metric.Offered}, {metric.Received, metric.Sent},
}

func receiver(r measuredRun) (found []Finding, checked int) {
	for _, p := range transfers {
		got, ok := number(r.Run, p.received)
		sent, also := number(r.Run, p.sent)
		if !ok || !also || sent <= 0 {
			continue
		}
		checked++
		limit := 1 + atEdge
		if r.Window > 0 {
			limit += underWay / r.Window
		}
		if got > sent*limit {
			v, _ := r.Value(p.received)
			found = append(found, oneFinding(p.received, "%s received, %s sent.",
				unit.Format(got, v.Unit), unit.Format(sent, v.Unit))...)
		}
	}
	return found, checked
}

// burstBytes is what a limiter may pass beyond its rate, in bytes: the burst saved while nothing was sent, and one
// segment as large as offloads make it that began before the window. It matters for slow links.
const burstBytes = 2 << 16

func aboveLink(r measuredRun) (found []Finding, checked int) {
	for _, h := range AppliedLimits(r.planned, r.Run, r.targetFacts) {
		if h.Resource != LinkRate {
			continue
		}
		checked++
		words, extra := "a link of", 0.0
		if h.BothWays {
			words = "both directions of a link of"
		}
		if r.Window > 0 {
			extra = 8 * burstBytes / r.Window
		}
		if h.Value <= h.Bound()*(1+atEdge)+extra {
			continue
		}
		f := oneFinding(h.Metric, "%s over %s %s.", unit.Format(h.Value, h.Unit), words, unit.Format(h.Most, h.Unit))
		if h.fact == FactMachineLink {
			f[0].Severity = Warning // the provider may have raised it since
		}
		found = append(found, f...)
	}
	return found, checked
}

func checkPositive(r measuredRun) (found []Finding, checked int) {
	for _, v := range r.Values {
		if !positive(v) {
			continue
		}
		checked++
		if v.Number <= 0 {
			found = append(found, oneFinding(v.Metric, "%s is %s.", v.Metric, unit.Format(v.Number, v.Unit))...)
		}
	}
	return found, checked
}

// positive reports whether a measured value cannot be zero.
func positive(v result.Value) bool {
	if strings.HasSuffix(v.Metric, SpreadSuffix) || strings.HasSuffix(v.Metric, ChangeSuffix) {
		return false
	}
	switch v.Metric {
	case metric.Mean, metric.Min, metric.Max, metric.LoadThroughput:
		return true
	}
	return metric.Quantile(v.Metric) > 0 || v.Better == metric.Higher
}

func checkOrder(r measuredRun) (found []Finding, checked int) {
	ranks := percentiles(r.Run)
	for i := 1; i < len(ranks); i++ {
		checked++
		if a, b := ranks[i-1], ranks[i]; a.Number > b.Number*(1+binTolerance(a, b)) {
			found = append(found, oneFinding(b.Metric, "%s is %s, above %s with %s.", a.Metric,
				unit.Format(a.Number, a.Unit), b.Metric, unit.Format(b.Number, b.Unit))...)
		}
	}
	if mean, ok := r.Value(metric.Mean); ok && len(ranks) > 0 {
		low, hasLow := number(r.Run, metric.Min)
		high, hasHigh := number(r.Run, metric.Max)
		if hasLow || hasHigh {
			checked++
		}
		// A histogram of three digits rounds its values, and its mean differently.
		if hasLow && mean.Number < low*(1-histogramError) || hasHigh && mean.Number > high*(1+histogramError) {
			found = append(found, oneFinding(metric.Mean, "The mean is %s, outside of the smallest and the largest value.",
				unit.Format(mean.Number, mean.Unit))...)
		}
	}
	for _, v := range r.Values {
		if !isShare(v.Metric) {
			continue
		}
		checked++
		if v.Number < 0 || v.Number > 1 {
			found = append(found, oneFinding(v.Metric, "%s is %s of the whole.", v.Metric, unit.Format(v.Number, unit.Ratio))...)
		}
	}
	return found, checked
}

// binTolerance returns the relative amount by which a value may exceed the next one: 0 for percentiles of one
// histogram, but the smallest and largest value are exact, and neighbouring bins are 10 % wide in netperf and 2 % in
// fio.
func binTolerance(a, b result.Value) float64 {
	if a.Metric == metric.Min || b.Metric == metric.Max {
		return 0.10
	}
	return 0
}

// histogramError is the relative error of a value with three significant digits.
const histogramError = 0.002

// isShare reports whether a metric is a fraction of a whole.
func isShare(name string) bool {
	switch name {
	case metric.Loss, metric.Failed, metric.Reordered, metric.Success, metric.CPUBusy, metric.CPUBusiest:
		return true
	}
	return false
}

// percentiles returns the quantiles of a run with its smallest and largest value, by rank.
func percentiles(r *result.Run) []result.Value {
	rank := func(v result.Value) float64 {
		switch v.Metric {
		case metric.Min:
			return 0
		case metric.Max:
			return 1
		}
		return metric.Quantile(v.Metric)
	}
	var ranks []result.Value
	for _, v := range r.Values {
		if v.Unit == unit.Second && (rank(v) > 0 || v.Metric == metric.Min) {
			ranks = append(ranks, v)
		}
	}
	slices.SortStableFunc(ranks, func(a, b result.Value) int { return cmp.Compare(rank(a), rank(b)) })
	return ranks
}

// failures checks the shares of answers by the first digit of their status; 0 is no answer.
func failures(r measuredRun) ([]Finding, int) {
	well, told := number(r.Run, metric.Status(2))
	worst, most := "", 0.0
	for _, v := range r.Values {
		class := metric.StatusClass(v.Metric)
		if class == "" || class == "2xx" || !(v.Number > 0) {
			continue
		}
		told = true
		if v.Number > most {
			worst, most = class, v.Number
		}
	}
	if !told || !hasLatency(r.Run) {
		return nil, 0
	}
	if worst == "" || well >= 1 {
		return nil, 1
	}
	if worst == "0xx" {
		worst = "no answer"
	}
	found := oneFinding("", "%s of the requests ended with another status than 2xx, most of them with %s.",
		unit.Format(1-well, unit.Ratio), worst)
	if 1-well < fewOdd {
		found[0].Severity = Note
	}
	return found, 1
}

func hasLatency(r *result.Run) bool {
	return slices.ContainsFunc(r.Values, func(v result.Value) bool {
		return v.Metric == metric.Mean || metric.Quantile(v.Metric) > 0
	})
}

func loss(r measuredRun) ([]Finding, int) {
	rate, ok := number(r.Run, metric.Rate)
	offered, has := number(r.Run, metric.Offered)
	lost, also := number(r.Run, metric.Loss)
	if !ok || !has || !also || offered <= 0 || rate < 0 {
		return nil, 0
	}
	slack := lossCloses
	if r.Window > 0 {
		slack += underWay / r.Window
	}
	missing := 1 - rate/offered
	if math.Abs(missing-lost) <= slack {
		return nil, 1
	}
	return oneFinding(metric.Loss, "The loss is given as %s, but of %s offered %s arrived, which is a loss of %s.",
		unit.Format(lost, unit.Ratio),
		unit.Format(offered, unit.PerSecond), unit.Format(rate, unit.PerSecond), unit.Format(missing, unit.Ratio)), 1
}

func fewSamples(r measuredRun) (found []Finding, checked int) {
	n := samples(r.Run)
	if n <= 0 {
		return nil, 0
	}
	for _, v := range r.Values {
		q := metric.Quantile(v.Metric)
		if q == 0 {
			continue
		}
		checked++
		if need := stats.MinSamples(q, confidence); n < need {
			found = append(found, oneFinding(v.Metric, "%s of %d samples; it takes %d.", v.Metric, n, need)...)
		}
	}
	return found, checked
}

// samples returns the number of operations behind the percentiles of a run; 0 if unknown.
func samples(r *result.Run) int {
	if n := count(r.Facts, FactSamples); n > 0 {
		return n
	}
	if n := histogramCount(r); n > 0 {
		return n
	}
	n, _ := number(r, metric.Operations)
	return int(math.Max(0, math.Min(n, math.MaxInt32)))
}

// histogramCount returns the number of operations in the latency histogram of a run, including failed ones; 0 without
// one.
func histogramCount(r *result.Run) int {
	for _, h := range r.Histograms {
		if h.Name == metric.Latency {
			return int(min(h.Count, math.MaxInt32))
		}
	}
	return 0
}

func meanOfPercentiles(r measuredRun) (found []Finding, checked int) {
	n := count(r.Facts, FactRuns)
	if r.Fact(FactAggregate) == "" {
		return nil, 0
	}
	for _, v := range r.Values {
		if metric.Quantile(v.Metric) == 0 && v.Metric != metric.Max && v.Metric != metric.Min {
			continue
		}
		checked++
		if r.Fact(FactAggregate) == AggregateMean && n != 1 {
			of := "several runs"
			if n > 1 {
				of = fmt.Sprintf("%d runs", n)
			}
			found = append(found, oneFinding(v.Metric, "%s is the mean of the %s of %s: %s.",
				v.Metric, v.Metric, of, unit.Format(v.Number, v.Unit))...)
		}
	}
	return found, checked
}

const (
	manyOutstanding = 10  // requests from which a closed loop measures throughput
	mostOutstanding = 0.8 // of the requests, as rate times mean: below, a run is of one operation of several
)

func saturated(r measuredRun) ([]Finding, int) {
	mean, ok := number(r.Run, metric.Mean)
	n := outstanding(r)
	if !ok || n == 0 {
		return nil, 0
	}
	if n < manyOutstanding || mean <= 0 {
		return nil, 1
	}
	rate, measured := number(r.Run, metric.Rate)
	sent, _ := number(r.Run, metric.Offered) // failed requests have a latency, too
	switch {
	case !measured:
		rate = n / mean
	case max(rate, sent)*mean < mostOutstanding*n:
		return nil, 1 // the others wait for operations of another kind
	}
	return oneFinding(metric.Mean, "%s with %g requests outstanding: that is %s in all, whatever a request takes.",
		unit.Format(mean, unit.Second), n, unit.Format(rate, unit.PerSecond)), 1
}

func lossyRate(r measuredRun) ([]Finding, int) {
	_, ok := number(r.Run, metric.Throughput)
	lost, has := number(r.Run, metric.Loss)
	if !ok || !has {
		return nil, 0
	}
	if lost <= muchLoss {
		return nil, 1
	}
	v, _ := r.Value(metric.Throughput)
	return oneFinding(metric.Throughput, "%s with a loss of %s.",
		unit.Format(v.Number, v.Unit), unit.Format(lost, unit.Ratio)), 1
}
