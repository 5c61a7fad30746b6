package compare_test

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Each block has a run of the case on both targets. The runs of a block are a pair.
func ExampleCompare() {
	const caseName = "pod-pod/other/tcp-stream"
	e := result.Experiment{
		Baseline: "native",
		Targets:  []result.Target{{Name: "native"}, {Name: "vxlan"}},
		Cases:    []result.Case{{Name: caseName, Role: result.Primary, Metric: metric.Throughput}},
		Design:   result.Design{Blocks: 8, Alpha: 0.05, Delta: 0.02},
	}
	var runs []result.Run
	for block, values := range [][2]float64{
		{9.41e9, 8.92e9}, {9.38e9, 8.95e9}, {9.40e9, 8.97e9}, {9.35e9, 8.88e9},
		{9.44e9, 8.98e9}, {9.39e9, 8.90e9}, {9.37e9, 8.94e9}, {9.42e9, 8.93e9},
	} {
		for i, target := range e.Targets {
			runs = append(runs, result.Run{
				ID: fmt.Sprintf("%d-%s", block+1, target.Name), Case: caseName, Target: target.Name,
				Block: block + 1, Attempt: 1, Slot: i + 1,
				Values: []result.Value{result.NewValue(metric.Named(metric.Throughput), values[i])},
			})
		}
	}
	c, err := compare.Compare(result.Results{Experiment: e, Runs: runs})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Summary)
	row := c.Primary()[0]
	fmt.Printf("%s: %s, %s by %.1f %%\n", row.Target, row.Verdict, row.Direction, -100*row.Change)
	fmt.Printf("interval [%.1f, %.1f] %% over %d blocks\n", 100*row.CI.Lo, 100*row.CI.Hi, row.Blocks)
	// Output:
	// 1 primary comparison: 1 different, 0 equivalent within ±2 %, 0 undecided.
	// vxlan: different, worse by 4.9 %
	// interval [-5.2, -4.6] % over 8 blocks
}

// A limit with a sign and in percent is a change compared with the baseline; any other limit is a value.
func ExampleParseGate() {
	for _, text := range []string{"*/tcp-rr p99 <= +5% on lab:vxlan", "*/tcp-stream >= 9 Gbit/s"} {
		g, err := compare.ParseGate(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: change %t, limit %g %s\n", g.Case, g.Change, g.Limit, g.Unit)
	}
	// Output:
	// */tcp-rr: change true, limit 0.05 ratio
	// */tcp-stream: change false, limit 9e+09 bit/s
}
