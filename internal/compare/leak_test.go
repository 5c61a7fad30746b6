package compare

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestLeaks checks that trials of all valid runs of the last attempts are one sample: none in n bounds the probability
// by 1 - 0.05^(1/n).
func TestLeaks(t *testing.T) {
	run := func(target string, block, attempt int, trials, share float64) result.Run {
		return result.Run{Case: "dynamics/policy-first", Target: target, Block: block, Attempt: attempt,
			Values: []result.Value{
				{Metric: metric.Leaked, Unit: unit.Ratio, Number: share},
				{Metric: metric.Trials, Unit: unit.Count, Number: trials},
			}}
	}
	e := result.Experiment{Cases: []result.Case{{Name: "dynamics/policy-first"}, {Name: "dynamics/rollout"}},
		Targets: []result.Target{{Name: "tight"}, {Name: "loose"}}}
	failed := run("tight", 3, 1, 10, 1)
	failed.Invalid = []result.Warning{{}}
	got := newRunTable(e, []result.Run{run("tight", 1, 1, 9, 0), run("tight", 2, 1, 10, 0.5), run("tight", 2, 2, 10, 0),
		failed, run("loose", 1, 1, 10, 0.3), run("loose", 2, 2, 10, 0.1)}).leaks()
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	tight, loose := got[0], got[1]
	if tight.Trials != 19 || tight.Leaked != 0 || tight.Hi < 0.1458 || tight.Hi > 0.1460 || // 1 - 0.05^(1/19)
		!strings.Contains(tight.Sentence, "none in 19 trials: below 14.6 %") {
		t.Errorf("%+v", tight)
	}
	if loose.Trials != 20 || loose.Leaked != 4 || loose.Lo < 0.057 || loose.Lo > 0.058 || loose.Hi < 0.436 ||
		loose.Hi > 0.437 || !strings.Contains(loose.Sentence, "4 of 20 trials: 20 % [5.73, 43.7]") {
		t.Errorf("%+v", loose)
	}
}
