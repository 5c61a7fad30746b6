package report

import (
	"strings"
	"sync"
	"testing"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
)

// many is the input of a plan.
func many(p shape) (Input, error) {
	r, err := manyRuns(p)
	if err != nil {
		return Input{}, err
	}
	c, err := compare.Compare(r)
	return Input{Comparison: c, Experiment: r.Experiment, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts}, err
}

// few is a small plan.
func few(specs ...string) shape {
	return shape{
		Targets:  reporttest.Targets(specs...),
		Slowdown: []float64{1, 1.003, 1.3, 0.93, 1.31, 2}, Paths: []string{"pod-pod/other"},
		Workloads: []string{"tcp-stream", "tcp-rr"}, Primary: "pod-pod", Blocks: 11, Samples: 900, Steps: 10,
	}
}

// pages are experiments of every kind that a page is made of. They are made once, and not changed.
var pages = sync.OnceValues(func() (map[string]Input, error) {
	placebo := few("lab:native", "lab:native?label=again", "lab:vxlan")
	placebo.Targets[1].Name = "again"
	pairs := few("lab:native", "lab:bridge", "lab:vxlan", "lab:macvlan", "lab:geneve", "lab:vxlan+wireguard")
	pairs.Design.AllPairs = true
	all := map[string]Input{"small": small(), "nothing": input()}
	for name, plan := range map[string]shape{
		"matrix": matrixShape(), "one": few("lab:native"),
		"two": few("lab:native", "lab:vxlan"), "placebo": placebo, "pairs": pairs,
		"scale": few("lab:native", "lab:native?rules=1000", "lab:native?rules=5000"),
		"long": few("kube:gke_my-organisation-staging_europe-west3-a_cluster-with-a-name-that-nobody-can-remember",
			"kube:arn:aws:eks:eu-central-1:123456789012:cluster/another-cluster-of-a-long-name"),
	} {
		in, err := many(plan)
		if err != nil {
			return nil, err
		}
		all[name] = in
	}
	for name, make := range map[string]func() (Input, error){"network": built,
		"doubtful": doubtful, "unpaired": unpairedInput} {
		in, err := make()
		if err != nil {
			return nil, err
		}
		all[name] = in
	}
	return all, nil
})

// inputs are the pages.
func inputs(t testing.TB) map[string]Input {
	t.Helper()
	all, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// doubtful is an experiment with gates, and findings of every severity.
func doubtful() (Input, error) {
	p := few("lab:native", "lab:bridge", "lab:vxlan")
	p.Gates = []string{"pod-pod/*/tcp-rr p50 <= +5%", "pod-pod/other/tcp-stream throughput >= -2%"}
	in, err := many(p)
	if err != nil {
		return Input{}, err
	}
	in.Runs[3].Invalid = []result.Warning{
		{Code: result.GeneratorLate, Text: "the generator was late by more than 1 ms in 3.1 % of the window"},
	}
	in.Comparison.Findings = []audit.Finding{
		{Rule: "few-runs", Severity: audit.Note, Saw: "Every case has 11 runs.", Why: "Fewer runs see less."},
		{Rule: "closed-loop", Severity: audit.Error, Case: "pod-pod/other/tcp-rr", Target: "lab:vxlan",
			Metric: "rate", Runs: []string{"r00001", "r00004", "r00009", "r00012", "r00020"},
			Saw: "Rate times mean latency is 0.71, not 1.", Why: "In a closed loop with one request outstanding the two " +
				"are reciprocal: it stalled, or one of them is another test's.", More: "Little 1961"},
		{Rule: "above-bound", Severity: audit.Warning, Case: "pod-pod/other/tcp-stream", Target: "lab:bridge",
			Metric: "throughput", Saw: "9.31 Gbit/s is above the 9.2 Gbit/s of node-node.", Why: "A longer path is not faster."},
	}
	return in, nil
}

func unpairedInput() (Input, error) {
	a, err := manyRuns(few("lab:native", "lab:vxlan"))
	if err != nil {
		return Input{}, err
	}
	b := result.Results{Experiment: a.Experiment, Facts: a.Facts, Runs: a.Runs[:len(a.Runs)*2/3]}
	b.Experiment.ID = "2026-11-28-later"
	c, err := compare.CompareUnpaired(a, b)
	return Input{Comparison: c, Experiment: a.Experiment, Runs: a.Runs, Facts: a.Facts, Second: &b}, err
}

// TestRunsWithoutBlocks draws imported runs, which have no blocks, in their order.
func TestRunsWithoutBlocks(t *testing.T) {
	in, err := many(few("lab:native", "lab:vxlan"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range in.Runs {
		in.Runs[i].Block = 0
	}
	in.Experiment.Imported, in.Experiment.Design.Blocks = "iperf3", 0
	b := newBuilder(in, groups(in), in.runs())
	c := b.caseRuns(b.measured[0], 1)
	for block, want := range map[string]bool{"run 1: ": true, "run 11: ": true, "run 12: ": false, "block": false} {
		if strings.Contains(strings.SplitN(string(c.Figure.Plot), "<svg", 2)[1], "<title>"+block) != want {
			t.Errorf("a dot says %q: %t, want %t", block, !want, want)
		}
	}
	if len(c.Table.Rows) != 11 || c.Table.Rows[0].Head != "run 1" {
		t.Errorf("the table of runs is %+v", c.Table)
	}
}

func TestPageStaysSmall(t *testing.T) {
	in := inputs(t)["matrix"]
	if len(in.Experiment.Cases) != 54 || len(in.Experiment.Targets) != 6 || len(in.Runs) != 9*6*6*11 {
		t.Fatalf("%d cases, %d targets, %d runs", len(in.Experiment.Cases), len(in.Experiment.Targets), len(in.Runs))
	}
	doubted := in // a finding at every case and target takes room too
	for _, r := range in.Comparison.Comparisons {
		doubted.Comparison.Findings = append(doubted.Comparison.Findings, audit.Finding{
			Rule: "above-bound", Severity: audit.Warning, Case: r.Case, Target: r.Target, Metric: r.Metric,
			Saw: "It is above what the path can reach.", Why: "A longer path is not faster.",
		})
	}
	for name, in := range map[string]Input{"clean": in, "doubted": doubted} {
		text, _ := rendered(t, in)
		t.Logf("%s: %d bytes", name, len(text))
		if len(text) >= 1e6 {
			t.Errorf("the %s page of a whole matrix takes %d bytes", name, len(text))
		}
		for name, part := range map[string]string{"data": "--format csv", "series": "uPlot",
			"boxes": `class="box"`, "latencies": `id="latency"`, "matrix": `id="paths"`} {
			if !strings.Contains(text, part) {
				t.Errorf("the page has no %s", name)
			}
		}
	}
}
