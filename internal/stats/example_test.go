package stats_test

import (
	"fmt"
	"math"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// The runs of each block are a pair. The differences of their logarithms estimate the relative change.
func ExamplePaired() {
	baseline := []float64{9.41, 9.38, 9.40, 9.35, 9.44, 9.39, 9.37, 9.42} // Gbit/s, by block
	target := []float64{8.92, 8.95, 8.97, 8.88, 8.98, 8.90, 8.94, 8.93}
	var changes []float64
	for block := range baseline {
		changes = append(changes, math.Log(target[block]/baseline[block]))
	}
	e := stats.Paired(changes, 0.05, stats.OneLook{})
	fmt.Printf("%.1f %% [%.1f, %.1f], p = %.3f\n",
		100*math.Expm1(e.Shift), 100*math.Expm1(e.Lo), 100*math.Expm1(e.Hi), e.P)
	// Output:
	// -4.9 % [-5.2, -4.6], p = 0.008
}

// With too few pairs the interval has no ends, and a remark has the number of pairs that it needs.
func ExamplePaired_fewPairs() {
	e := stats.Paired([]float64{-0.05, -0.04, -0.06}, 0.05, stats.OneLook{})
	fmt.Println(e.Bounded(), e.Remarks[0].Kind, e.Remarks[0].Count, e.Remarks[0].Needed)
	// Output:
	// false unbounded 3 6
}

// A design with looks allows an experiment to end early. Its intervals are wider, but valid at every look.
func ExampleNewGroupSequential() {
	design, err := stats.NewGroupSequential([]int{8, 11, 15, 21, 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	changes := []float64{-0.049, -0.047, -0.052, -0.044, -0.050, -0.048, -0.051, -0.046}
	one, several := stats.Paired(changes, 0.05, stats.OneLook{}), stats.Paired(changes, 0.05, design)
	fmt.Printf("one look: [%.4f, %.4f]\n", one.Lo, one.Hi)
	fmt.Printf("first of five looks: [%.4f, %.4f]\n", several.Lo, several.Hi)
	// Output:
	// one look: [-0.0510, -0.0460]
	// first of five looks: [-0.0515, -0.0450]
}

// The interval of a median consists of two order statistics, so it needs no assumption about the distribution.
func ExampleQuantileInterval() {
	runs := []float64{41, 43, 40, 44, 42, 47, 39, 45} // µs
	lo, hi := stats.QuantileInterval(runs, 0.5, 0.95)
	fmt.Printf("median %g µs [%g, %g]\n", stats.Median(runs), lo, hi)
	fmt.Println("values needed for p99:", stats.MinSamples(0.99, 0.95))
	// Output:
	// median 42.5 µs [39, 47]
	// values needed for p99: 368
}
