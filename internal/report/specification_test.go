package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
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
	first, _ := splitMedians(in)
	b := specificationSheet(in, first)
	rows := b.Parts[0].(doc.Table).Rows
	if len(rows) != 2 {
		t.Fatalf("%d cases: %+v", len(rows), rows)
	}
	i := slices.IndexFunc(rows, func(r doc.Row) bool { return strings.Contains(r.Sub, "tcp-rr") })
	text := strings.Join(rows[i].Cells[0].Notes, "\n")
	for _, want := range []string{" at 95 %, 11 runs\n", "objective p99 ≤ 1.00 s: not met",
		"published, elsewhere: x 1.00 ms; y 2.00 ms; 1 more below", "p99 "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if detectable := b.Parts[1].(doc.Paragraph).Text; !strings.Contains(detectable, "11 blocks would show a change of +") {
		t.Errorf("%q", detectable)
	}
	for _, other := range []string{"two", "nothing"} {
		in := inputs(t)[other]
		first, _ := splitMedians(in)
		if b := specificationSheet(in, first); len(b.Parts) > 0 {
			t.Errorf("%s: %+v", other, b.Parts)
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
