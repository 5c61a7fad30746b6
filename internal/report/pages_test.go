package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// manyInput returns the input of an experiment of a shape.
func manyInput(p shape) (Input, error) {
	r, err := manyRuns(p)
	if err != nil {
		return Input{}, err
	}
	c, err := compare.Compare(r)
	return Input{Comparison: c, Experiment: r.Experiment, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts}, err
}

// smallShape returns a small experiment on targets.
func smallShape(specs ...string) shape {
	return shape{
		Targets:  reporttest.Targets(specs...),
		Slowdown: []float64{1, 1.003, 1.3, 0.93, 1.31, 2}, Paths: []result.Path{"pod-pod/other"},
		Workloads: []string{"tcp-stream", "tcp-rr"}, Primary: "pod-pod", Blocks: 11, Samples: 900, Steps: 10,
	}
}

// pages returns experiments of every kind. They are built once and must not be changed.
var pages = sync.OnceValues(func() (map[string]Input, error) {
	placebo := smallShape("lab:native", "lab:native?label=again", "lab:vxlan")
	placebo.Targets[1].Name = "again"
	pairs := smallShape("lab:native", "lab:bridge", "lab:vxlan", "lab:macvlan", "lab:geneve", "lab:vxlan+wireguard")
	pairs.Design.AllPairs = true
	all := map[string]Input{"small": small(), "nothing": input()}
	for name, plan := range map[string]shape{
		"matrix": matrixShape(), "one": smallShape("lab:native"),
		"two": smallShape("lab:native", "lab:vxlan"), "placebo": placebo, "pairs": pairs,
		"scale": smallShape("lab:native", "lab:native?rules=1000", "lab:native?rules=5000"),
		"long": smallShape("kube:gke_my-organisation-staging_europe-west3-a_cluster-with-a-name-that-nobody-can-remember",
			"kube:arn:aws:eks:eu-central-1:123456789012:cluster/another-cluster-of-a-long-name"),
	} {
		in, err := manyInput(plan)
		if err != nil {
			return nil, err
		}
		all[name] = in
	}
	for name, make := range map[string]func() (Input, error){"network": built,
		"doubtful": doubtful, "unpaired": unpairedInput, "several": sixInput} {
		in, err := make()
		if err != nil {
			return nil, err
		}
		all[name] = in
	}
	return all, nil
})

