package prober

import (
	"slices"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/load/probe"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const ms = int64(time.Millisecond)

// trialShown returns a trial of 1 s in which new connections showed the change after some ms, or never if that is 0.
func trialShown(after int64) trial.Trial {
	t := trial.Trial{Announced: 2 * ms, End: 1000 * ms, Interval: ms, Late: ms / 10, Shown: map[probe.Kind]int64{}}
	if after > 0 {
		t.Shown[probe.TCPNew] = after * ms
	}
	return t
}

// mergeTrials merges the trials of a change.
func mergeTrials(t *testing.T, change string, trials ...trial.Trial) result.Measurement {
	t.Helper()
	w, err := dynamics.Parse(change)
	if err != nil {
		t.Fatal(err)
	}
	return merge(w, trial.Result{Trials: trials}, New().Metrics(w))
}

// checkValues checks values of a measurement, in seconds or counts.
func checkValues(t *testing.T, m result.Measurement, want map[string]float64) {
	t.Helper()
	for name, number := range want {
		got, is := (result.Run{Values: m.Values}).Value(name)
		if diff := got.Number - number; !is || diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s is %v (%v), wanted %v", name, got.Number, is, number)
		}
	}
}

func TestMergeShown(t *testing.T) {
	m := mergeTrials(t, "policy-deny", trialShown(40), trialShown(60), trialShown(50))
	checkValues(t, m, map[string]float64{metric.NewProbes + metric.Programming: 0.050,
		metric.NewProbes + metric.ProgrammingMax: 0.060, metric.ProgrammingAPI: 0.002, metric.ProgrammingDatapath: 0.048,
		metric.Trials: 3, metric.Censored: 0, metric.LatenessP99: 0.0001})
	if m.Window != 3 || len(m.Invalid)+len(m.Warnings) != 0 {
		t.Errorf("%v s, %v, %v", m.Window, m.Invalid, m.Warnings)
	}
	if _, has := (result.Run{Values: m.Values}).Value(metric.TCPProbes + metric.Programming); has {
		t.Error("an open connection that nothing cut has a time")
	}
}

// TestMergeCensored checks that a trial in which the change did not show counts with its whole time.
func TestMergeCensored(t *testing.T) {
	m := mergeTrials(t, "policy-deny", trialShown(40), trialShown(0), trialShown(50))
	checkValues(t, m, map[string]float64{metric.NewProbes + metric.Programming: 0.050,
		metric.NewProbes + metric.ProgrammingMax: 1, metric.Censored: 1})
	checkMarks(t, m, metric.NewProbes)
	if v, _ := (result.Run{Values: m.Values}).Value(metric.NewProbes + metric.Programming); v.Step != 0 {
		t.Error("the median of three trials of which one is censored is exact")
	}
	// Times of other kinds of probes are marked too; with half of the trials censored, the median is a lower bound.
	cut := trialShown(40)
	cut.Shown[probe.TCP] = 60 * ms
	m = mergeTrials(t, "policy-deny", cut, trialShown(50))
	checkMarks(t, m, metric.TCPProbes)
	if v, _ := (result.Run{Values: m.Values}).Value(metric.TCPProbes + metric.Programming); v.Step != 1 {
		t.Errorf("the lower bound has a step of %g", v.Step)
	}
}

// checkMarks checks that both programming times of a kind of probes, and no other metric, are marked as censored.
func checkMarks(t *testing.T, m result.Measurement, part string) {
	t.Helper()
	var marked []string
	for _, w := range m.Warnings {
		if w.Code == result.Censored {
			marked = append(marked, w.Metric)
		}
	}
	if want := []string{part + metric.Programming, part + metric.ProgrammingMax}; !slices.Equal(marked, want) {
		t.Errorf("marked as censored: %q, wanted %q", marked, want)
	}
	if v, _ := (result.Run{Values: m.Values}).Value(part + metric.ProgrammingMax); v.Step != 1 {
		t.Errorf("the maximum has a step of %g", v.Step)
	}
}

func TestMergeLoss(t *testing.T) {
	gone := trial.Trial{End: 4000 * ms, Interval: ms, Loss: map[probe.Kind]probe.Loss{
		probe.TCPNew: {Sent: 4000, Lost: 300, Late: 2, Begin: 10 * ms, End: 410 * ms, Until: 4000 * ms, Gap: 5 * ms,
			Slowest: 201 * ms},
		probe.TCP: {Broken: 1},
	}}
	m := mergeTrials(t, "endpoint-gone:how=abrupt", gone)
	checkValues(t, m, map[string]float64{metric.NewProbes + metric.LossWindow: 0.4, metric.NewProbes + metric.Lost: 300,
		metric.NewProbes + metric.LateAnswers: 2, metric.NewProbes + metric.Gap: 0.005,
		metric.NewProbes + metric.Max: 0.201, metric.TCPProbes + metric.Broken: 1,
		metric.UDPProbes + metric.LossWindow: 0.001}) // the least that can be seen: the time between two probes
}

func TestMergeLeak(t *testing.T) {
	leaked := trial.Trial{End: 1000 * ms, Interval: ms, Leaked: true, Leak: 7 * ms}
	m := mergeTrials(t, "policy-first", leaked, trial.Trial{End: 1000 * ms, Interval: ms})
	checkValues(t, m, map[string]float64{metric.Leaked: 0.5, metric.LeakWindow: 0.004})
}

// TestMergeLate checks that a late prober makes a run invalid, unless the measured time is much longer.
func TestMergeLate(t *testing.T) {
	for _, test := range []struct {
		shown, late int64 // ms
		refused     bool
	}{{40, 4, false}, {40, 6, true}, {100, 9, false}, {100, 11, true}, {900, 80, false}} {
		one := trialShown(test.shown)
		one.Late = test.late * ms
		m := mergeTrials(t, "policy-deny", one)
		if refused := len(m.Invalid) > 0; refused != test.refused {
			t.Errorf("%+v: %v", test, m.Invalid)
		}
	}
}

func TestMergeNothing(t *testing.T) {
	if m := mergeTrials(t, "rollout"); len(m.Invalid) != 1 {
		t.Errorf("%+v", m)
	}
}

// TestMergeSeries checks that the series are those of the first trial: the slowest answer of each 10 ms, and how many
// probes had none.
func TestMergeSeries(t *testing.T) {
	one := trialShown(40)
	one.Begin = -5 * ms
	trace := probe.Trace{Kind: probe.TCPNew, Interval: ms}
	for n := range int64(25) {
		answered := (n+1)*ms + n*1000
		if n >= 8 {
			answered = 0
		}
		trace.Sent, trace.Answered = append(trace.Sent, (n+1)*ms), append(trace.Answered, answered)
	}
	one.Traces = []probe.Trace{trace}
	m := mergeTrials(t, "policy-deny", one)
	if len(m.Series) != 2 {
		t.Fatalf("%+v", m.Series)
	}
	slowest, lost := m.Series[0], m.Series[1]
	if slowest.Name != metric.NewProbes+metric.Latency || slowest.Begin != -0.005 || len(slowest.Marks) != 3 ||
		slowest.Marks[2].At != 0.040 || !slices.Equal(slowest.Values, []float64{7e-6, 0, 0}) {
		t.Errorf("%+v", slowest)
	}
	if lost.Name != metric.NewProbes+metric.Lost || !slices.Equal(lost.Values, []float64{2, 10, 5}) {
		t.Errorf("%+v", lost)
	}
}
