package compare

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The cases of the tests, as a family would describe them.
var headlineCases = []result.Case{
	{Name: "a/stream", Role: result.Primary, Metric: "throughput", Words: result.Words{Quantity: "throughput"}},
	{Name: "a/rr", Role: result.Primary, Metric: "p50", Words: result.Words{Quantity: "latency"}},
	{Name: "b/rr", Role: result.Primary, Metric: "p50", Words: result.Words{Quantity: "latency"}},
}

func row(name, metric string, u unit.Unit, target string, change float64, v Verdict, d Direction) Row {
	return Row{Case: name, Metric: metric, Unit: u, Role: result.Primary, Target: target, Baseline: "lab:native",
		Change: Number(change), Verdict: v, Direction: d}
}

// three returns the rows of all cases on a target, with these outcomes in order.
func three(target string, changes [3]float64, outcomes [3]Direction) []Row {
	rows := []Row{
		row("a/stream", "throughput", unit.BitPerSecond, target, changes[0], Different, outcomes[0]),
		row("a/rr", "p50", unit.Second, target, changes[1], Different, outcomes[1]),
		row("b/rr", "p50", unit.Second, target, changes[2], Different, outcomes[2]),
	}
	for i, o := range outcomes {
		switch o {
		case same:
			rows[i].Verdict, rows[i].Direction = Equivalent, None
		case open:
			rows[i].Verdict, rows[i].Direction = Undecided, None
		}
	}
	return rows
}

// Outcomes besides the directions.
const (
	same Direction = "same"
	open Direction = "open"
)

func TestHeadline(t *testing.T) {
	const w, b = WorseThan, BetterThan
	for name, test := range map[string]struct {
		rows     []Row
		placebos []string
		want     string
	}{
		"all worse": {three("lab:vxlan", [3]float64{-0.258, 0.391, 0.47}, [3]Direction{w, w, w}), nil,
			"vxlan is slower than native in all 3 cases: -26 % throughput, +39 to +47 % latency"},
		"factor": {three("lab:vxlan", [3]float64{-0.89, 10.9, 0.05}, [3]Direction{w, w, w}), nil,
			"vxlan is slower than native in all 3 cases: -89 % throughput, +5.0 % to ×11.9 latency"},
		"mixed": {three("lab:vxlan", [3]float64{-0.258, 0.01, 0.1}, [3]Direction{w, same, open}), nil,
			"vxlan is slower than native in 1 of 3 cases, equivalent within ±2 % in 1 and undecided in 1: -26 % throughput"},
		"both ways": {three("lab:vxlan", [3]float64{0.1, 0.2, -0.03}, [3]Direction{b, w, b}), nil,
			"vxlan is slower than native in 1 of 3 cases and faster in 2: +10 % throughput, -3.0 to +20 % latency"},
		"equivalent": {three("lab:vxlan", [3]float64{}, [3]Direction{same, same, same}), nil,
			"vxlan is equivalent to native within ±2 % in all 3 cases"},
		"undecided": {three("lab:vxlan", [3]float64{}, [3]Direction{open, open, open}), nil,
			"vxlan is undecided against native in all 3 cases"},
		"one case, and not the metric it is measured for": {[]Row{
			row("a/rr", "p50", unit.Second, "lab:vxlan", 0.3, Different, w),
			row("a/rr", "p99", unit.Second, "lab:vxlan", 0.9, Different, w)}, nil,
			"vxlan is slower than native: +30 % latency"},
		"two targets": {append(three("lab:vxlan", [3]float64{-0.2, 0.1, 0.1}, [3]Direction{w, w, w}),
			three("lab:ipip", [3]float64{}, [3]Direction{same, same, same})...), nil,
			"vxlan is slower than native in all 3 cases: -20 % throughput, +10 % latency; " +
				"ipip is equivalent to native within ±2 % in all 3 cases"},
		"many targets": {append(append(three("lab:vxlan", [3]float64{-0.2, 0.1, 0.1}, [3]Direction{w, w, w}),
			three("lab:ipip", [3]float64{-0.4, 0.1, 0.1}, [3]Direction{w, w, w})...),
			three("lab:macvlan", [3]float64{0.1, -0.1, -0.1}, [3]Direction{b, b, b})...), nil,
			"vxlan and ipip are slower than native in all 3 cases; macvlan is faster than native in all 3 cases"},
		"A/A beside a target": {append(three("lab:again", [3]float64{}, [3]Direction{same, same, same}),
			three("lab:ipip", [3]float64{-0.4, 0.1, 0.1}, [3]Direction{w, w, w})...), []string{"lab:again"},
			"ipip is slower than native in all 3 cases: -40 % throughput, +10 % latency"},
		"A/A alone": {three("lab:again", [3]float64{}, [3]Direction{same, same, open}), []string{"lab:again"},
			"again is equivalent to native within ±2 % in 2 of 3 cases and undecided in 1"},
		"nothing": {nil, nil, "Nothing is compared yet"},
	} {
		c := Comparison{Paired: true, Baseline: "lab:native", Delta: 0.02, Primaries: 3, Comparisons: test.rows,
			Placebos: test.placebos}
		if got := headline(c, headlineCases); got != test.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, test.want)
		}
	}
}

func TestHeadlineOfCost(t *testing.T) {
	c := Comparison{Paired: true, Baseline: "lab:native", Delta: 0.02, Primaries: 1, Comparisons: []Row{
		row("a/cpu", "cpu-per-op", unit.SecondPerOp, "lab:vxlan", 0.3, Different, WorseThan)}}
	if got, want := headline(c, nil), "vxlan is worse than native: +30 % cpu-per-op"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHeadlineOfOneTarget(t *testing.T) {
	cases := []result.Case{{Name: "storage/a", Metric: "rate", Load: result.Load{Volume: true},
		Words: result.Words{Quantity: "operations"}}}
	c := Comparison{Targets: []TargetRuns{{Name: "kube:a"}}, Medians: []Median{
		{Case: "storage/a", Metric: "rate", Unit: unit.PerSecond, Target: "kube:a", Median: 12345, Role: result.Primary},
		{Case: "storage/a", Metric: "p99", Unit: unit.Second, Target: "kube:a", Median: 1, Role: result.Primary}}}
	if got, want := headline(c, cases), "kube:a, measured alone: operations 12.3 kIOPS"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
