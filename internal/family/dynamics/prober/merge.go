package prober

import (
	"maps"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/load/probe"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// The limits on lateness: a run is invalid if its prober is later than the largest of them. A prober is late when its
// node lacks CPU, and then changes show later by the same time.
const (
	minLateLimit  = 0.005 // s
	lateIntervals = 5     // intervals between probes
	lateShare     = 0.1   // of the metric that verdicts are about
)

// merge turns the trials of a run into a measurement. It is pure.
func merge(w dynamics.Workload, got trial.Result, metrics []metric.Metric) result.Measurement {
	b := &builder{Builder: family.NewBuilder(metrics), trials: got.Trials}
	if len(got.Trials) == 0 {
		b.Refuse(result.NothingDone, "no trial was made")
		return b.Measurement
	}
	for _, t := range got.Trials {
		b.Window += seconds(t.End)
	}
	b.Add(metric.Trials, float64(len(got.Trials)))
	for _, kind := range probe.Kinds() {
		b.addProgramming(w, kind)
		b.addLosses(kind)
	}
	b.addDelays(w)
	b.addLeaks(w)
	b.checkLateness(w)
	b.addSeries(w)
	for _, name := range slices.Sorted(maps.Keys(got.Facts)) {
		b.Fact(name, got.Facts[name])
	}
	return b.Measurement
}

// A builder collects the measurement of a run from its trials.
type builder struct {
	*family.Builder
	trials []trial.Trial
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// perTrial returns, in seconds, the times that the function value returns for the trials in ns.
func (b *builder) perTrial(value func(trial.Trial) int64) []float64 {
	list := make([]float64, 0, len(b.trials))
	for _, t := range b.trials {
		list = append(list, seconds(value(t)))
	}
	return list
}

// aboutProgramming reports whether verdicts are about how soon this kind of probes shows the change.
func aboutProgramming(w dynamics.Workload, kind probe.Kind) bool {
	return w.Traits().Metric == dynamics.PartOf(kind)+metric.Programming
}

// isInstant reports whether a change shows at one moment. The other changes cause a loss, or a leak, for some time.
func isInstant(w dynamics.Workload) bool {
	return w.Change != dynamics.EndpointGone && w.Change != dynamics.PolicyFirst && w.Change != dynamics.Rollout
}

// addProgramming adds when the change showed. Trials that ended before that are censored and count with their whole
// time: the median is right as long as less than half of them are censored, and a lower bound otherwise.
func (b *builder) addProgramming(w dynamics.Workload, kind probe.Kind) {
	censored := 0
	times := b.perTrial(func(t trial.Trial) int64 {
		if at, shown := t.Shown[kind]; shown {
			return at
		}
		censored++
		return t.End
	})
	verdict := aboutProgramming(w, kind)
	switch {
	case !isInstant(w):
		return
	case censored == len(times) && !verdict:
		return // such as an open connection that no policy cuts
	case verdict:
		b.Add(metric.Censored, float64(censored))
	}
	part, most := dynamics.PartOf(kind), slices.Max(times)
	b.Add(part+metric.Programming, stats.Median(times))
	b.markCensored(part+metric.Programming, censored, 2*censored >= len(times), most)
	b.Add(part+metric.ProgrammingMax, most)
	b.markCensored(part+metric.ProgrammingMax, censored, censored > 0, most)
}

// markCensored adds a warning to the metric just added if trials are censored. If the metric is then only a lower
// bound, its resolution is unknown, so that no comparison claims more.
func (b *builder) markCensored(name string, censored int, bound bool, most float64) {
	if censored == 0 {
		return
	}
	text := "%d of %d trials ended before the change showed; they count with the %.3g s that they had"
	if bound {
		text += ", and the value is a lower bound"
		b.Values[len(b.Values)-1].Step = 1
	}
	b.Warn(result.Censored, text, censored, len(b.trials), most)
	b.Warnings[len(b.Warnings)-1].Metric = name
}

// addLosses adds how many probes of a kind were not answered, and for how long.
func (b *builder) addLosses(kind probe.Kind) {
	part := dynamics.PartOf(kind)
	b.Add(part+metric.LossWindow, stats.Median(b.perTrial(func(t trial.Trial) int64 {
		return max(t.Interval, t.Loss[kind].Window())
	})))
	b.Add(part+metric.Gap, stats.Median(b.perTrial(func(t trial.Trial) int64 { return t.Loss[kind].Gap })))
	b.Add(part+metric.Max, slices.Max(b.perTrial(func(t trial.Trial) int64 { return t.Loss[kind].Slowest })))
	var lost, late, broken float64
	for _, t := range b.trials {
		lost, late = lost+float64(t.Loss[kind].Lost), late+float64(t.Loss[kind].Late)
		broken += float64(t.Loss[kind].Broken)
	}
	n := float64(len(b.trials))
	b.Add(part+metric.Lost, lost/n)
	b.Add(part+metric.LateAnswers, late/n)
	b.Add(part+metric.Broken, broken/n)
}

// addDelays adds the delays of the API server, of the datapath and of sending, each if it is known for all trials.
func (b *builder) addDelays(w dynamics.Workload) {
	var announced, datapath, sends []float64
	for _, t := range b.trials {
		if t.Announced > 0 {
			announced = append(announced, seconds(t.Announced))
		}
		if at := t.Shown[probe.TCPNew]; at > t.Announced && t.Announced > 0 {
			datapath = append(datapath, seconds(at-t.Announced))
		}
		if t.CanSend > 0 {
			sends = append(sends, seconds(t.CanSend))
		}
	}
	if len(announced) == len(b.trials) {
		b.Add(metric.ProgrammingAPI, stats.Median(announced))
	}
	if len(datapath) == len(b.trials) && w.Change != dynamics.EndpointGone {
		b.Add(metric.ProgrammingDatapath, stats.Median(datapath))
	}
	if len(sends) == len(b.trials) {
		b.Add(metric.CanSend, stats.Median(sends))
	}
}

// addLeaks adds the share of trials in which forbidden traffic passed, and for how long.
func (b *builder) addLeaks(w dynamics.Workload) {
	if w.Change != dynamics.PolicyFirst {
		return
	}
	leaked := 0.0
	for _, t := range b.trials {
		if t.Leaked {
			leaked++
		}
	}
	b.Add(metric.Leaked, leaked/float64(len(b.trials)))
	b.Add(metric.LeakWindow, stats.Median(b.perTrial(func(t trial.Trial) int64 { return max(t.Interval, t.Leak) })))
}

// checkLateness adds the prober's lateness, and makes the run invalid if it is too large.
func (b *builder) checkLateness(w dynamics.Workload) {
	late := slices.Max(b.perTrial(func(t trial.Trial) int64 { return t.Late }))
	b.Add(metric.LatenessP99, late)
	verdict, _ := (result.Run{Values: b.Values}).Value(w.Traits().Metric)
	about := verdict.Number
	if late > max(minLateLimit, lateIntervals*seconds(b.trials[0].Interval), lateShare*about) {
		b.Refuse(result.GeneratorLate, "the prober was late: one probe in a hundred was sent more than %.3g ms late, of "+
			"%.3g ms that are measured; give its node less to do", late*1e3, about*1e3)
	}
}

// Names of the marks of a series, for readers.
const (
	markRequest   = "request"
	markAnnounced = "told by the API server"
	markShown     = "shown"
)

// step is the step of series, ns. The raw files have every probe.
const step = 10_000_000

// addSeries adds the probes of the first trial around its change, by their planned times: the slowest answer of each
// step, 0 if none came, and the number of probes without an answer.
func (b *builder) addSeries(w dynamics.Workload) {
	first := b.trials[0]
	for _, kind := range []probe.Kind{probe.TCPNew, probe.TCP, probe.UDP} {
		i := slices.IndexFunc(first.Traces, func(t probe.Trace) bool { return t.Kind == kind })
		if i < 0 || len(first.Traces[i].Sent) == 0 {
			continue
		}
		marks := []result.Mark{{Name: markRequest}}
		if first.Announced != 0 {
			marks = append(marks, result.Mark{Name: markAnnounced, At: seconds(first.Announced)})
		}
		if at, shown := first.Shown[kind]; shown && isInstant(w) {
			marks = append(marks, result.Mark{Name: markShown, At: seconds(at)})
		}
		slowest, lost := steps(first.Traces[i])
		part, each := dynamics.PartOf(kind), seconds(max(step, first.Interval))
		b.Steps(part+metric.Latency, each, slowest)
		b.Steps(part+metric.Lost, each, lost)
		for n := len(b.Series) - 2; n < len(b.Series); n++ {
			b.Series[n].Begin, b.Series[n].Marks = seconds(first.Begin), marks
		}
	}
}

// steps returns, for each step, the slowest answer to its probes in seconds and the number of probes without one.
func steps(t probe.Trace) (slowest, lost []float64) {
	each := int(max(step/t.Interval, 1))
	n := (len(t.Sent) + each - 1) / each
	slowest, lost = make([]float64, n), make([]float64, n)
	for i, sent := range t.Sent {
		switch answered := t.Answered[i]; {
		case answered != 0:
			slowest[i/each] = max(slowest[i/each], seconds(answered-sent))
		case sent != 0:
			lost[i/each]++
		}
	}
	return slowest, lost
}
