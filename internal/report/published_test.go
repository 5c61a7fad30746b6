package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestPublishedForm checks that the report has the form of the publication, and adds the intervals and verdicts that
// the publication lacks.
func TestPublishedForm(t *testing.T) {
	const name = "app/vault/published"
	row := func(of string, change, lo, hi float64, v compare.Verdict, d compare.Direction) compare.Row {
		return compare.Row{
			Case: name, Metric: of, Unit: unit.Second, Better: metric.Lower, Role: result.Primary,
			Baseline: "AKS", Target: "C11n",
			Change: compare.Number(change), CI: compare.Interval{Lo: lo, Hi: hi}, Verdict: v, Direction: d, Blocks: 2,
		}
	}
	in := input(row("mean", 0.012, 0.0045, 0.0194, compare.Different, compare.WorseThan),
		row("p99", 0.052, -0.028, 0.139, compare.Undecided, compare.None))
	in.Comparison.Baseline, in.Comparison.Targets = "AKS", []compare.TargetRuns{{Name: "AKS"}, {Name: "C11n"}}
	in.Experiment.Baseline, in.Experiment.Cases = "AKS", []result.Case{{Name: name, Metric: "mean"}}
	for block := range 2 {
		for _, target := range []string{"AKS", "C11n"} {
			r := result.Run{Case: name, Target: target, Block: block + 1, Attempt: 1}
			for metricName, v := range map[string]float64{"mean": 1.5 + float64(block), "p99": 5, "max": 6, "min": 0.01} {
				if metricName == "mean" && target == "C11n" {
					v += 0.5
				}
				r.Values = append(r.Values, result.Value{Metric: metricName, Unit: unit.Second, Number: v})
			}
			in.Runs = append(in.Runs, r)
		}
	}
	in.Comparison.Sessions = []compare.Session{{Sentence: "Conditions changed."}}
	in.Comparison.Warnings = recorded("C11n: its proxies are a stand-in.")
	got := inFormat(t, "published", in)
	for _, want := range []string{
		"C11n: its proxies are a stand-in.\n\nConditions changed.\n\n", "Changes are ours",
		"========== Results AKS ==========\n" +
			"Mean:   mean: 2.000000, variance: 0.500000\nP99:    mean: 5.000000, variance: 0.000000\nMax:    mean: 6.000000",
		"========== AKS vs C11n ==========\n", "Mean:   +1.2 % [+0.4, +1.9] %  different (AKS is faster)\n" +
			"        published as: +20.000000 %\n",
		"P99:    +5.2 % [-2.8, +13.9] %  undecided\n", "(2 runs; seconds)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if len(line) > 81 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	few := &in.Comparison.Comparisons[1]
	few.CI, few.Warnings = compare.Interval{Lo: 0.01, Hi: 0.1}, []compare.Warning{{Code: compare.FewRuns, Count: 5, Of: 5,
		Needed: 6}}
	for paired, want := range map[bool]string{true: "Walsh averages of", false: "of each, which are not paired"} {
		in.Comparison.Paired = paired
		got := inFormat(t, "published", in)
		if !strings.Contains(got, want) {
			t.Errorf("paired %v: there is no %q in\n%s", paired, want, got)
		}
		want = "  undecided\n        published as: +0.000000 %\n        There are 5 and 5 runs; below 6"
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if got := inFormat(t, "published", input()); !strings.Contains(got, "No case has runs") {
		t.Error(got)
	}
}

// TestPublishedBoxes checks that the page has a box plot for each metric of the form, only for cases in that form.
func TestPublishedBoxes(t *testing.T) {
	const name = "app/vault/published"
	in := input(compare.Row{Case: name, Metric: "mean", Unit: unit.Second,
		Better: metric.Lower, Role: result.Primary, Baseline: "AKS", Target: "C11n"})
	in.Comparison.Boxes = nil
	for _, metricName := range []string{"mean", "p99", "max", "min"} {
		for _, target := range []string{"AKS", "C11n"} {
			in.Comparison.Boxes = append(in.Comparison.Boxes, compare.Box{Case: name, Metric: metricName,
				Unit: unit.Second, Target: target, Runs: 3, Lowest: 1, Q1: 2, Median: 3, Q3: 4, Highest: 5})
		}
	}
	for _, target := range []string{"AKS", "C11n"} {
		run := result.Run{Case: name, Target: target, Block: 1, Attempt: 1}
		for _, metricName := range []string{"mean", "p99", "max", "min"} {
			run.Values = append(run.Values, result.Value{Metric: metricName, Unit: unit.Second, Number: 3})
		}
		in.Runs = append(in.Runs, run)
	}
	page := inFormat(t, "html", in)
	if n := strings.Count(page, `class="box"`); n != 4 {
		t.Errorf("%d figures have boxes", n)
	}
	for _, metricName := range []string{"mean", "p99", "max", "min"} {
		if n := strings.Count(page, "Every run of "+name+" by block, "+metricName); n != 1 {
			t.Errorf("%d figures of %s", n, metricName)
		}
	}
}
