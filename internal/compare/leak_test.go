package compare

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestLeaksByBlock checks that the block is the replicate, not its trials: none in n blocks bounds the probability by
// 1 - 0.05^(1/n), however many trials each block has, and only valid runs of the last attempts count.
func TestLeaksByBlock(t *testing.T) {
	run := func(target string, block, attempt int, trials, share float64) result.Run {
		return result.Run{Case: "dynamics/policy-first", Target: target, Block: block, Attempt: attempt,
			Values: []result.Value{
				{Metric: metric.Leaked, Unit: unit.Ratio, Number: share},
				{Metric: metric.Trials, Unit: unit.Count, Number: trials},
			}}
	}
	e := result.Experiment{Cases: []result.Case{{Name: "dynamics/policy-first"}, {Name: "dynamics/rollout"}},
		Targets: []result.Target{{Name: "tight"}, {Name: "loose"}}}
	failed := run("tight", 11, 1, 10, 1)
	failed.Invalid = []result.Warning{{}}
	runs := []result.Run{run("tight", 10, 1, 2, 0.5), failed}
	for b := 1; b <= 10; b++ {
		share := 0.0
		if b <= 2 {
			share = 0.5 // one of two trials
		}
		runs = append(runs, run("tight", b, 2, 2, 0), run("loose", b, 2, 2, share))
	}
	got := newRunTable(e, runs).leaks()
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	tight, loose := got[0], got[1]
	if tight.Trials != 20 || tight.Blocks != 10 || tight.Leaked+tight.LeakedBlocks != 0 ||
		tight.Lo != 0 || tight.Hi < 0.2588 || tight.Hi > 0.2590 { // 1 - 0.05^(1/10); by trials it would be 0.139
		t.Errorf("%+v", tight)
	}
	if loose.Trials != 20 || loose.Leaked != 2 || loose.Blocks != 10 || loose.LeakedBlocks != 2 ||
		math.Abs(loose.Lo-0.0252) > 1e-4 || math.Abs(loose.Hi-0.556) > 1e-3 {
		t.Errorf("%+v", loose)
	}
}
