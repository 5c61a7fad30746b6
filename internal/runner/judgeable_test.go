package runner_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// A flawed tool wraps another one and changes the values that it measures, by the number of the run.
type flawed struct {
	family.Tool
	runs   int
	change func(run int, values []result.Value) []result.Value
}

func (f *flawed) Run(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
	m, err := f.Tool.Run(ctx, p, w, t)
	f.runs++
	m.Values = f.change(f.runs, m.Values)
	return m, err
}

// ofP50 returns a function that changes the p50 of one run.
func ofP50(number int, change func(v *result.Value)) func(int, []result.Value) []result.Value {
	return func(run int, values []result.Value) []result.Value {
		for i := range values {
			if values[i].Metric == "p50" && run == number {
				change(&values[i])
			}
		}
		return values
	}
}

// TestRunWithoutItsMetricIsRepeated checks that a run whose main metric is missing or unusable is repeated: otherwise
// its pair would be incomplete, and a look would have fewer pairs than blocks.
func TestRunWithoutItsMetricIsRepeated(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(run int, values []result.Value) []result.Value
		reason string
	}{
		{"missing", ofP50(2, func(v *result.Value) { v.Metric = "p51" }), "it has no p50, which its case is judged on"},
		{"not finite", ofP50(2, func(v *result.Value) { v.Number = math.Inf(1) }),
			"it has no p50, which its case is judged on"},
		{"absurd", ofP50(2, func(v *result.Value) { v.Number = 1e200 }), "its p50, which its case is judged on, is 1e+200"},
		{"another unit", ofP50(2, func(v *result.Value) { v.Unit = "op/s" }),
			`its p50 is in "op/s", that of run 0001 in "s", or they disagree on what is better`},
		{"the other way round", ofP50(2, func(v *result.Value) { v.Better = metric.Higher }),
			`its p50 is in "s", that of run 0001 in "s", or they disagree`},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "ab", 2, rr)
			b.config.Experiment.Cases = b.config.Experiment.Cases[:1] // without the bound
			b.config.Tool = &flawed{Tool: b.model, change: test.change}
			s := b.run(t.Context())
			e := b.config.Experiment
			want := []string{"1.1 tcp-rr " + runner.Order(e, e.Cases[0], 1, 1)[0],
				"1.1 tcp-rr " + runner.Order(e, e.Cases[0], 1, 1)[1] + "!"}
			for _, at := range [][2]int{{1, 2}, {2, 1}} {
				for _, name := range runner.Order(e, e.Cases[0], at[0], at[1]) {
					want = append(want, map[int]string{1: "1.2 tcp-rr ", 2: "2.1 tcp-rr "}[at[0]]+name)
				}
			}
			if diff := cmp.Diff(want, describe(b.sink.runs)); diff != "" {
				t.Fatalf("runs (-want +got):\n%s", diff)
			}
			if got := b.sink.runs[1].Invalid[0].Text; !strings.HasPrefix(got, test.reason) || s.GivenUp != 0 {
				t.Errorf("the reason is %q, the summary %+v", got, s)
			}
		})
	}
}

// TestCaseWithoutItsMetricIsGivenUp checks that a case is given up if no run has its main metric: other metrics do not
// replace it.
func TestCaseWithoutItsMetricIsGivenUp(t *testing.T) {
	b := newBench(t, "ab", 2, rr)
	b.config.Tool = &flawed{Tool: b.model, change: func(_ int, values []result.Value) []result.Value {
		return slices.DeleteFunc(values, func(v result.Value) bool { return v.Metric == "p50" })
	}}
	s := b.run(t.Context())
	if s.GivenUp == 0 || !strings.Contains(s.NotMeasured[0].Reason, "it has no p50, which its case is judged on") {
		t.Errorf("%+v", s)
	}
}
