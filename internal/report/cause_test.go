package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
)

// causesOf returns an explanation of a primary case with a cause of each state.
func causesOf(in Input) []explain.Explanation {
	r := in.Comparison.Primary()[0]
	return []explain.Explanation{{Case: r.Case, Metric: r.Metric, Target: r.Target, Baseline: r.Baseline,
		Worse: r.Target, Better: r.Baseline, Sentence: reporttest.VXLAN + " has more CPU time on the path.",
		Causes: []explain.Cause{
			{Rule: "cpu-layers", Cause: "more CPU time on the path", State: explain.Supported,
				Evidence: []string{"CPU time per operation +20 µs [18, 22]: vxlan +5.0 µs", "vxlan +5.0 µs [4.1, 5.9]"},
				Share:    &explain.Share{Estimate: 0.9, CI: compare.Interval{Lo: 0.8, Hi: 1}}, Remedy: "fewer hops"},
			{Rule: "congestion-control", Cause: "another congestion control", State: explain.Differs,
				Evidence: []string{"tcp.congestion reno instead of bbr"}, Factor: &explain.Factor{Name: "congestion=reno"}},
			{Rule: "retransmissions", Cause: "retransmissions", State: explain.NotObservable,
				Evidence: []string{"the runs do not count them"}},
			{Rule: "offloads", Cause: "offloads that are switched off", State: explain.Contradicted,
				Evidence: []string{"none is off"}},
		}, Confirmations: []explain.Confirmation{{Rule: "smaller-segments", Factor: "mss=1410", Whole: -0.26, Part: -0.04,
			CI: compare.Interval{Lo: -0.05, Hi: -0.03}, Sentence: "Of -26.0 % in throughput, -4.00 % are smaller packets."}}}}
}

func TestCausesText(t *testing.T) {
	var b strings.Builder
	in := network(t)
	for _, verbose := range []bool{false, true} {
		if err := CausesText(&b, causesOf(in), verbose); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "testdata/causes.txt", b.String())
	b.Reset()
	if err := CausesText(&b, nil, false); err != nil || !strings.Contains(b.String(), "nothing to explain") {
		t.Errorf("%v: %s", err, &b)
	}
}

// TestCausesEverywhere checks that each format with text has the sentence about causes, and that page and JSON have the
// evidence.
func TestCausesEverywhere(t *testing.T) {
	in := network(t)
	in.Causes = causesOf(in)
	for _, f := range Formats() {
		b := written(t, f, in)
		var wants []string
		switch f.Name {
		case "table", "markdown":
			wants = []string{"more CPU time on the path"}
		case "html":
			wants = []string{`id="why"`, "more CPU time on the path", "90.0 % [80.0 %, 100 %] of the difference", "fewer hops",
				"2 candidates without support", "are smaller packets",
				"differs, effect not shown: another congestion control</b>", "measures it (congestion=reno)",
				" has more CPU time on the path."}
		case "json":
			wants = []string{`"causes"`, `"state": "not observable"`, `"factor": "mss=1410"`}
		}
		text := strings.Join(strings.Fields(strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(b)), " ")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", f.Name, want)
			}
		}
	}
	if brief := textOf(t, in, TextOptions{}); !strings.Contains(brief, "Why: vxlan has more CPU time on the path.") {
		t.Error(brief)
	}
}

// TestUnsupportedCausesAreFolded checks that a page does not open with differences that have no cause.
func TestUnsupportedCausesAreFolded(t *testing.T) {
	in := network(t)
	in.Causes = causesOf(in)
	shownAndFolded := func() (shown, folded int) {
		for _, part := range why(in).Parts {
			if b := part.(doc.Block); b.Count == "" && b.Level < doc.Data {
				shown++
			} else {
				folded += len(b.Parts)
			}
		}
		return shown, folded
	}
	shown, folded := shownAndFolded()
	for i := range in.Causes {
		for j := range in.Causes[i].Causes {
			in.Causes[i].Causes[j].State = explain.Contradicted
		}
	}
	after, others := shownAndFolded()
	if shown == 0 || after != 0 || others != shown+folded {
		t.Errorf("%d shown and %d folded; without support %d and %d", shown, folded, after, others)
	}
}

// TestWhoseCauses checks that the first screen gives causes to the worse one of target and baseline, and that settings
// without a shown effect and hints are named if nothing is supported.
func TestWhoseCauses(t *testing.T) {
	in := network(t)
	one := causesOf(in)[0]
	reversed := one
	reversed.Worse, reversed.Better = one.Baseline, one.Target
	unshown := one
	unshown.Causes, unshown.Hint = one.Causes[1:], "More is seen with profile=yes."
	for _, test := range []struct {
		list []explain.Explanation
		want string
	}{
		{[]explain.Explanation{one}, "Why: vxlan has more CPU time on the path."},
		{[]explain.Explanation{reversed}, "Why: native, compared with vxlan, has more CPU time on the path."},
		{[]explain.Explanation{one, reversed},
			"Why: vxlan has more CPU time on the path; native, compared with vxlan, has more CPU time on the path."},
		{[]explain.Explanation{unshown}, "Why: no cause is supported for 1 difference. Settings that differ, without a " +
			"shown effect: another congestion control. More is seen with profile=yes."},
	} {
		in.Causes = test.list
		if got := causesSentence(in); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		html := Formats()[slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == "html" })]
		page := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(written(t, html, in))
		if !strings.Contains(page, test.want) {
			t.Errorf("the page has no %q", test.want)
		}
	}
}

// TestCausesInASentence checks that the causes of a few targets are named and those of many are counted, and that a
// single target without causes has no sentence.
func TestCausesInASentence(t *testing.T) {
	in := network(t)
	for n, want := range map[int]string{0: "Why: no cause is supported for 1 difference.",
		3: "Why: t0 has delay; t1 has delay; t2 has delay.", 4: "Why: for 4 of 4 differences a cause is supported."} {
		in.Causes = nil
		for i := range max(n, 1) {
			x := causesOf(in)[0]
			x.Target = fmt.Sprint("lab:t", i)
			x.Worse = x.Target
			x.Causes = []explain.Cause{{Cause: "delay", State: explain.Supported}}[:min(n, 1)]
			in.Causes = append(in.Causes, x)
		}
		if got := causesSentence(in); got != want {
			t.Errorf("%d targets: %q, want %q", n, got, want)
		}
	}
	alone := inputs(t)["one"]
	alone.Causes = causesOf(in)
	alone.Causes[0].Causes = nil
	if got := causesSentence(alone); got != "" {
		t.Errorf("alone: %q", got)
	}
}
