package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// oneTarget returns an experiment with one target, whose second case has a long name and too few runs for an interval.
func oneTarget(t *testing.T) Input {
	t.Helper()
	in := inputs(t)["one"]
	c := in.Comparison
	short := compare.Median{
		Case: "api/configmap/list:objects=1000,consistent=true", Metric: "p50",
		Unit: unit.Second, Better: "lower", Target: "lab:native",
		Runs: 2, Median: 0.0606, CI: compare.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}, Level: 0.95,
	}
	c.Medians = append(slices.Clone(c.Medians), short)
	for i, m := range c.Medians {
		if m.Case == "pod-pod/other/tcp-rr" && m.Metric == "p50" {
			c.Medians[i].UpperBound = &compare.UpperBound{Case: "node-node/tcp-rr",
				Median: 25e-6, TargetMedian: 25e-6, BaselineShare: 0.81, TargetShare: 0.81}
		}
	}
	in.Comparison = c
	return in
}

// TestOneTargetHasNumbers checks that every report on a single target has its numbers, and none mentions a comparison.
func TestOneTargetHasNumbers(t *testing.T) {
	in := oneTarget(t)
	for name, want := range map[string][]string{
		"table": {"which is compared with nothing", "MEASURED",
			"throughput", " p50 ", " p99 ", "81 % of node-node/tcp-rr", "An interval takes six runs"},
		"markdown": {"### Measured", "| pod-pod/other/tcp-rr · p50 | 30.8 µs |",
			"| 11 | 81 % of node-node/tcp-rr |", "60.6 ms"},
		"html": {"Medians of the runs", ">11</td>",
			"Every run of pod-pod/other/tcp-rr by block", "60.6", "Further metrics"},
		"openmetrics": {`knotmeter_median_p50_seconds{case="pod-pod/other/tcp-rr",target="lab:native"}`},
		"json":        {`"medians"`},
	} {
		text := inFormat(t, name, in)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q", name, part)
			}
		}
		for _, wrong := range []string{"nothing to compare", "There are no runs",
			"declared primary", "excludes zero", "No recorded fact differs"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s says %q", name, wrong)
			}
		}
	}
}

// TestCardOfOneTarget checks that the card shows medians if there are no comparisons.
func TestCardOfOneTarget(t *testing.T) {
	text := texts(t, card(oneTarget(t)))
	for _, want := range []string{"native", "30.8\u00a0µs", "30.4 to 31.6 µs", "60.6\u00a0ms"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestComparisonsHaveNoMedians checks that comparisons have no table of medians.
func TestComparisonsHaveNoMedians(t *testing.T) {
	in := inputs(t)["two"]
	for _, name := range []string{"table", "html", "markdown", "json"} {
		if text := inFormat(t, name, in); strings.Contains(text, "MEASURED") ||
			strings.Contains(text, `"medians"`) || strings.Contains(text, "### Measured") {
			t.Errorf("%s of a comparison has medians of its own", name)
		}
	}
}

func TestAround(t *testing.T) {
	m := compare.Median{Unit: unit.Second}
	for want, ci := range map[string]compare.Interval{
		"22.7 to 22.9 µs":   {Lo: 22.7e-6, Hi: 22.9e-6},
		"980 µs to 1.02 ms": {Lo: 980e-6, Hi: 1.02e-3}, "-": {Lo: math.Inf(-1), Hi: math.Inf(1)},
		"0 s to 5.00 ms": {Lo: 0, Hi: 5e-3},
	} {
		if m.CI = ci; medianInterval(m) != want {
			t.Errorf("%v is %q, not %q", ci, medianInterval(m), want)
		}
	}
}

// TestPageOfManyMediansHasTheFirst checks that a page with thousands of cases has the first ones, and a note.
func TestPageOfManyMediansHasTheFirst(t *testing.T) {
	in := oneTarget(t)
	list := in.Comparison.Medians
	in.Comparison.Medians = nil
	for i := range 5000 {
		m := list[0]
		m.Case = fmt.Sprintf("pod-pod/other/tcp-rr:request=%d", i+1)
		in.Comparison.Medians = append(in.Comparison.Medians, m)
	}
	page := inFormat(t, "html", in)
	if !strings.Contains(page, "<wbr>request=500<") || strings.Contains(page, "<wbr>request=501<") ||
		!strings.Contains(page, "The first 500 of 5000 are in this page.") {
		t.Errorf("the page of %d bytes has not the first 500 medians, or does not say so", len(page))
	}
	if text := inFormat(t, "json", in); !strings.Contains(text, "rr:request=5000") {
		t.Error("the data have not all")
	}
}