// inputs returns the experiments of pages.
func inputs(t testing.TB) map[string]Input {
	t.Helper()
	all, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// doubtful returns an experiment with gates, an invalid run, and findings of every severity.
func doubtful() (Input, error) {
	p := smallShape("lab:native", "lab:bridge", "lab:vxlan")
	p.Gates = []string{"pod-pod/*/tcp-rr p50 <= +5%", "pod-pod/other/tcp-stream throughput >= -2%"}
	in, err := manyInput(p)
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

// unpairedInput returns two experiments, compared without blocks.
func unpairedInput() (Input, error) {
	a, err := manyRuns(smallShape("lab:native", "lab:vxlan"))
	if err != nil {
		return Input{}, err
	}
	b := result.Results{Experiment: a.Experiment, Facts: a.Facts, Runs: a.Runs[:len(a.Runs)*2/3]}
	b.Experiment.ID = "2026-11-28-later"
	return several(a, b)
}

// sixInput returns six experiments with a target each, of which the last is the slowest.
func sixInput() (Input, error) {
	var all []result.Results
	for i, slowdown := range []float64{1, 1.003, 1.01, 0.93, 1.02, 1.3} {
		p := smallShape("lab:native")
		p.Slowdown = []float64{slowdown}
		r, err := manyRuns(p)
		if err != nil {
			return Input{}, err
		}
		r.Experiment.ID = fmt.Sprintf("cluster-%d", i+1)
		all = append(all, r)
	}
	return several(all...)
}

// several returns the input of a report on several experiments, each labelled by its id.
func several(all ...result.Results) (Input, error) {
	var parts []compare.Part
	for _, r := range all {
		parts = append(parts, compare.Part{Results: r, Label: r.Experiment.ID})
	}
	j, err := compare.Join(parts...)
	if err != nil {
		return Input{}, err
	}
	c, err := j.Compare()
	return Input{Comparison: c, Experiment: j.Experiment, Runs: j.Runs, Facts: j.Facts, Sites: j.Sites}, err
}

// TestRunsWithoutBlocks checks that imported runs, which have no blocks, are drawn in their order.
func TestRunsWithoutBlocks(t *testing.T) {
	in, err := manyInput(smallShape("lab:native", "lab:vxlan"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range in.Runs {
		in.Runs[i].Block = 0
	}
	in.Experiment.Imported, in.Experiment.Design.Blocks = "iperf3", 0
	b := newBuilder(in, groups(in), in.runs())
	c := b.caseRuns(b.results[0])
	for block, want := range map[string]bool{"run 1: ": true, "run 11: ": true, "run 12: ": false, "block": false} {
		if strings.Contains(strings.SplitN(string(c.Plot), "<svg", 2)[1], "<title>"+block) != want {
			t.Errorf("a dot says %q: %t, want %t", block, !want, want)
		}
	}
	runs := slices.DeleteFunc(c.Table.Rows, func(row doc.Row) bool { return row.Group != "Runs" })
	if len(runs) != 11 || runs[0].Head != "run 1" {
		t.Errorf("the table of runs is %+v", runs)
	}
}

// TestPageHasAWholeMatrix checks that a page of every workload on every path with six targets leaves out nothing but
// rows of JSON.
func TestPageHasAWholeMatrix(t *testing.T) {
	in := inputs(t)["matrix"]
	if len(in.Experiment.Cases) != 54 || len(in.Experiment.Targets) != 6 || len(in.Runs) != 9*6*6*11 {
		t.Fatalf("%d cases, %d targets, %d runs", len(in.Experiment.Cases), len(in.Experiment.Targets), len(in.Runs))
	}
	text, root := rendered(t, in)
	t.Logf("%d bytes", len(text))
	if strings.Contains(text, "are in this page") || strings.Contains(text, "in this page.</p>") {
		t.Error("the page of 54 cases has not all of them")
	}
	for part, want := range map[string]int{"runs": 54, "latency": 36, "time": 54} {
		section := elements(root, func(n *html.Node) bool { return attribute(n, "id") == part })[0]
		if got := len(elements(section, classed("div", "case"))); got != want {
			t.Errorf("%d of %d cases have figures in the section %s", got, want, part)
		}
	}
}

// TestPageOfManyRunsHasSome checks that a page of 100 000 runs draws some of them, including outliers, with a note, and
// that the data have all.
func TestPageOfManyRunsHasSome(t *testing.T) {
	in := small()
	in.Runs = nil
	const each = 50_000
	outlier := 1000
	for i := range 2 * each {
		gbit := 9 + 0.1*float64(i%7)
		if i == outlier {
			gbit = 4.5
		}
		in.Runs = append(in.Runs, result.Run{Case: stream, Target: []string{"lab:native", "lab:vxlan"}[i%2], Block: i/2 + 1,
			Attempt: 1, Values: []result.Value{{Metric: "throughput", Unit: unit.BitPerSecond, Number: gbit * 1e9}}})
	}
	b := newBuilder(in, groups(in), in.runs())
	c := b.caseRuns(b.results[0])
	plot := string(c.Plot)
	if n := strings.Count(plot, "h0"); n > 2*maxDots || n < maxDots || !strings.Contains(c.Caption, "than 1000 runs") {
		t.Errorf("%d dots are drawn: %q", n, c.Caption)
	}
	set := decimateDots(dotColumn(b.runs[stream]["lab:native"], b.results[0], "lab:native").Runs)
	if !slices.ContainsFunc(set, func(d chart.Dot) bool { return d.Value == 4.5e9 }) {
		t.Error("the outlier is not drawn")
	}
	text, _ := rendered(t, in)
	if len(text) > 1e6 || !strings.Contains(text, c.Caption) {
		t.Errorf("the page of %d runs of a case has %d bytes, and says that some are left out: %t",
			len(in.Runs), len(text), strings.Contains(text, c.Caption))
	}
	if rows := strings.Count(written(t, formatNamed(t, "csv"), in), "\n"); rows != 2*each+1 {
		t.Errorf("the data have %d lines", rows)
	}
}

// TestFiguresAreOfTheFirstCases checks that a page of many cases has figures of the first ones, with a note.
func TestFiguresAreOfTheFirstCases(t *testing.T) {
	in := small()
	one, run := in.Comparison.Comparisons[0], in.Runs[0]
	in.Comparison.Comparisons, in.Runs = nil, nil
	for i := range maxRows + 1 {
		r, n := one, run
		r.Case = fmt.Sprintf("%s:streams=%d", stream, i+1)
		n.Case = r.Case
		in.Comparison.Comparisons, in.Runs = append(in.Comparison.Comparisons, r), append(in.Runs, n)
	}
	text, root := rendered(t, in)
	runs := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "runs" })[0]
	if n := len(elements(runs, classed("div", "case"))); n != maxCases {
		t.Errorf("%d cases have figures", n)
	}
	for part, want := range map[string]int{"The first 60 of 501 cases have figures in this page.": 1,
		"The first 500 of 501 are in this page.": 5, // matrix, forest plot, paths, power, spread
		"at most 500 rows of a table":            1} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("the page says %d times %q, want %d", got, part, want)
		}
	}
	var embedded compare.Comparison
	script := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "comparison" })[0]
	if err := json.Unmarshal([]byte(content(script)), &embedded); err != nil {
		t.Fatal(err)
	}
	want := "This copy has at most the first 500 rows of each list: 501 of 502 rows." // one was not measured
	abridged := compare.Warning{Code: compare.DocumentIsAbridged, Count: 501, Of: 502, Needed: 500}
	if !slices.ContainsFunc(embedded.Warnings, abridged.Equal) || !strings.Contains(text, want) ||
		len(embedded.Comparisons) != 500 || len(in.Comparison.Warnings) > 0 {
		t.Errorf("the page's JSON has %d comparisons and the warnings %+v", len(embedded.Comparisons), embedded.Warnings)
	}
}
