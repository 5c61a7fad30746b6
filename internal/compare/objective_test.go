package compare

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestAttainment(t *testing.T) {
	for _, test := range []struct {
		samples, above int
		want           Attainment
	}{
		{298, 0, TooFew}, {299, 0, Met}, {1, 1, Met}, {10, 10, NotMet}, {1000, 10, TooFew},
		{1000, 4, Met}, {1000, 17, NotMet}, {100_000, 900, Met}, {100_000, 1100, NotMet},
	} {
		if test.samples == 1 {
			test.want = NotMet // one of one has a chance of one in a hundred
		}
		if got := attainment(test.samples, test.above); got != test.want {
			t.Errorf("%d of %d: %s, want %s", test.above, test.samples, got, test.want)
		}
	}
}

// Runs are added up by case and target; those that do not count, and those without an objective, are left out.
func TestObjectives(t *testing.T) {
	run := func(target string, samples, above float64, invalid ...result.Warning) result.Run {
		return result.Run{
			Case: "api/configmap/create", Target: target, Invalid: invalid,
			Values: []result.Value{
				{Metric: metric.SLOLimit, Unit: unit.Second, Number: 1},
				{Metric: metric.SLOSamples, Unit: unit.Count, Number: samples},
				{Metric: metric.SLOAbove, Unit: unit.Count, Number: above},
			},
			Facts: []result.Fact{{Name: ObjectiveFact, Value: "the words"}, {Name: ObjectiveSource, Value: "where"}},
		}
	}
	e := result.Experiment{
		Cases:   []result.Case{{Name: "api/configmap/create"}, {Name: "api/floor"}},
		Targets: []result.Target{{Name: "a"}, {Name: "b"}},
	}
	got := objectives(e, []result.Run{run("a", 200, 0), run("a", 200, 0), run("b", 200, 100), run("b", 200,
		200, result.Warning{Code: result.GeneratorLate, Text: "it was late"}), {Case: "api/floor", Target: "a"}})
	if len(got) != 2 || got[0].Samples != 400 || got[0].Outcome != Met ||
		got[1].Samples != 200 || got[1].Above != 100 || got[1].Outcome != NotMet {
		t.Fatalf("%+v", got)
	}
	if got[0].Words != "the words" || got[0].Source != "where" ||
		!strings.Contains(got[1].Sentence, "100 of 200 took longer than 1.00 s") {
		t.Errorf("%+v", got)
	}
}
