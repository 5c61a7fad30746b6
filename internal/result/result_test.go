package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func run() Run {
	return Run{
		Schema: RunSchema, ID: "0001", Case: "pod-pod/other/tcp-rr", Target: "lab:vxlan", Block: 1, Attempt: 2, Slot: 1,
		Start: time.Date(2026, 12, 1, 10, 0, 0, 5, time.UTC), Setup: 0.2, Window: 1, Cleanup: 0.1, Tool: "native",
		Values: []Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: 4.5e-5},
			{Metric: "rtt", Unit: unit.Second, Number: 3e-5}},
		Series:     []Series{{Name: "rate", Unit: unit.PerSecond, Step: 0.1, Values: []float64{1, 2.5}}},
		Histograms: []Histogram{{Name: "latency", Unit: "ns", Count: 3, Encoded: "abc"}},
		Facts:      []Fact{{Name: "tool.version", Value: "1"}},
		Warnings: []Warning{
			{Code: FewSamples, Metric: "p99", Text: "p99 needs 368 operations, there were 9: left out"},
			{Code: CPUStolen, Text: "w"},
		},
	}
}

// TestRunJSON compares an encoded run with a line of runs.ndjson, because the names of fields in files must never
// change.
func TestRunJSON(t *testing.T) {
	text, err := json.Marshal(run())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"knotmeter/run/v2","run":"0001","case":"pod-pod/other/tcp-rr","target":"lab:vxlan",` +
		`"block":1,"attempt":2,"slot":1,` +
		`"start":"2026-12-01T10:00:00.000000005Z","setup":0.2,"window":1,"cleanup":0.1,"tool":"native",` +
		`"values":[{"metric":"p50","unit":"s","better":"lower","value":0.000045},` +
		`{"metric":"rtt","unit":"s","value":0.00003}],` +
		`"series":[{"name":"rate","unit":"op/s","step":0.1,"values":[1,2.5]}],` +
		`"histograms":[{"name":"latency","unit":"ns","count":3,"hdr":"abc"}],"facts":[{"name":"tool.version","value":"1"}],` +
		`"warnings":[{"code":"few-samples","metric":"p99","text":"p99 needs 368 operations, there were 9: left out"},` +
		`{"code":"cpu-stolen","text":"w"}]}`
	if string(text) != want {
		t.Errorf("got\n%s\nwanted\n%s", text, want)
	}
	var back Run
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run(), back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSiteJSON compares an encoded site with a line of sites.ndjson.
func TestSiteJSON(t *testing.T) {
	site := Site{
		Schema: SiteSchema, Number: 3, Target: "kube:a", Block: 2, Session: 1,
		Start: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), Setup: 2.5, Used: 40, Cleanup: 1.25,
		Values:   []Value{NewValue(metric.Named(metric.Pods), 4)},
		Warnings: []Warning{{Code: SiteNotRemoved, Text: "w"}},
	}
	text, err := json.Marshal(site)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"knotmeter/site/v1","site":3,"target":"kube:a","block":2,"session":1,` +
		`"start":"2026-12-01T10:00:00Z","setup":2.5,"used":40,"cleanup":1.25,` +
		`"values":[{"metric":"pods","unit":"1","value":4}],"warnings":[{"code":"site-not-removed","text":"w"}]}`
	if string(text) != want {
		t.Errorf("got\n%s\nwanted\n%s", text, want)
	}
	var back Site
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(site, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSite(t *testing.T) {
	site := Site{Start: time.Unix(100, 0), Setup: 2.5, Used: 40, Cleanup: 1.5, Values: run().Values}
	if got := site.End(); !got.Equal(time.Unix(144, 0)) {
		t.Errorf("it was gone at %v", got)
	}
	if v, ok := site.Value("rtt"); !ok || v.Number != 3e-5 {
		t.Errorf("its value is %+v, %v", v, ok)
	}
}

func TestRun(t *testing.T) {
	r := run()
	if v, ok := r.Value("p50"); !ok || v.Number != 4.5e-5 || v.Unit != unit.Second {
		t.Errorf("p50 is %+v, %v", v, ok)
	}
	if v, ok := r.Value("p99"); ok || v != (Value{}) {
		t.Errorf("p99 is %+v, %v", v, ok)
	}
	if got := r.End().Sub(r.Start); got != 1300*time.Millisecond {
		t.Errorf("it was over after %v", got)
	}
	if !r.Valid() {
		t.Error("the run is not valid")
	}
	if r.Invalid = []Warning{{Code: GeneratorLate, Text: "the generator was late"}}; r.Valid() {
		t.Error("a run that failed a gate is valid")
	}
}

func TestExperimentJSON(t *testing.T) {
	e := Experiment{
		Schema: ExperimentSchema, ID: "x", Created: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC),
		Version: "v1", Seed: 1<<64 - 1, Suite: "network", Tool: "native",
		Design:   Design{Kind: "randomised complete blocks", Blocks: 11, Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02},
		Baseline: "lab:native", Targets: []Target{{Name: "a", Spec: SpecOf("lab:native?label=a")}},
		Cases:       []Case{{Name: "pod-pod/other/tcp-rr", Role: Primary, Metric: "p50", Bound: "node-node/tcp-rr"}},
		NotMeasured: []NotMeasured{{Target: "*", Case: "*", Reason: "no"}},
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Experiment
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}

func TestNotSupported(t *testing.T) {
	err := fmt.Errorf("lab:ipsec: %w", NotSupported("this kernel has no ESP (CONFIG_INET_ESP)"))
	if !errors.Is(err, ErrNotSupported) || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	var reason NotSupported
	if !errors.As(err, &reason) || reason.Error() != "this kernel has no ESP (CONFIG_INET_ESP)" {
		t.Errorf("the reason is %q", reason)
	}
}

func ExampleNotSupported() {
	err := error(NotSupported("this kernel has no ESP (CONFIG_INET_ESP)"))
	fmt.Println(errors.Is(err, ErrNotSupported), err)
	// Output: true this kernel has no ESP (CONFIG_INET_ESP)
}
