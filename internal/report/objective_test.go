package report

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

func TestObjectivesGolden(t *testing.T) {
	const words, source = "99th percentile per cluster-day <= 5s", "https://example.org/slos"
	in := small()
	in.Comparison.Objectives = []compare.Objective{
		{Case: "api/pod-startup", Target: "a", Limit: 5, Blocks: 300, Samples: 4000, Outcome: compare.Met,
			Words: words, Source: source},
		{Case: "api/pod-startup", Target: "b", Limit: 5, Blocks: 7, Violated: 1, Samples: 40, Above: 1,
			Outcome: compare.TooFew, Words: words, Source: source},
	}
	checkSection(t, in, objectives)
}
