package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/markdown"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestMarkdownFitsIntoAComment checks that any amount of text fits into a comment, that folded parts are closed, and
// that omitted lines are counted.
func TestMarkdownFitsIntoAComment(t *testing.T) {
	var rows []compare.Row
	for i := range 300 {
		for target := range 6 {
			r := row(fmt.Sprintf("kube:cluster-%d", target), 9, 6, -0.3, -0.33, -0.26, compare.Different, compare.WorseThan)
			r.Case = fmt.Sprintf("pod-pod/other/tcp-stream-%d", i)
			if i > 150 {
				r = exploratory(r)
			}
			rows = append(rows, warned(r, fmt.Sprintf("A note on comparison %d.", i)))
		}
	}
	in := input(rows...)
	long := strings.Repeat("a very long text ", 400)
	for i := range 20 {
		in.Comparison.Warnings = append(in.Comparison.Warnings, recorded(fmt.Sprint(i, long))...)
		in.Comparison.Gates = append(in.Comparison.Gates,
			compare.Gated{Gate: "pod-pod/* p99 <= +5%", Outcome: compare.Open, Sentence: long})
		in.Comparison.NotMeasured = append(in.Comparison.NotMeasured,
			result.NotMeasured{Target: fmt.Sprint(i), Case: "*", Reason: long})
	}
	for _, scope := range []string{"A scope in one sentence.", strings.Repeat(long, 20)} {
		in.Comparison.Scope = scope
		text := written(t, formatNamed(t, "markdown"), in)
		if len(text) > markdown.MaxBytes {
			t.Errorf("%d bytes, at most %d fit", len(text), markdown.MaxBytes)
		}
		if a, b := strings.Count(text, "<details>"), strings.Count(text, "</details>"); a != b {
			t.Errorf("%d folded parts begin, %d end", a, b)
		}
		if !strings.HasSuffix(text, "had no room in a comment; the report and its JSON have everything.\n") {
			t.Errorf("it ends with %q", text[len(text)-200:])
		}
	}
}

// TestMarkdownFoldsWhatIsExploratory checks that the open part of a comment has the verdicts, and that exploratory
// cases are folded.
func TestMarkdownFoldsWhatIsExploratory(t *testing.T) {
	text := written(t, formatNamed(t, "markdown"), small())
	open, folded, found := strings.Cut(text, "<details>")
	if !found {
		t.Fatalf("nothing is folded in\n%s", text)
	}
	for _, want := range []string{stream, rr, "▼ worse", "lab:ipsec was not measured"} {
		if !strings.Contains(open, want) {
			t.Errorf("%q is not in the open part\n%s", want, open)
		}
	}
	for _, want := range []string{"<summary>1 exploratory case</summary>", "pod-svc/other/tcp-crr", "knotmeter run"} {
		if strings.Contains(open, want) || !strings.Contains(folded, want) {
			t.Errorf("%q is not in the folded part alone\n%s", want, text)
		}
	}
	if strings.Contains(text, "no room") {
		t.Error("something short had no room")
	}
}

// TestMarkdownHasBothDirections checks that a bidirectional throughput is followed by that of each direction, as in
// published tables.
func TestMarkdownHasBothDirections(t *testing.T) {
	of := func(metric string, baseline, target float64) compare.Row {
		r := row("lab:vxlan", baseline, target, -0.1, -0.2, -0.05, compare.Different, compare.WorseThan)
		r.Case, r.Metric = stream+":direction=both", metric
		return r
	}
	in := input(of("throughput", 23, 6.2), exploratory(of("throughput-tx", 12, 3.8)),
		exploratory(of("throughput-rx", 11, 0.4)))
	in.Experiment.Cases[0].Metric = "throughput"
	text := written(t, formatNamed(t, "markdown"), in)
	const want = "| 23.0 Gbit/s<br>12.0/11.0 Gbit/s TX/RX | 6.20 Gbit/s<br>▼ -10.0 % \\[-20.0, -5.0\\] worse<br>3.80 "
	if !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}

// TestMarkdownConcludesEachRow checks that each row of three or more targets has a conclusion in words.
func TestMarkdownConcludesEachRow(t *testing.T) {
	in := small()
	in.Comparison.Groups = []compare.Group{
		{Case: "pod-pod/other/tcp-stream", Metric: "throughput", Declared: true, Conclusion: "macvlan carries most"},
		{Case: "pod-pod/same/tcp-rr", Metric: "p50", Conclusion: "macvlan is fastest; cilium is second (exploratory)"},
	}
	text := written(t, formatNamed(t, "markdown"), in)
	for _, want := range []string{
		"<summary>the order of all targets</summary>\n\n- pod-pod/other/tcp-stream, throughput: macvlan carries most\n",
		"<summary>the order in 1 exploratory row</summary>\n\n" +
			"- pod-pod/same/tcp-rr, p50: macvlan is fastest; cilium is second (exploratory)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
