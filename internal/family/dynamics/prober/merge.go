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

// The gate: a prober that is later than the greatest of these sees too little of what it is about. It is late where
// its node has more to do than CPUs, and then changes show as much later.
const (
	lateAtMost    = 0.005 // s
	lateIntervals = 5     // between probes
	lateShare     = 0.1   // of what the case is about
)

// merge turns trials into a measurement. It is pure.
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
		b.shown(w, kind)
		b.losses(kind)
	}
	b.parts(w)
	b.leaks(w)
	b.late(w)
	b.series(w)
	for _, name := range slices.Sorted(maps.Keys(got.Facts)) {
		b.Fact(name, got.Facts[name])
	}
	return b.Measurement
}

// A builder collects the measurement.
type builder struct {
	*family.Builder
	trials []trial.Trial
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// of is a statistic of all trials.
func (b *builder) of(what func(trial.Trial) int64) []float64 {
	list := make([]float64, 0, len(b.trials))
	for _, t := range b.trials {
		list = append(list, seconds(what(t)))
	}
	return list
}

// shows says whether a case is about how soon a change shows by a kind of probes.
func shows(w dynamics.Workload, kind probe.Kind) bool {
	return w.Traits().Metric == dynamics.PartOf(kind)+metric.Programming
}

// atOnce says whether a change shows at one time. What others are about is lost, or passes, for some time.
func atOnce(w dynamics.Workload) bool {
	return w.Change != dynamics.EndpointGone && w.Change != dynamics.PolicyFirst && w.Change != dynamics.Rollout
}

// shown adds when the change showed. Trials that ended before that are censored: they count with the time that they
// had, so that the median is right as long as less than half of them are, and a bound else.
func (b *builder) shown(w dynamics.Workload, kind probe.Kind) {
	censored := 0
	times := b.of(func(t trial.Trial) int64 {
		if at, shown := t.Shown[kind]; shown {
			return at
		}
		censored++
		return t.End
	})
	verdict := shows(w, kind)
	switch {
	case !atOnce(w):
		return
	case censored == len(times) && !verdict:
		return // such as an open connection that no policy cuts
	case verdict:
		b.Add(metric.Censored, float64(censored))
	}
	part := dynamics.PartOf(kind)
	b.Add(part+metric.Programming, stats.Median(times))
	b.Add(part+metric.ProgrammingMax, slices.Max(times))
	if verdict && censored > 0 {
		b.Warn(result.Censored, "%d of %d trials ended before the change showed; they count with the %.3g s that they had",
			censored, len(times), slices.Max(times))
	}
}

// losses adds what was not answered, and when.
func (b *builder) losses(kind probe.Kind) {
	part := dynamics.PartOf(kind)
	b.Add(part+metric.LossWindow, stats.Median(b.of(func(t trial.Trial) int64 {
		return max(t.Interval, t.Loss[kind].Window())
	})))
	b.Add(part+metric.Gap, stats.Median(b.of(func(t trial.Trial) int64 { return t.Loss[kind].Gap })))
	b.Add(part+metric.Max, slices.Max(b.of(func(t trial.Trial) int64 { return t.Loss[kind].Slowest })))
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

// parts tells apart what the API server and what the datapath took, where both are known of all trials.
func (b *builder) parts(w dynamics.Workload) {
	var announced, datapath, sends []float64
	for _, t := range b.trials {
		if t.Announced > 0 {
			announced = append(announced, seconds(t.Announced))
		}
		if at := t.Shown[probe.New]; at > t.Announced && t.Announced > 0 {
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

// leaks tells whether something passed that was forbidden.
func (b *builder) leaks(w dynamics.Workload) {
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
	b.Add(metric.LeakWindow, stats.Median(b.of(func(t trial.Trial) int64 { return max(t.Interval, t.Leak) })))
}

// late is the gate on the prober itself.
func (b *builder) late(w dynamics.Workload) {
	late := slices.Max(b.of(func(t trial.Trial) int64 { return t.Late }))
	b.Add(metric.LatenessP99, late)
	verdict, _ := (result.Run{Values: b.Values}).Value(w.Traits().Metric)
	about := verdict.Number
	if late > max(lateAtMost, lateIntervals*seconds(b.trials[0].Interval), lateShare*about) {
		b.Refuse(result.GeneratorLate, "the prober was late: one probe in a hundred was sent more than %.3g ms late, of "+
			"%.3g ms that are measured; give its node less to do", late*1e3, about*1e3)
	}
}

// Marks of a timeline, in plain words.
const (
	markRequest   = "request"
	markAnnounced = "told by the API server"
	markShown     = "shown"
)

// step is that of timelines, ns: every probe is in the raw files.
const step = 10_000_000

// series are the probes of the first trial around its change, by when they were planned: the slowest answer of each
// step, 0 if none came, and how many never came.
func (b *builder) series(w dynamics.Workload) {
	first := b.trials[0]
	for _, kind := range []probe.Kind{probe.New, probe.TCP, probe.UDP} {
		i := slices.IndexFunc(first.Traces, func(t probe.Trace) bool { return t.Kind == kind })
		if i < 0 || len(first.Traces[i].Sent) == 0 {
			continue
		}
		marks := []result.Mark{{Name: markRequest}}
		if first.Announced != 0 {
			marks = append(marks, result.Mark{Name: markAnnounced, At: seconds(first.Announced)})
		}
		if at, shown := first.Shown[kind]; shown && atOnce(w) {
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

// steps are the slowest answer to the probes of each step, s, and how many had none.
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
