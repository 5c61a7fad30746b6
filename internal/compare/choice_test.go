package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// withMeans returns an experiment with looks that stopped after eight of thirty blocks, because its p50 was decided.
// Each run also has a mean that is p50 times the factor.
func withMeans(t *testing.T, factor float64) *world {
	t.Helper()
	w := newWorld(30, "A", "B")
	w.e.Design.Looks = []int{8, 11, 30}
	w.addCase(rr, result.Primary, "p50")
	w.addCase("pod-svc/other/tcp-rr", result.Primary, "p50")
	for b := 1; b <= 8; b++ {
		for _, rc := range w.e.Cases {
			for i, target := range []string{"A", "B"} {
				p := 40e-6 * []float64{1, 1.2}[i] * (1 + noise(2*b+i))
				r := w.add(b, rc.Name, target, p50(p))
				r.Values = append(r.Values,
					result.Value{Metric: "mean", Unit: unit.Second, Better: metric.Lower, Number: factor * p},
					result.Value{Metric: "operations", Unit: unit.Count, Number: 1000})
			}
		}
	}
	return w
}

// TestChosenMetric checks that a metric chosen afterwards has the interval of a primary comparison, and that cases
// stopped as planned.
func TestChosenMetric(t *testing.T) {
	w := withMeans(t, 1.5)
	planned := compare(t, w, nil)
	before := primaryRow(t, planned, "p50")
	chosen, warning, err := ChooseMetric(w.e, w.runs, "mean")
	if err != nil {
		t.Fatal(err)
	}
	want := Warning{Code: MetricChosen, Count: 2, Metrics: []string{"mean", "p50"}}
	if warning == nil || !warning.Equal(want) {
		t.Errorf("%+v, want %+v", warning, want)
	}
	if w.e.Cases[0].Metric != "p50" {
		t.Error("the plan itself was changed")
	}
	w.e = chosen
	after := primaryRow(t, compare(t, w, nil), "mean")
	if after.Level != 1-0.05/2 || after.Level != before.Level {
		t.Errorf("level %g, planned %g", after.Level, before.Level)
	}
	// A common factor of both sides changes no ratio.
	if !near(after.CI.Lo, before.CI.Lo) || !near(after.CI.Hi, before.CI.Hi) || after.Verdict != Different {
		t.Errorf("%s %v, planned %s %v", after.Verdict, after.CI, before.Verdict, before.CI)
	}
	if after.Blocks != 8 || before.Blocks != 8 {
		t.Errorf("%d blocks, planned %d", after.Blocks, before.Blocks)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// primaryRow returns the first primary row, and fails unless it is about the metric.
func primaryRow(t *testing.T, c Comparison, of string) Row {
	t.Helper()
	rows := c.Primary()
	if len(rows) != 2 || rows[0].Metric != of || rows[1].Metric != of {
		var have []string
		for _, r := range rows {
			have = append(have, fmt.Sprint(r.Case, " ", r.Metric))
		}
		t.Fatalf("primary: %q, want two about %s", have, of)
	}
	return rows[0]
}

// TestChosenMetricLeavesGatesAndLooks checks that gates and looks use the planned metric.
func TestChosenMetricLeavesGatesAndLooks(t *testing.T) {
	w := withMeans(t, 1.5)
	w.e.Gates = []string{rr + " <= +50%"}
	planned := compare(t, w, nil)
	var err error
	if w.e, _, err = ChooseMetric(w.e, w.runs, "mean"); err != nil {
		t.Fatal(err)
	}
	chosen := compare(t, w, nil)
	if len(planned.Gates) != 1 || chosen.Gates[0].Sentence != planned.Gates[0].Sentence {
		t.Errorf("gates %+v, planned %+v", chosen.Gates, planned.Gates)
	}
	if got := asPlanned(w.e); !slices.Equal(got.Cases, plannedCases(got.Cases)) || got.Cases[0].Metric != "p50" {
		t.Errorf("as planned: %+v", got.Cases)
	}
}

func TestNoSuchMetric(t *testing.T) {
	w := withMeans(t, 1)
	for _, name := range []string{"maen", "operations", ""} {
		_, _, err := ChooseMetric(w.e, w.runs, name)
		if !errors.Is(err, ErrMetric) || !strings.Contains(err.Error(), "they have mean, p50") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, warning, err := ChooseMetric(w.e, w.runs, "p50"); warning != nil || err != nil {
		t.Errorf("what is planned already: %+v, %v", warning, err)
	}
}
