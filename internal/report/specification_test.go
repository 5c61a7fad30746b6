package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestSheetOfOneTarget checks that a single target has a sheet: each case once, with its interval, its share of the
// reference, its tail, its objectives, and published figures.
func TestSheetOfOneTarget(t *testing.T) {
	in := inputs(t)["one"]
	in.Comparison.Objectives = []compare.Objective{{Case: "pod-pod/other/tcp-rr", Target: "lab:native", Limit: 1,
		Outcome: compare.NotMet}}
	in.Reference = []published.Table{{Name: "elsewhere", Rows: []published.Row{{Case: "pod-pod/other/tcp-rr",
		Metric: "p50", Unit: unit.Second, Figures: []published.Figure{{Target: "x", Value: 1e-3},
			{Target: "y", Value: 2e-3}, {Target: "z", Value: 3e-3}}}}}}
	p := newPage(in.inStorageUnits())
	if len(p.Sheet) != 2 {
		t.Fatalf("%d lines: %+v", len(p.Sheet), p.Sheet)
	}
	i := slices.IndexFunc(p.Sheet, func(s sheetEntry) bool { return strings.Contains(s.Sub, "tcp-rr") })
	var lines []string
	for _, l := range p.Sheet[i].Lines {
		lines = append(lines, l.Text)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{" at 95 %, 11 runs\n", "objective p99 ≤ 1.00 s: not met",
		"published, elsewhere: x 1.00 ms; y 2.00 ms; 1 more below", "p99 "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(p.Detectable, "11 blocks would show a change of +") {
		t.Errorf("%q", p.Detectable)
	}
	for _, other := range []string{"two", "nothing"} {
		if p := newPage(inputs(t)[other].inStorageUnits()); len(p.Sheet) > 0 || p.Detectable != "" {
			t.Errorf("%s: %+v", other, p.Sheet)
		}
	}
}

func TestShareOfNodeToNode(t *testing.T) {
	for _, tt := range []struct {
		bound compare.UpperBound
		want  string
	}{
		{compare.UpperBound{TargetShare: 0.814}, "81 % of node to node"},
		{compare.UpperBound{TargetShare: compare.Missing(), Faster: "lab:native"}, "faster than node to node"},
		{compare.UpperBound{TargetShare: compare.Missing()}, "node-to-node reference"},
	} {
		if got := shareOfNodeToNode(tt.bound); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.bound, got, tt.want)
		}
	}
}
