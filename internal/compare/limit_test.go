package compare

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// limited returns an experiment with cases of a network and of a volume on two targets, the second without facts.
func limited() (result.Experiment, []result.Run, map[string][]result.Fact) {
	e := result.Experiment{ID: "x", Baseline: "a", Targets: []result.Target{{Name: "a"}, {Name: "b"}},
		Design: result.Design{Blocks: 3, Alpha: 0.05, Delta: 0.02}}
	for _, c := range []result.Case{
		{Name: "pod-pod/other/tcp-stream", Path: "pod-pod/other", Metric: metric.Throughput},
		{Name: "pod-pod/same/tcp-stream", Path: "pod-pod/same", Metric: metric.Throughput},
		{Name: "pod-pod/other/tcp-stream:direction=both", Path: "pod-pod/other", Metric: metric.Throughput,
			Load: result.Load{BothWays: true}},
		{Name: "storage/randread-4k-qd128", Path: "storage", Metric: metric.Rate, Load: result.Load{Volume: true}},
		{Name: "storage/randread-1m-qd128", Path: "storage", Metric: metric.Throughput, Load: result.Load{Volume: true}},
	} {
		c.Role = result.Primary
		e.Cases = append(e.Cases, c)
	}
	var runs []result.Run
	for block, noise := range []float64{0.9, 1, 1.1} {
		for _, target := range []string{"a", "b"} {
			for _, c := range e.Cases {
				r := result.Run{ID: fmt.Sprint(len(runs)), Case: c.Name, Target: target, Block: block + 1, Attempt: 1}
				value := func(m string, u unit.Unit, v float64) {
					r.Values = append(r.Values, result.Value{Metric: m, Unit: u, Better: metric.Higher, Number: v * noise})
				}
				switch {
				case c.Load.BothWays:
					value(metric.Throughput, unit.BitPerSecond, 1.8e9)
				case c.Path == "pod-pod/same":
					value(metric.Throughput, unit.BitPerSecond, 20e9)
				case c.Metric == metric.Rate:
					value(metric.Rate, unit.PerSecond, 588)
					value(metric.Throughput, unit.BitPerSecond, 19e6)
				case c.Load.Volume:
					value(metric.Rate, unit.PerSecond, 100)
					value(metric.Throughput, unit.BitPerSecond, 8*100e6)
				default:
					value(metric.Throughput, unit.BitPerSecond, 1e9)
				}
				if c.Load.Volume && target == "a" {
					r.Facts = []result.Fact{{Name: "limit-iops", Value: "500/s"},
						{Name: "limit-throughput", Value: "1600000000 bit/s"}, {Name: "limit-source", Value: "the disks"},
						{Name: "limit-note", Value: "bursts"}}
				}
				runs = append(runs, r)
			}
		}
	}
	return e, runs, map[string][]result.Fact{"a": {
		{Name: "link-rate", Value: "1.25Gbit/s"}, {Name: "vm-limit-iops", Value: "6400/s"},
		{Name: "vm-limit-throughput", Value: "96 MB/s"}, {Name: "vm-limit-source", Value: "the sizes"},
		{Name: "told", Value: "link-rate"},
	}}
}

// TestLimits checks that each resource has the case that comes nearest to its limit, and that of a volume and its VM
// the smaller limit is marked.
func TestLimits(t *testing.T) {
	e, runs, facts := limited()
	c, err := Compare(result.Results{Experiment: e, Runs: runs, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range c.Limits {
		got = append(got, fmt.Sprintf("%s: %.3g of %.3g %s in %s, binding %v (%s; %s)", l.Resource, l.Median, l.Limit, l.Unit,
			l.Case, l.Binding, l.Source, l.Note))
		if math.Abs(float64(l.Share*l.Limit-l.Median)) > 1e-3 && !l.BothWays || l.Target != "a" {
			t.Errorf("%+v", l)
		}
	}
	want := []string{
		"link: 1e+09 of 1.25e+09 bit/s in pod-pod/other/tcp-stream, binding false (told by --fact; )",
		"volume IOPS: 588 of 500 op/s in storage/randread-4k-qd128, binding true (the disks; bursts)",
		"volume bandwidth: 8e+08 of 1.6e+09 bit/s in storage/randread-1m-qd128, binding false (the disks; bursts)",
		"VM disk IOPS: 588 of 6.4e+03 op/s in storage/randread-4k-qd128, binding false (the sizes; )",
		"VM disk bandwidth: 8e+08 of 7.68e+08 bit/s in storage/randread-1m-qd128, binding true (the sizes; )",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c.Limits[4].Resource != audit.MachineBandwidth || !c.Limits[4].Binding || c.Limits[2].Binding {
		t.Errorf("%+v", c.Limits)
	}
}

// TestLimitsDiffer checks that differing limits are listed with the other differences, without their sources.
func TestLimitsDiffer(t *testing.T) {
	of := func(link, source string) []result.Fact {
		return []result.Fact{{Name: audit.FactMachineLink, Value: link}, {Name: audit.FactMachineLinkSource, Value: source}}
	}
	list := differences(of("12500 Mbit/s", "one page"), of("5000 Mbit/s", "another page"))
	if len(list) != 1 || list[0].Fact != audit.FactMachineLink {
		t.Errorf("%+v", list)
	}
}

// TestLimitOfBothWays checks that both directions together may reach twice a link's rate.
func TestLimitOfBothWays(t *testing.T) {
	e, runs, facts := limited()
	facts["a"][0].Value = "1Gbit/s"
	e.Cases = e.Cases[2:3]
	c, err := Compare(result.Results{Experiment: e, Runs: runs, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Limits) != 1 || !c.Limits[0].BothWays || c.Limits[0].Median != 1.8e9 ||
		math.Abs(float64(c.Limits[0].Share)-0.9) > 1e-9 {
		t.Errorf("%+v", c.Limits)
	}
}
