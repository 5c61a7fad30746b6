package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func status(err error) int {
	if err == nil {
		return statusDone
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return statusUsage
}

func TestGateStatus(t *testing.T) {
	gate := func(o compare.Outcome) compare.Gated {
		return compare.Gated{Outcome: o, Sentence: "It " + string(o) + "."}
	}
	passed, failed, open := gate(compare.Passed), gate(compare.Failed), gate(compare.Open)
	for _, test := range []struct {
		gates []compare.Gated
		want  int
		text  string
	}{
		{nil, 0, ""},
		{[]compare.Gated{passed, passed}, 0, ""},
		{[]compare.Gated{passed, open}, 4, "a gate is inconclusive:\nIt open."},
		{[]compare.Gated{open, failed, passed, failed}, 3, "a gate failed:\nIt failed.\nIt failed."},
	} {
		err := gateStatus(compare.Comparison{Gates: test.gates})
		if status(err) != test.want || err != nil && err.Error() != test.text {
			t.Errorf("%v: status %d, %v", test.gates, status(err), err)
		}
	}
}

// TestWorst checks that the documented status of two errors counts, and that both texts are reported.
func TestWorst(t *testing.T) {
	end := func(status int) error {
		if status == 0 {
			return nil
		}
		return &statusError{status, errors.New("end")}
	}
	for _, test := range []struct{ outcome, gates, want int }{
		{0, 0, 0}, {2, 0, 2}, {0, 3, 3}, {0, 4, 4}, {2, 3, 3}, {2, 4, 2}, {130, 3, 130}, {130, 4, 130}, {130, 0, 130},
		{141, 3, 3}, {141, 4, 141}, {2, 141, 2}, {130, 141, 130},
	} {
		err := worstError(end(test.outcome), end(test.gates))
		if status(err) != test.want {
			t.Errorf("%d and %d give %d, want %d", test.outcome, test.gates, status(err), test.want)
		}
		if test.outcome > 0 && test.gates > 0 && strings.Count(err.Error(), "end") != 2 {
			t.Errorf("%d and %d: %v", test.outcome, test.gates, err)
		}
	}
}

func TestCheckGates(t *testing.T) {
	e := planned()
	e.NotMeasured = []result.NotMeasured{
		{Target: "*", Case: "pod-svc/other/tcp-rr", Reason: "no nftables"},
		{Target: "c", Case: "pod-pod/same/tcp-rr", Reason: "one node"},
	}
	generator, err := findTool("native")
	if err != nil {
		t.Fatal(err)
	}
	for gate, want := range map[string]string{
		"pod-pod/other/tcp-rr p50 <= +5%":    "",
		"*/tcp-crr <= 1 ms":                  "",
		"pod-pod/* p50 <= 1 ms on a":         "",
		"pod-pod/same/* p99 >= -3%":          "",
		"pod-pod/other/* cpu-softirq <= 0.5": "",
		"pod-pod/other/* rate >= 5000":       "",
		"node-node/* p50 <= 1 ms": "matches only node-to-node references, on which there is no verdict: " +
			"node-node/tcp-rr",
		"pod-pod/other/tcp_rr p50 <= +5%": `matches no case of the experiment; ` +
			`did you mean "pod-pod/other/tcp-rr"?`,
		"pod-svc/* p50 <= +5%":           "matches only what cannot be measured: pod-svc/other/tcp-rr: no nftables",
		"pod-pod/same/* p99 >= -3% on c": "applies to nothing that can be measured: pod-pod/same/tcp-rr on c: one node",
		"pod-pod/* p95 <= +5%": `applies to pod-pod/other/tcp-rr, whose runs have no metric "p95"; ` +
			`did you mean "p90"?`,
		"*/tcp-crr quickness <= +5%": `applies to pod-pod/other/tcp-crr, whose runs have no metric "quickness"; ` +
			`its metrics are rate, p50, `,
		"*/tcp-rr throughput >= -5%":             `applies to pod-pod/other/tcp-rr, whose runs have no metric "throughput"`,
		"*/tcp-rr p50 <= 5 Gbit/s":               "has a limit in bit/s, and pod-pod/other/tcp-rr p50 is in s",
		"*/tcp-rr >= 5 op/s":                     "has a limit in op/s, and pod-pod/other/tcp-rr p50 is in s",
		"pod-pod/* p50 <= +5% on d":              "applies to none of the targets a, b, c",
		"pod-pod/* p50 <= +5% on a":              "is about a change, and applies only to the baseline a",
		"pod-pod/* p50 <= 1 ms on lab:a":         "applies to none of the targets",
		"pod-pod/other/tcp-rr p50 less than 5 %": "not a gate",
	} {
		e.Gates = []string{gate}
		err := checkGates(e, toolMetrics(generator))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", gate, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "--gate: ")):
			t.Errorf("%s: %v, want %q", gate, err, want)
		}
	}
}

// TestCheckGatesOfResults checks that a gate on results may be about any metric that their runs have or their tool
// measures.
func TestCheckGatesOfResults(t *testing.T) {
	e, imported := planned(), planned()
	imported.Imported, imported.Tool = "csv", "csv"
	runs := []result.Run{{Case: "pod-pod/other/tcp-rr", Target: "a",
		Values: []result.Value{{Metric: "api-calls", Unit: unit.Count}}}}
	for _, test := range []struct {
		of         result.Experiment
		gate, want string
	}{
		{e, "*/other/tcp-rr api-calls <= 9", ""},
		{e, "*/other/tcp-rr p99.9 <= +5%", ""},
		{e, "*/other/tcp-rr api-cals <= 9", `have no metric "api-cals"; did you mean "api-calls"?`},
		{imported, "*/other/tcp-rr api-calls <= 9", ""},
		{imported, "*/other/tcp-rr p99.9 <= +5%", `have no metric "p99.9"; its metrics are api-calls`},
		{imported, "*/other/tcp-crr p99.9 <= +5%", ""}, // a case without runs
	} {
		j := resultOptions{gates: []string{test.gate}}
		_, err := j.applyTo(&test.of, runs)
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.gate, err, test.want)
		}
	}
}

// TestResultOptions checks that options that differ from the plan are reported, and the rest of the plan is not
// changed.
func TestResultOptions(t *testing.T) {
	e := planned()
	e.Gates = []string{"*/tcp-rr p50 <= +5%"}
	for _, test := range []struct {
		options resultOptions
		want    []compare.Warning
	}{
		{resultOptions{}, nil},
		{resultOptions{gates: e.Gates}, nil},
		{resultOptions{allPairs: true}, []compare.Warning{{Code: compare.AllPairsChosen}}},
		{resultOptions{gates: []string{"*/tcp-rr p50 <= +9%"}, allPairs: true},
			[]compare.Warning{{Code: compare.AllPairsChosen}, {Code: compare.GatesChosen}}},
	} {
		got := e
		warnings, err := test.options.applyTo(&got, nil)
		if err != nil || !slices.EqualFunc(warnings, test.want, compare.Warning.Equal) {
			t.Errorf("%+v: %+v, %v", test.options, warnings, err)
		}
		if got.Design.AllPairs != test.options.allPairs || len(got.Gates) != 1 {
			t.Errorf("%+v: %+v, %v", test.options, got.Design, got.Gates)
		}
	}
}

func planned() result.Experiment {
	d := runner.DefaultDesign()
	d.Duration, d.Warmup = 1, 0
	return reporttest.Planned(d)
}
