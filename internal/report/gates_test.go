package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// gated returns a comparison with a gate of each outcome, and a planned and an unplanned order of targets.
func gated() Input {
	gate := func(o compare.Outcome, sentence string) compare.Gated {
		return compare.Gated{Gate: "*/tcp-rr p99 <= +5%", Case: "pod-pod/other/tcp-rr",
			Metric: "p99", Target: "lab:vxlan", Outcome: o, Sentence: sentence}
	}
	return Input{Comparison: compare.Comparison{
		Paired: true, Baseline: "lab:native", Headline: "Nothing", Summary: "Nothing.", Scope: "Here and now.",
		Gates: []compare.Gated{
			gate(compare.Passed, "It rose by 1 %: passed."),
			gate(compare.Failed, "It rose by 9 % <of> all: failed."),
			gate(compare.Open, "It rose by 5 %: open."),
		},
		Groups: []compare.Group{
			{Case: "pod-pod/other/tcp-rr", Metric: "p50", Declared: true,
				Conclusion: "lab:native and lab:bridge cannot be told apart"},
			{Case: "pod-pod/other/tcp-rr", Metric: "p99", Conclusion: "lab:native is fastest"},
		},
	}}
}

func TestJUnitGates(t *testing.T) {
	var b strings.Builder
	if err := writeJUnit(&b, gated()); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	if s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 0 {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped", s.Tests, s.Failures, s.Errors, s.Skipped)
	}
	passed, failed, open := s.Cases[0], s.Cases[1], s.Cases[2]
	if passed.Failure != nil || passed.Error != nil || passed.Skipped != nil || passed.Out != "It rose by 1 %: passed." {
		t.Errorf("passed: %+v", passed)
	}
	if failed.Failure == nil || failed.Failure.Message != "It rose by 9 % <of> all: failed." || failed.Error != nil {
		t.Errorf("failed: %+v", failed)
	}
	if open.Error == nil || open.Error.Type != "undecided" ||
		open.Error.Message != "It rose by 5 %: open." || open.Failure != nil {
		t.Errorf("open: %+v", open)
	}
	if want := "*/tcp-rr p99 <= +5%, pod-pod/other/tcp-rr, p99, lab:vxlan"; failed.Class != "gate" || failed.Name != want {
		t.Errorf("the failed one is %q of class %q", failed.Name, failed.Class)
	}
}

// TestTextGatesAndOrder checks that gates come first, because they determine the exit status.
func TestTextGatesAndOrder(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, gated(), TextOptions{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	const gates = `Nothing.
Nothing.

GATES
  - ✓ passed: It rose by 1 %: passed. (*/tcp-rr p99 <= +5%)
  - ✗ failed: It rose by 9 % <of> all: failed. (*/tcp-rr p99 <= +5%)
  - ~ open: It rose by 5 %: open. (*/tcp-rr p99 <= +5%)

`
	const order = "\nORDER\n  - pod-pod/other/tcp-rr, p50: lab:native and lab:bridge cannot be told apart\n\n"
	if !strings.HasPrefix(b.String(), gates) || !strings.Contains(b.String(), order) {
		t.Errorf("got\n%swant\n%s… %s", b.String(), gates, order)
	}
}

func TestMarkdownGatesAndOrder(t *testing.T) {
	var b strings.Builder
	if err := writeMarkdown(&b, gated()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### Gates\n\n- ✓ **passed**: It rose by 1 %: passed. (\\*/tcp-rr p99 &lt;= +5%)\n" +
			"- ✗ **failed**: It rose by 9 % &lt;of&gt; all",
		"<summary>the order of all targets</summary>\n\n" +
			"- pod-pod/other/tcp-rr, p50: lab:native and lab:bridge cannot be told apart\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if open, _, _ := strings.Cut(b.String(), "<details>"); strings.Contains(open, "is fastest") {
		t.Error("an order that nobody planned is not folded")
	}
}

// TestCommandRepeatsTheDesign checks that the shown command repeats the design.
func TestCommandRepeatsTheDesign(t *testing.T) {
	e := result.Experiment{
		Baseline: "lab:native", Targets: []result.Target{{Name: "lab:native", Spec: result.SpecOf("lab:native")}},
		Design: result.Design{Blocks: 12, Looks: []int{5, 8, 12},
			AllPairs: true, Budget: 90, Duration: 1, Alpha: 0.05, Delta: 0.02},
		Gates: []string{"*/tcp-rr p99 <= +5%"},
	}
	got := strings.Join(command(Input{Experiment: e, Comparison: compare.Comparison{Paired: true}}), " ")
	if want := " --looks 5,8,12 --budget 1m30s --all-pairs --gate '*/tcp-rr p99 <= +5%' "; !strings.Contains(got, want) ||
		strings.Contains(got, "--blocks") {
		t.Errorf("no %q in %s", want, got)
	}
	e.Design.Looks, e.Design.AllPairs, e.Design.Budget, e.Gates = nil, false, 0, nil
	got = strings.Join(command(Input{Experiment: e, Comparison: compare.Comparison{Paired: true}}), " ")
	if !strings.Contains(got, " --blocks 12 ") || strings.Contains(got, "--looks") ||
		strings.Contains(got, "--all-pairs") || strings.Contains(got, "--gate") || strings.Contains(got, "--budget") {
		t.Errorf("with a fixed number of blocks: %s", got)
	}
}

// TestCommandInTurn checks that the shown command includes the switches of targets.
func TestCommandInTurn(t *testing.T) {
	e := result.Experiment{
		Baseline: "a", Design: result.Design{Blocks: 8}, Restore: &result.Command{Text: "true"},
		Targets: []result.Target{
			{Name: "a", Spec: result.SpecOf("kube:x?label=a"), Switch: &result.Command{Text: "./cni.sh 'a'", Limit: 90}},
			{Name: "b", Spec: result.SpecOf("kube:y")},
		},
	}
	got := strings.Join(command(Input{Experiment: e, Comparison: compare.Comparison{Paired: true}}), " ")
	want := `--target kube:y --switch 'a=./cni.sh '\''a'\''' --restore true --switch-limit 1m30s --blocks 8`
	if !strings.Contains(got, want) {
		t.Errorf("%s\nhas no\n%s", got, want)
	}
}
