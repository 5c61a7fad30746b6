package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestBoxes checks that the page has a box plot for each metric in which others published the case.
func TestBoxes(t *testing.T) {
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
