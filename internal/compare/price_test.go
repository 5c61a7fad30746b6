package compare

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]string{
		"0.42/h": "0.42/h", "0.42EUR/h": "0.42 EUR/h", "0.42 EUR/h": "0.42 EUR/h",
		"12$/h": "12 $/h", " 1.50 €/h ": "1.5 €/h", "0.0001/h": "0.0001/h",
	} {
		p, err := ParsePrice(text)
		if err != nil || p.String() != want {
			t.Errorf("%q: %s, %v", text, p, err)
		}
		if again, err := ParsePrice(p.String()); err != nil || again != p {
			t.Errorf("%q read again: %v, %v", p, again, err)
		}
	}
	for _, text := range []string{"", "0.42", "0/h", "0.0/h", "-1/h", "1e3/h", "/h", "EUR/h", "1/month",
		"1 EUR USD/h", "NaN/h", "1,5/h", "1a very long currency/h", strings.Repeat("9", 400) + "/h"} {
		if p, err := ParsePrice(text); !errors.Is(err, ErrPrice) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func FuzzParsePrice(f *testing.F) {
	f.Add("0.42EUR/h")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrice(text)
		if err != nil {
			return
		}
		if again, err := ParsePrice(p.String()); err != nil || again != p || !(p.PerHour > 0) || math.IsInf(p.PerHour, 0) {
			t.Errorf("%q is %v, and then %v, %v", text, p, again, err)
		}
	})
}

// TestPrices checks that half the performance for the same price costs twice as much, with the ends of the interval
// swapped.
func TestPrices(t *testing.T) {
	row := func(metric string, u unit.Unit, b metric.Better, baseline, median, change float64, ci Interval) Row {
		return Row{Case: "pod-pod/other/x", Metric: metric, Unit: u, Better: b, Baseline: "a", Target: "b",
			BaselineMedian: Number(baseline), TargetMedian: Number(median), Change: Number(change), CI: ci, Level: 0.95}
	}
	stream := row("throughput", unit.BitPerSecond, metric.Higher, 10e9, 5e9, -0.5, Interval{-0.6, -0.2})
	rate := row("rate", unit.PerSecond, metric.Higher, 20e3, 20e3, 0, unbounded())
	stored := func(r Row) Row { r.Case, r.Role = "storage/x", result.Primary; return r }
	beside := stored(stream)
	beside.Role = result.Exploratory
	facts := func(a, b string) func(string) []result.Fact {
		prices := map[string]string{"a": a, "b": b}
		return func(target string) []result.Fact { return []result.Fact{{Name: PriceFact, Value: prices[target]}} }
	}
	for _, test := range []struct {
		name, a, b string
		row        Row
		want       []string
	}{
		{"half as much", "0.42 EUR/h", "0.42 EUR/h", stream, []string{"0.084 and 0.042 EUR for Gbit/s, × 2 [1.25, 2.5]"}},
		{"half as much for half the price", "0.42/h", "0.21/h", stream,
			[]string{"0.042 and 0.042  for Gbit/s, × 1 [0.625, 1.25]"}},
		{"requests", "1/h", "3/h", rate, []string{"0.15 and 0.05  for 1000 op/s, × 3 [0, +Inf]"}},
		{"a volume's operations", "1/h", "3/h", stored(rate), []string{"0.15 and 0.05  for 1000 IOPS, × 3 [0, +Inf]"}},
		{"a volume's bandwidth", "1/h", "1/h", stored(stream), []string{"1.6 and 0.8  for GB/s, × 2 [1.25, 2.5]"}},
		{"the bandwidth of small blocks", "1/h", "1/h", beside, nil},
		{"two currencies", "1EUR/h", "1USD/h", rate, nil},
		{"one price", "1/h", "", rate, nil},
		{"nonsense in the facts", "1/h", "much", rate, nil},
		{"latency", "1/h", "1/h", row("p50", unit.Second, metric.Lower, 1e-4, 1e-4, 0, Interval{-0.1, 0.1}), nil},
		{"no ratio", "1/h", "1/h", row("throughput", unit.BitPerSecond, metric.Higher, 1e9, 1e9, math.NaN(), unbounded()),
			nil},
		{"nothing came through", "1/h", "1/h", row("throughput", unit.BitPerSecond, metric.Higher, 1e9, 0, -1, unbounded()),
			nil},
	} {
		c := Comparison{Comparisons: []Row{test.row}}
		load := result.Load{Volume: strings.HasPrefix(test.row.Case, "storage/")}
		e := result.Experiment{Cases: []result.Case{{Name: test.row.Case, Load: load}}}
		c.addPrices(e, facts(test.a, test.b))
		var got []string
		for _, p := range c.Prices {
			got = append(got, fmt.Sprintf("%.3g and %.3g %s for %s, × %.3g [%.3g, %.3g]", p.TargetPrice, p.BaselinePrice,
				p.Currency, p.Per, p.Ratio, p.CI.Lo, p.CI.Hi))
			if p.Case != test.row.Case || p.Metric != test.row.Metric || p.Target != "b" || p.Baseline != "a" ||
				p.Level != 0.95 {
				t.Errorf("%s: %+v", test.name, p)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestSetPrices checks that prices replace earlier ones, and that the facts passed in are not modified.
func TestSetPrices(t *testing.T) {
	before := map[string][]result.Fact{"a": {{Name: "price", Value: "1/h"}, {Name: "kernel", Value: "6"}}, "b": nil}
	targets := []result.Target{{Name: "a"}, {Name: "b"}}
	after := SetPrices(map[string]Price{"a": {PerHour: 2}, "c": {PerHour: 3}}, before, targets)
	if result.FactOf(after["a"], "price") != "2/h" || result.FactOf(after["a"], "kernel") != "6" ||
		len(after["a"]) != 2 || len(after["b"]) != 0 || len(after["c"]) != 0 {
		t.Errorf("%v", after)
	}
	if result.FactOf(before["a"], "price") != "1/h" || len(before["a"]) != 2 {
		t.Errorf("the facts were changed: %v", before)
	}
	c := newComparison(result.Experiment{})
	c.addDifferences("b", before["a"], after["a"])
	if len(c.AlsoDiffers["b"]) != 0 {
		t.Errorf("a price explains nothing: %v", c.AlsoDiffers)
	}
}
