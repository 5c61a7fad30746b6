package report

import (
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// built compares the experiment once: that takes a second under the race detector.
var built = sync.OnceValues(func() (Input, error) {
	r, err := reporttest.Network()
	if err != nil {
		return Input{}, err
	}
	c, err := compare.Compare(r)
	return Input{Comparison: c, Experiment: r.Experiment, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts}, err
})

// network returns the built experiment with its comparison. Callers may change it.
func network(t testing.TB) Input {
	t.Helper()
	in, err := built()
	if err != nil {
		t.Fatal(err)
	}
	in.Comparison.Comparisons = slices.Clone(in.Comparison.Comparisons)
	in.Experiment.Targets, in.Experiment.Cases = slices.Clone(in.Experiment.Targets), slices.Clone(in.Experiment.Cases)
	in.Runs = slices.Clone(in.Runs)
	for i := range in.Runs {
		in.Runs[i].Values, in.Runs[i].Histograms = slices.Clone(in.Runs[i].Values), slices.Clone(in.Runs[i].Histograms)
	}
	return in
}

const (
	stream = "pod-pod/other/tcp-stream"
	rr     = "pod-pod/other/tcp-rr"
)

// row returns a primary comparison of throughput; base and value are in Gbit/s.
func row(target string, base, value, change, lo, hi float64, v compare.Verdict, d compare.Direction) compare.Row {
	return compare.Row{
		Case: stream, Metric: "throughput", Unit: unit.BitPerSecond, Better: metric.Higher, Role: result.Primary,
		Target: target, Baseline: "lab:native", Blocks: 11,
		BaselineMedian: compare.Number(base * 1e9), TargetMedian: compare.Number(value * 1e9),
		Change: compare.Number(change), CI: compare.Interval{Lo: lo, Hi: hi}, Verdict: v, Direction: d,
		Warnings: []compare.Warning{}, Sentence: target + " has a sentence.",
	}
}

// latency turns a row into one of p50; base and value are in µs.
func latency(r compare.Row, base, value float64) compare.Row {
	r.Case, r.Metric, r.Unit, r.Better = rr, "p50", unit.Second, metric.Lower
	r.BaselineMedian, r.TargetMedian = compare.Number(base*1e-6), compare.Number(value*1e-6)
	return r
}

func exploratory(r compare.Row) compare.Row {
	r.Role = result.Exploratory
	return r
}

func warned(r compare.Row, sentences ...string) compare.Row {
	r.Warnings = recorded(sentences...)
	return r
}

// recorded returns warnings with the given sentences.
func recorded(sentences ...string) []compare.Warning {
	var list []compare.Warning
	for _, s := range sentences {
		list = append(list, compare.Warning{Code: compare.ExperimentWarns,
			Recorded: &result.Warning{Code: result.TargetReports, Text: strings.TrimSuffix(s, ".")}})
	}
	return list
}

func bounded(r compare.Row, bound, baseline, target float64) compare.Row {
	r.UpperBound = &compare.UpperBound{Case: "node-node/tcp-stream", Median: compare.Number(bound * 1e9),
		TargetMedian:  compare.Number(bound * 1e9),
		BaselineShare: compare.Number(baseline), TargetShare: compare.Number(target)}
	return r
}

// input returns a comparison of the rows, without runs.
func input(rows ...compare.Row) Input {
	c := compare.Comparison{
		Schema: compare.Schema, Experiment: "2026-11-21-test", Paired: true,
		Seed: 7, Baseline: "lab:native", Alpha: 0.05, Delta: 0.02,
		Placebos: []string{}, Comparisons: rows, NotMeasured: []result.NotMeasured{},
		AlsoDiffers: map[string][]string{}, Differences: map[string][]compare.Difference{},
		Findings: []audit.Finding{}, Warnings: []compare.Warning{},
		Headline: "A headline in plain words", Summary: "A summary in one sentence.", Scope: "A scope in one sentence.",
		Targets: []compare.TargetRuns{{Name: "lab:native", Spec: "lab:native", Runs: 22}},
	}
	e := result.Experiment{ID: c.Experiment, Baseline: c.Baseline, Seed: 7,
		Targets: []result.Target{{Name: "lab:native", Spec: result.SpecOf("lab:native")}}}
	seen := map[string]bool{}
	for _, r := range rows {
		c.Baseline = r.Baseline
		if r.Role == result.Primary {
			c.Primaries++
		}
		if !seen[r.Target] {
			seen[r.Target] = true
			c.Targets = append(c.Targets, compare.TargetRuns{Name: r.Target, Spec: r.Target, Runs: 22})
			e.Targets = append(e.Targets, result.Target{Name: r.Target, Spec: result.SpecOf(r.Target)})
		}
		if !seen["case "+r.Case] {
			seen["case "+r.Case] = true
			e.Cases = append(e.Cases, result.Case{Name: r.Case, Path: result.Path(path.Dir(r.Case)), Workload: path.Base(r.Case),
				Role: r.Role, Metric: r.Metric})
		}
	}
	return Input{Comparison: c, Experiment: e}
}

// withRuns adds two blocks of runs of the stream case with their sites; the second block is repeated.
func withRuns(in Input) Input {
	at := time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC)
	open := func(block int) {
		for i, target := range []string{"lab:native", "lab:vxlan"} {
			in.Sites = append(in.Sites, result.Site{
				Schema: result.SiteSchema, Number: len(in.Sites) + 1, Target: target, Block: block, Start: at,
				Setup: 0.25 * float64(i+1), Used: 3.75 - 0.25*float64(i), Cleanup: 0.125,
				Values: []result.Value{{Metric: "pods", Unit: unit.Count, Number: float64(i)}},
			})
		}
		at = at.Add(500 * time.Millisecond)
	}
	add := func(target string, block, attempt int, gbit float64, invalid ...result.Warning) {
		in.Runs = append(in.Runs, result.Run{
			Schema: result.RunSchema, ID: "r", Case: stream, Target: target,
			Block: block, Attempt: attempt, Slot: len(in.Runs)%2 + 1, Start: at,
			Site:  2*block - 1 + slices.Index([]string{"lab:native", "lab:vxlan"}, target),
			Setup: 0.5, Window: 1, Cleanup: 0.25, Tool: "native", Invalid: invalid,
			Values: []result.Value{
				{Metric: "throughput", Unit: unit.BitPerSecond, Better: metric.Higher, Number: gbit * 1e9},
				{Metric: "retransmits", Unit: unit.Count, Better: metric.Lower, Number: 3},
			},
		})
		at = at.Add(1750 * time.Millisecond)
	}
	open(1)
	add("lab:native", 1, 1, 9.13)
	add("lab:vxlan", 1, 1, 6.41)
	open(2)
	add("lab:vxlan", 2, 1, 6.02, result.Warning{Code: result.GeneratorLate, Text: `late, by "1 ms"`},
		result.Warning{Code: result.ShortWindow, Text: "short window"})
	add("lab:native", 2, 1, 9.2)
	add("lab:native", 2, 2, 9.11)
	add("lab:vxlan", 2, 2, 6.38)
	in.Experiment.Design = result.Design{Kind: "randomised complete blocks",
		Blocks: 2, Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02}
	in.Experiment.Suite, in.Experiment.Tool, in.Experiment.Version = "network:quick", "native", "v0.1.0"
	in.Comparison.Targets[1].Invalid = 1
	in.Comparison.Targets[1].Reasons = []compare.Reason{{Text: `late, by "1 ms"`, Runs: 1},
		{Text: "short window", Runs: 1}}
	return in
}

// small returns an input with content for every format.
func small() Input {
	in := withRuns(input(
		bounded(row("lab:vxlan", 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan), 9.4, 0.971, 0.682),
		warned(latency(row("lab:vxlan", 0, 0, 0.004, -0.015, math.Inf(1), compare.Undecided, compare.None), 22.1, 22.2),
			"Too few blocks for an upper end."),
		exploratory(func() compare.Row {
			r := latency(row("lab:vxlan", 0, 0, 0.002, -0.004, 0.008, compare.Equivalent, compare.None), 70, 70.1)
			r.Case = "pod-svc/other/tcp-crr"
			return r
		}()),
	))
	in.Comparison.NotMeasured = []result.NotMeasured{{Target: "lab:ipsec",
		Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"}}
	in.Comparison.AlsoDiffers = map[string][]string{"lab:vxlan": {"mtu"}}
	in.Comparison.Differences = map[string][]compare.Difference{"lab:vxlan": {{Fact: "mtu",
		Baseline: "1500", Target: "1450"}}}
	return in
}

// render returns the output of a function.
func render(t *testing.T, write func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
