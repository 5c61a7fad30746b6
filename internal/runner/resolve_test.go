package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

func twin(name string, unsupported ...result.Path) runner.Target {
	t := &targettest.Twin{Label: name, UnderlayName: "one", Unsupported: map[result.Path]string{}}
	for _, p := range unsupported {
		t.Unsupported[p] = "this kernel has no " + name
	}
	return runner.Target{Target: result.Target{Name: name, Spec: result.SpecOf("twin:" + name)}, Places: t}
}

func options(change func(*runner.Options)) runner.Options {
	o := runner.Options{
		Families: families,
		ID:       "2026-12-01-a1b2", Version: "v1.2.3", Created: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC),
		Targets: []runner.Target{twin("native"), twin("vxlan")}, Suites: []family.Suite{quick},
		Tool: &familytest.Model{}, Seed: 7, Design: runner.DefaultDesign(),
	}
	if change != nil {
		change(&o)
	}
	return o
}

func resolve(t *testing.T, change func(*runner.Options)) result.Experiment {
	t.Helper()
	e, err := runner.Resolve(t.Context(), options(change))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestResolveGolden(t *testing.T) {
	data, err := json.MarshalIndent(resolve(t, nil), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/experiment.golden", string(data)+"\n")
}

// TestResolveMissingProgram checks that a target without the program that the tool starts is left out; if it is the
// baseline, Resolve returns an error.
func TestResolveMissingProgram(t *testing.T) {
	has, lacks := twin("native"), twin("vxlan")
	fio := func(context.Context, host.Host, host.Cmd) error { return nil }
	has.Places.(*targettest.Twin).Programs = map[string]targettest.Program{"fio": fio}
	starts := func(targets ...runner.Target) runner.Options {
		return options(func(o *runner.Options) { o.Targets, o.Tool = targets, &familytest.Model{Starts: "fio"} })
	}
	e, err := runner.Resolve(t.Context(), starts(has, lacks))
	want := []result.NotMeasured{{Target: "vxlan", Case: "*", Reason: host.Missing("fio", "vxlan")}}
	if diff := cmp.Diff(want, e.NotMeasured); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = runner.Resolve(t.Context(), starts(lacks, has))
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
		"the baseline vxlan cannot: "+host.Missing("fio", "vxlan")) {
		t.Error(err)
	}
}

// TestResolveOutlivedSites checks that a block that takes longer than the lifetime of its sites is refused, unless the
// budget ends before that.
func TestResolveOutlivedSites(t *testing.T) {
	for _, test := range []struct {
		duration, budget float64
		refused          bool
	}{{1, 0, false}, {3600, 0, true}, {3600, 3600, false}} {
		mortal := twin("mortal")
		mortal.Places.(*targettest.Twin).Life = 90 * time.Minute
		_, err := runner.Resolve(t.Context(), options(func(o *runner.Options) {
			o.Targets, o.Design.Duration, o.Design.Budget = append(o.Targets, mortal), test.duration, test.budget
		}))
		if errors.Is(err, runner.ErrOption) != test.refused ||
			test.refused && !strings.Contains(err.Error(), "on mortal ends after 1h30m0s") {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestResolveKeepsTheDesign checks that looks, all pairs, budget and gates of the options are in the plan, and survive
// its JSON form.
func TestResolveKeepsTheDesign(t *testing.T) {
	e := resolve(t, func(o *runner.Options) {
		o.Design.Blocks, o.Design.Looks, o.Design.AllPairs = 12, []int{5, 8, 12}, true
		o.Design.Budget = 600
		o.Gates = []string{"pod-pod/* p50 <= +5%", "* throughput >= 1 Gbit/s"}
	})
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var again result.Experiment
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, again); diff != "" {
		t.Errorf("written and read (-before +after):\n%s", diff)
	}
	want := result.Design{Kind: "randomised complete blocks", Blocks: 12, Looks: []int{5, 8, 12}, AllPairs: true,
		Duration: 1, Warmup: 0.2, Budget: 600, Alpha: 0.05, Delta: 0.02}
	if diff := cmp.Diff(want, again.Design); diff != "" || len(again.Gates) != 2 {
		t.Errorf("gates %v, design (-want +got):\n%s", again.Gates, diff)
	}
}

// list returns one line for each case: role, name, bound.
func list(e result.Experiment) []string {
	var lines []string
	for _, c := range e.Cases {
		line := string(c.Role) + " " + c.Name
		if c.Bound != "" {
			line += " < " + c.Bound
		}
		lines = append(lines, line)
	}
	return lines
}

func TestResolveCases(t *testing.T) {
	for _, test := range []struct {
		name           string
		suites         []family.Suite
		cases, primary []string
		want           []string
	}{
		{"a pattern keeps the bounds of what it keeps", nil, []string{"pod-pod/*"}, nil, []string{
			"primary pod-pod/other/tcp-stream < node-node/tcp-stream",
			"primary pod-pod/other/tcp-rr < node-node/tcp-rr",
			"primary pod-pod/other/tcp-crr < node-node/tcp-crr",
			"bound node-node/tcp-stream", "bound node-node/tcp-rr", "bound node-node/tcp-crr"}},
		{"a star crosses slashes", nil, []string{"*/tcp-rr"}, nil, []string{
			"primary pod-pod/other/tcp-rr < node-node/tcp-rr",
			"primary pod-svc/other/tcp-rr < node-node/tcp-rr", "bound node-node/tcp-rr"}},
		{"a case of one's own", nil, []string{"pod-pod/same/tcp-stream:flows=4,size=64KiB", "pod-svc/other/tcp-crr"},
			nil, []string{
				"primary pod-svc/other/tcp-crr < node-node/tcp-crr", "bound node-node/tcp-crr",
				"exploratory pod-pod/same/tcp-stream:flows=4,size=65536"}},
		{"another spelling of a case of the suite", nil, []string{"pod-pod/other/tcp-rr:flows=1"}, nil, []string{
			"primary pod-pod/other/tcp-rr < node-node/tcp-rr", "bound node-node/tcp-rr"}},
		{"a pattern with parameters", nil, []string{"*/tcp-stream:size=1024"}, nil, []string{
			"primary pod-pod/other/tcp-stream:size=1024 < node-node/tcp-stream:size=1024",
			"primary pod-svc/other/tcp-stream:size=1024 < node-node/tcp-stream:size=1024",
			"bound node-node/tcp-stream:size=1024"}},
		{"a pattern with parameters keeps bounds that it does not match", []family.Suite{whole},
			[]string{"pod-pod/*/tcp-?r:request=1k,response=1k"}, nil, []string{
				"exploratory pod-pod/same/tcp-rr:request=1000,response=1000",
				"primary pod-pod/other/tcp-rr:request=1000,response=1000 < node-node/tcp-rr:request=1000,response=1000",
				"bound node-node/tcp-rr:request=1000,response=1000"}},
		{"parameters that change nothing", nil, []string{"pod-pod/*/tcp-rr:flows=1"}, nil, []string{
			"primary pod-pod/other/tcp-rr < node-node/tcp-rr", "bound node-node/tcp-rr"}},
		{"only bounds with parameters become primary", nil, []string{"node-*/tcp-rr:flows=2"}, nil, []string{
			"primary node-node/tcp-rr:flows=2"}},
		{"only exploratory cases become primary", []family.Suite{whole},
			[]string{"pod-pod/same/*-rr", "pod-pod/other/udp-rr"}, nil, []string{
				"primary pod-pod/same/tcp-rr", "primary pod-pod/same/udp-rr",
				"bound node-node/udp-rr", "primary pod-pod/other/udp-rr < node-node/udp-rr"}},
		{"only bounds become primary", nil, []string{"node-node/tcp-rr"}, nil, []string{"primary node-node/tcp-rr"}},
		{"primaries instead of the suite's", nil, []string{"pod-pod/*"}, []string{"*stream"}, []string{
			"primary pod-pod/other/tcp-stream < node-node/tcp-stream",
			"exploratory pod-pod/other/tcp-rr < node-node/tcp-rr",
			"exploratory pod-pod/other/tcp-crr < node-node/tcp-crr",
			"bound node-node/tcp-stream", "bound node-node/tcp-rr", "bound node-node/tcp-crr"}},
		{"suites one after another, without repeats", []family.Suite{quick, whole},
			[]string{"pod-???/other/tcp-crr", "pod-node/same/udp-rr"}, nil, []string{
				"primary pod-pod/other/tcp-crr < node-node/tcp-crr",
				"primary pod-svc/other/tcp-crr < node-node/tcp-crr", "bound node-node/tcp-crr",
				"exploratory pod-node/same/udp-rr"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := resolve(t, func(o *runner.Options) {
				if test.suites != nil {
					o.Suites = test.suites
				}
				o.Cases, o.Primary = test.cases, test.primary
			})
			got := list(e)
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("cases (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResolveMaxRate checks that --max-rate applies to streams of suites, to streams added by name, and to their
// bounds, and that patterns match the names without it. A workload that cannot be limited is refused.
func TestResolveMaxRate(t *testing.T) {
	limited := func(cases ...string) func(*runner.Options) {
		return func(o *runner.Options) { o.MaxRate, o.Cases = 1e8, cases }
	}
	got := list(resolve(t, limited("pod-pod/other/tcp-stream", "pod-pod/other/tcp-rr", "pod-pod/same/tcp-stream:flows=2")))
	want := []string{
		"primary pod-pod/other/tcp-stream:max-rate=100000000 < node-node/tcp-stream:max-rate=100000000",
		"primary pod-pod/other/tcp-rr < node-node/tcp-rr",
		"bound node-node/tcp-stream:max-rate=100000000", "bound node-node/tcp-rr",
		"exploratory pod-pod/same/tcp-stream:flows=2,max-rate=100000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err := runner.Resolve(t.Context(), options(limited("pod-pod/other/udp-stream-unpaced")))
	if !errors.Is(err, runner.ErrOption) || !strings.Contains(err.Error(), "--max-rate: ") {
		t.Errorf("%v", err)
	}
}

// TestResolveMetric checks that a chosen metric becomes the main metric of all cases that have it. It must be one that
// can have verdicts.
func TestResolveMetric(t *testing.T) {
	e := resolve(t, func(o *runner.Options) { o.Metric = "p99" })
	for _, c := range e.Cases {
		want, words := "p99", "p99"
		if strings.HasSuffix(c.Name, "tcp-stream") {
			want, words = "throughput", "throughput"
		}
		if c.Metric != want || c.Words.Quantity != words || c.Planned != "" {
			t.Errorf("%s is about %s (%s), planned %q", c.Name, c.Metric, c.Words.Quantity, c.Planned)
		}
	}
	if e.Metric != "p99" {
		t.Errorf("the experiment records %q", e.Metric)
	}
	_, err := runner.Resolve(t.Context(), options(func(o *runner.Options) { o.Metric = "p95" }))
	if !errors.Is(err, runner.ErrOption) || !strings.Contains(err.Error(), "--metric: ") ||
		!strings.Contains(err.Error(), "p50, p99, rate") {
		t.Errorf("%v", err)
	}
}

// TestResolveWholeSuite checks that in the whole suite the node-node cases are compared like the others, and are the
// bounds of those that leave the node.
func TestResolveWholeSuite(t *testing.T) {
	e := resolve(t, func(o *runner.Options) { o.Suites = []family.Suite{whole} })
	if len(e.Cases) != 54 {
		t.Errorf("%d cases", len(e.Cases))
	}
	for _, c := range e.Cases {
		leaves := strings.Contains(c.Name, "/other/")
		if (c.Bound != "") != leaves || c.Role == result.Bound {
			t.Errorf("%s is %s with bound %q", c.Name, c.Role, c.Bound)
		}
	}
}

func TestResolveNotMeasured(t *testing.T) {
	paths := result.Paths()
	for _, test := range []struct {
		name   string
		change func(*runner.Options)
		cases  int
		want   []result.NotMeasured
	}{
		{"nothing", nil, 9, []result.NotMeasured{}},
		{"some of a target's", func(o *runner.Options) {
			o.Targets[1] = twin("ipip", result.PodSvcOther)
		}, 9, []result.NotMeasured{
			{Target: "ipip", Case: "pod-svc/other/tcp-stream", Reason: "this kernel has no ipip"},
			{Target: "ipip", Case: "pod-svc/other/tcp-rr", Reason: "this kernel has no ipip"},
			{Target: "ipip", Case: "pod-svc/other/tcp-crr", Reason: "this kernel has no ipip"}}},
		{"all of a target's", func(o *runner.Options) {
			o.Targets[1] = twin("ipsec", paths...)
		}, 9, []result.NotMeasured{{Target: "ipsec", Case: "*", Reason: "this kernel has no ipsec"}}},
		{"all of a target's, for two reasons", func(o *runner.Options) {
			tw := twin("odd", paths...)
			tw.Places.(*targettest.Twin).Unsupported[result.PodSvcOther] = "it has no services"
			o.Targets[1] = tw
			o.Cases = []string{"*/tcp-rr"}
		}, 3, []result.NotMeasured{
			{Target: "odd", Case: "pod-pod/other/tcp-rr", Reason: "this kernel has no odd"},
			{Target: "odd", Case: "pod-svc/other/tcp-rr", Reason: "it has no services"}}},
		{"a target without bounds", func(o *runner.Options) {
			o.Targets[1] = twin("odd", result.NodeNode)
		}, 9, []result.NotMeasured{}},
		{"the tool's", func(o *runner.Options) {
			o.Tool = &familytest.Model{Unsupported: map[netload.Kind]string{netload.TCPCRR: "it has no connections"}}
			o.Cases = []string{"pod-pod/other/*"}
		}, 4, []result.NotMeasured{
			{Target: "*", Case: "pod-pod/other/tcp-crr", Reason: "model cannot: it has no connections"},
			{Target: "*", Case: "node-node/tcp-crr", Reason: "model cannot: it has no connections"}}},
		{"the baseline's", func(o *runner.Options) {
			o.Baseline = "host"
			o.Targets = append(o.Targets, twin("host", paths[1:]...))
			o.Cases = []string{"node-node/tcp-rr", "pod-pod/other/tcp-rr"}
		}, 1, []result.NotMeasured{{Target: "*", Case: "pod-pod/other/tcp-rr",
			Reason: "the baseline host cannot: this kernel has no host"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := resolve(t, test.change)
			if diff := cmp.Diff(test.want, e.NotMeasured); diff != "" || len(e.Cases) != test.cases {
				t.Errorf("%d cases; not measured (-want +got):\n%s", len(e.Cases), diff)
			}
		})
	}
	_, err := runner.Resolve(t.Context(), options(func(o *runner.Options) { o.Targets[0] = twin("native", paths...) }))
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "this kernel has no native") {
		t.Errorf("a baseline that can do nothing: %v", err)
	}
}

// TestResolveBoundNotMeasured checks that no case refers to a bound that cannot be measured.
func TestResolveBoundNotMeasured(t *testing.T) {
	e := resolve(t, func(o *runner.Options) { o.Targets[0] = twin("native", result.NodeNode) })
	for _, c := range e.Cases {
		if c.Bound != "" {
			t.Errorf("%s has bound %s", c.Name, c.Bound)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	for _, test := range []struct {
		change func(*runner.Options)
		want   string
	}{
		{func(o *runner.Options) { o.Targets = nil }, "--target"},
		{func(o *runner.Options) { o.Targets[1] = twin("native") }, "label="},
		{func(o *runner.Options) { o.Baseline = "vlan" }, `--baseline: "vlan"`},
		{func(o *runner.Options) { o.Suites = nil }, "--suite"},
		{func(o *runner.Options) { o.Cases = []string{"pod-pod/*", "storage/*"} },
			`--case: "storage/*" matches no case of network:quick`},
		{func(o *runner.Options) { o.Cases = []string{"pod-pod/same/tcp-rr:flows=0x"} }, "flows=0x"},
		{func(o *runner.Options) { o.Cases = []string{"*/tcp-*:size=1024"} }, "parameter of streams, ping; tcp-rr has flows"},
		{func(o *runner.Options) { o.Cases = []string{"*/tcp-bb:size=1024"} }, "matches no case"},
		{func(o *runner.Options) { o.Primary = []string{"pod-pod/same/*"} }, `--primary: "pod-pod/same/*"`},
		{func(o *runner.Options) { o.Primary = []string{"node-node/*"} },
			`--primary: "node-node/*" matches only node-to-node references, on which there is no verdict: ` +
				`node-node/tcp-stream`},
		{func(o *runner.Options) { o.Primary = []string{"*/tcp-rr", "*/tcp_crr"} },
			`--primary: "*/tcp_crr" matches none of the cases that are measured on every target`},
		{func(o *runner.Options) {
			o.Primary = []string{"pod-pod/*", "pod-svc/*"}
			o.Targets = []runner.Target{twin("native", result.PodSvcOther), twin("vxlan")}
		}, `--primary: "pod-svc/*" matches only what cannot be measured: ` +
			`pod-svc/other/tcp-stream: the baseline native cannot`},
		{func(o *runner.Options) { o.Tool = nil }, "--tool"},
		{func(o *runner.Options) { o.Design.Blocks, o.Design.Looks = -1, nil }, "--blocks: -1 is not from 1 to 1000"},
		{func(o *runner.Options) { o.Design.Blocks, o.Design.Looks = 0, nil }, "--blocks: 0 is not from 1"},
		{func(o *runner.Options) { o.Design.Blocks, o.Design.Looks = 1001, nil }, "--blocks: 1001"},
		{func(o *runner.Options) { o.Design.Looks = []int{8, 8, 30} }, "--looks: [8 8 30]"},
		{func(o *runner.Options) { o.Design.Looks = []int{0, 30} }, "--looks: [0 30]"},
		{func(o *runner.Options) { o.Design.Looks = []int{8, 1001} }, "--looks: the last look is after 1001 blocks"},
		{func(o *runner.Options) { o.Design.Looks = []int{8, 12} },
			"--looks: the last look is after 12 blocks, but there are 30"},
		{func(o *runner.Options) { o.Design.Looks = make([]int, 51) }, "--looks: 51 looks"},
		{func(o *runner.Options) { o.Design.Duration = -1 }, "--duration"},
		{func(o *runner.Options) { o.Design.Duration = 0.0999 }, "--duration: 0.0999 s is not from 100 ms"},
		{func(o *runner.Options) { o.Design.Duration = math.NaN() }, "--duration"},
		{func(o *runner.Options) { o.Design.Warmup = 1e6 }, "--warmup"},
		{func(o *runner.Options) { o.Design.Budget = -1 }, "--budget"},
		{func(o *runner.Options) { o.Design.Alpha = 0.5 }, "--alpha: 0.5 is not between 0 and 0.5"},
		{func(o *runner.Options) { o.Design.Delta = 2 }, "--delta"},
	} {
		_, err := runner.Resolve(t.Context(), options(test.change))
		if !errors.Is(err, runner.ErrOption) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, wanted %q", err, test.want)
		}
	}
}

func TestResolveDoesNotTouchTheSuite(t *testing.T) {
	s := quick
	before := fmt.Sprint(s)
	resolve(t, func(o *runner.Options) { o.Suites, o.Primary = []family.Suite{s}, []string{"*stream"} })
	if fmt.Sprint(s) != before {
		t.Error("the caller's suite was changed")
	}
}
