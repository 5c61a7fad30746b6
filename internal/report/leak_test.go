package report

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

func TestLeaksGolden(t *testing.T) {
	in := small()
	in.Comparison.Leaks = []compare.Leak{
		{Case: "dynamics/policy-first", Target: "a", Trials: 190, Blocks: 10, Hi: 0.259},
		{Case: "dynamics/policy-first", Target: "b", Trials: 190, Leaked: 19, Blocks: 10, LeakedBlocks: 2, Lo: 0.025,
			Hi: 0.556},
	}
	checkSection(t, in, leaks)
}
