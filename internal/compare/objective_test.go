package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestAttainment(t *testing.T) {
	for _, test := range []struct {
		shares []float64
		want   Attainment
	}{
		{nil, TooFew}, {make([]float64, 30), TooFew}, {make([]float64, 298), TooFew}, {make([]float64, 299), Met},
		{[]float64{1}, NotMet}, {slices.Repeat([]float64{0.01}, 1000), TooFew}, {slices.Repeat([]float64{0.03}, 8), NotMet},
		{slices.Repeat([]float64{0.005}, 700), Met}, {slices.Repeat([]float64{0.015}, 8), TooFew},
	} {
		if got := attainment(test.shares); got != test.want {
			t.Errorf("%d shares: %s, want %s", len(test.shares), got, test.want)
		}
	}
}

const configmaps = "api/configmap/create"

// objectiveRun returns a run of a case with an objective.
func objectiveRun(block, attempt int, samples, above float64, invalid ...result.Code) result.Run {
	r := result.Run{
		Case: configmaps, Target: "a", Block: block, Attempt: attempt,
		Values: []result.Value{
			{Metric: metric.SLOLimit, Unit: unit.Second, Number: 1},
			{Metric: metric.SLOSamples, Unit: unit.Count, Number: samples},
			{Metric: metric.SLOAbove, Unit: unit.Count, Number: above},
		},
		Facts: []result.Fact{{Name: ObjectiveFact, Value: "the words"}, {Name: ObjectiveSource, Value: "where"}},
	}
	for _, code := range invalid {
		r.Invalid = append(r.Invalid, result.Warning{Code: code, Text: "a reason"})
	}
	return r
}

// objectiveOf returns the objective of runs of one case on one target.
func objectiveOf(t *testing.T, runs ...result.Run) Objective {
	t.Helper()
	got := newRunTable(result.Experiment{
		Cases:   []result.Case{{Name: configmaps}, {Name: "api/floor"}},
		Targets: []result.Target{{Name: "a"}, {Name: "b"}},
	}, runs).objectives()
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	return got[0]
}

// TestObjectives checks that the last attempt of each block counts, except that a repetition does not undo a failure of
// the server. Invalid runs, and those without an objective, are left out.
func TestObjectives(t *testing.T) {
	for name, c := range map[string]struct {
		runs                             []result.Run
		blocks, violated, samples, above int
		outcome                          Attainment
	}{
		"added up": {[]result.Run{objectiveRun(1, 1, 200, 0), objectiveRun(2, 1, 200, 1)}, 2, 0, 400, 1, TooFew},
		"superseded attempts": {[]result.Run{objectiveRun(1, 1, 200, 9), objectiveRun(1, 2, 200, 0)},
			1, 0, 200, 0, TooFew},
		"the generator was late": {[]result.Run{objectiveRun(1, 1, 200, 0),
			objectiveRun(2, 1, 200, 200, result.GeneratorLate)}, 1, 0, 200, 0, TooFew},
		"failures that were measured again": {[]result.Run{objectiveRun(1, 1, 200, 6, result.TooManyFailed),
			objectiveRun(1, 2, 200, 0)}, 1, 1, 200, 6, TooFew},
		"distress that was measured again": {[]result.Run{objectiveRun(1, 1, 40, 0, result.StoppedEarly),
			objectiveRun(1, 2, 200, 0)}, 1, 1, 40, 0, NotMet},
		"half of the requests": {[]result.Run{objectiveRun(1, 1, 200, 100), objectiveRun(2, 1, 200, 100)},
			2, 2, 400, 200, NotMet},
		"no objective": {[]result.Run{objectiveRun(1, 1, 200, 0), {Case: "api/floor", Target: "a", Block: 1, Attempt: 1}},
			1, 0, 200, 0, TooFew},
	} {
		got := objectiveOf(t, c.runs...)
		if got.Blocks != c.blocks || got.Violated != c.violated || got.Samples != c.samples || got.Above != c.above ||
			got.Outcome != c.outcome {
			t.Errorf("%s: %+v", name, got)
		}
		if got.Words != "the words" || got.Source != "where" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestObjectivesOfStalls checks simulated servers whose 99th percentile is exactly the limit, because of stalls that
// take 20 requests each, or of outages: calling the objective met or not met is an error, and may happen in at most 5 %
// of the experiments. A server without slow requests is found to meet it, and a bad one not to.
func TestObjectivesOfStalls(t *testing.T) {
	const experiments, samples = 400, 500
	most := int(experiments * (objectiveAlpha + 3*math.Sqrt(objectiveAlpha*(1-objectiveAlpha)/experiments)))
	stalls := func(share float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 {
			const size = 20
			above := 0.0
			for range samples / size {
				if r.Float64() < share {
					above += size
				}
			}
			return above
		}
	}
	outage := func(r *rand.Rand) float64 {
		if r.Float64() < allowedShare {
			return samples
		}
		return 0
	}
	for _, c := range []struct {
		name              string
		blocks            int
		above             func(r *rand.Rand) float64
		leastMet, mostMet int
		leastNot, mostNot int
	}{
		{"stalls, 30 blocks", 30, stalls(allowedShare), 0, most, 0, most},
		{"stalls, 300 blocks", 300, stalls(allowedShare), 0, most, 0, most},
		{"outages, 300 blocks", 300, outage, 1, most, 0, most},
		{"independent requests, 30 blocks", 30, func(r *rand.Rand) float64 {
			above := 0.0
			for range samples {
				if r.Float64() < allowedShare {
					above++
				}
			}
			return above
		}, 0, most, 0, most},
		{"nothing slow, 300 blocks", 300, stalls(0), experiments, experiments, 0, 0},
		{"many stalls, 15 blocks", 15, stalls(0.05), 0, 0, experiments * 9 / 10, experiments},
	} {
		random := rand.New(rand.NewPCG(20, 1))
		met, not := 0, 0
		for range experiments {
			var runs []result.Run
			for block := range c.blocks {
				runs = append(runs, objectiveRun(block+1, 1, samples, c.above(random)))
			}
			switch objectiveOf(t, runs...).Outcome {
			case Met:
				met++
			case NotMet:
				not++
			}
		}
		t.Logf("%s: %d met and %d not met of %d", c.name, met, not, experiments)
		if met < c.leastMet || met > c.mostMet || not < c.leastNot || not > c.mostNot {
			t.Errorf("%s: %d met and %d not met of %d; want %d to %d and %d to %d", c.name, met, not, experiments,
				c.leastMet, c.mostMet, c.leastNot, c.mostNot)
		}
	}
}
