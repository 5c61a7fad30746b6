package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A scatter describes simulated runs of 10 s on a and b, each with a series of that many steps. Between and jitter are
// the standard deviations between runs and between the steps of a run, as fractions.
type scatter struct {
	blocks, steps   int
	between, jitter float64
}

func (s scatter) runs(seed uint64) []result.Run {
	random := rand.New(rand.NewPCG(seed, 5))
	var runs []result.Run
	for block := 1; block <= s.blocks; block++ {
		for _, name := range []string{"a", "b"} {
			level := 1e9 * (1 + s.between*random.NormFloat64())
			values, sum := make([]float64, s.steps), 0.0
			for i := range values {
				values[i] = level * (1 + s.jitter*random.NormFloat64())
				sum += values[i]
			}
			runs = append(runs, result.Run{
				Schema: result.RunSchema, ID: fmt.Sprint(name, block), Case: "pod-pod/other/tcp-stream", Target: name,
				Block: block, Attempt: 1, Window: 10, Tool: "native",
				Values: []result.Value{{Metric: "throughput", Unit: unit.BitPerSecond, Better: metric.Higher,
					Number: sum / float64(s.steps)}},
				Series: []result.Series{{Name: "throughput", Unit: unit.BitPerSecond, Step: 10 / float64(s.steps),
					Values: values}},
			})
		}
	}
	return runs
}

// share returns the share of the variance of pairs that arises within runs.
func (s scatter) share() float64 {
	within := s.jitter * s.jitter / float64(s.steps)
	return within / (within + s.between*s.between)
}

func streams() result.Experiment {
	e := planned()
	e.Targets = e.Targets[:2]
	e.Cases = []result.Case{{Name: "pod-pod/other/tcp-stream", Role: result.Primary, Metric: "throughput"}}
	return e
}

func longerRunsOf(t *testing.T, runs []result.Run) []plan.LongerRuns {
	t.Helper()
	return longerRunsIn(t, streams(), runs)
}

func longerRunsIn(t *testing.T, e result.Experiment, runs []result.Run) []plan.LongerRuns {
	t.Helper()
	all, err := plan.ForecastLongerRuns(e, from(e, runs))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLongerRuns checks, in experiments with known variances within and between runs, that the interval covers the true
// share as often as its confidence promises, and that the advice is right.
func TestLongerRuns(t *testing.T) {
	t.Parallel()
	const experiments = 200
	for _, c := range []struct {
		scatter
		right, wrong plan.Advice
	}{
		{scatter{11, 100, 0.02, 0.05}, plan.AdviseMoreBlocks, plan.AdviseLongerRuns},  // 6 % of the variance
		{scatter{11, 100, 0.001, 0.05}, plan.AdviseLongerRuns, plan.AdviseMoreBlocks}, // 96 %
		{scatter{11, 10, 0.01, 0.01826}, plan.NoAdvice, -1},                           // a quarter
	} {
		advice, outside := map[plan.Advice]int{}, 0
		for n := range experiments {
			all := longerRunsOf(t, c.runs(uint64(n)))
			if len(all) != 1 || all[0].CI == nil || all[0].Lack != "" {
				t.Fatalf("longer runs %+v", all)
			}
			w := all[0]
			advice[w.Advice()]++
			if truth := c.share(); w.CI.Lo > truth || w.CI.Hi < truth {
				outside++
			}
			if share := float64(w.Share); w.Seconds != 10 ||
				!near(w.SpreadLonger, float64(w.Spread)*math.Sqrt(1-share*2/3)) {
				t.Errorf("%+v", w)
			}
		}
		t.Logf("share %.2f: %d of %d outside, advice %v", c.share(), outside, experiments, advice)
		if outside > 20 { // of 10 expected
			t.Errorf("share %.2f: %d of %d intervals do not have it", c.share(), outside, experiments)
		}
		if advice[c.right] < experiments*8/10 || advice[c.wrong] > 0 {
			t.Errorf("share %.2f: advice %v", c.share(), advice)
		}
	}
}

// TestLongerRunsWords checks that the plan states for each primary metric with a series what longer runs would change,
// or why that is not known.
func TestLongerRunsWords(t *testing.T) {
	t.Parallel()
	few, drifting := scatter{11, 3, 0.02, 0.05}.runs(1), scatter{11, 100, 0.001, 0.01}.runs(1)
	for _, r := range drifting {
		for i := range r.Series[0].Values {
			r.Series[0].Values[i] *= 1 + 0.2*math.Sin(float64(i)/100*math.Pi)
		}
	}
	bare := scatter{11, 100, 0.02, 0.05}.runs(1)
	for i := range bare {
		bare[i].Series[0].Name = "rate"
	}
	invalid := scatter{11, 100, 0.02, 0.05}.runs(1)
	for i := range invalid {
		invalid[i].Invalid = []result.Warning{{Code: result.NothingDone, Text: "nothing"}}
	}
	flat := scatter{11, 100, 0.02, 0.05}.runs(1)
	for _, r := range flat {
		if r.Target == "a" {
			clear(r.Series[0].Values)
		}
	}
	for name, test := range map[string]struct {
		runs []result.Run
		want string // empty: no statement
	}{
		"blocks":   {scatter{11, 100, 0.04, 0.05}.runs(1), "is within runs: more blocks help, longer runs hardly"},
		"longer":   {scatter{11, 100, 0.001, 0.05}.runs(1), "is within runs: longer runs help"},
		"open":     {scatter{4, 10, 0.01, 0.0316}.runs(1), "too few blocks to tell whether longer runs help"},
		"short":    {few, "the series of its runs have 3 steps, and it takes 10"},
		"one":      {scatter{1, 100, 0.02, 0.05}.runs(1), "it takes at least two blocks with valid runs of both targets"},
		"drifting": {drifting, "within runs it varies so slowly that a window does not average it"},
		"flat":     {flat, "the series of all runs of a target are 0"},
		"bare":     {bare, ""}, "invalid": {invalid, ""},
	} {
		e := streams()
		text := printed(t, predicted(t, e, from(e, test.runs)))
		const heading = "How much pairs of runs differ, by the length of runs:\n  - pod-pod/other/tcp-stream, throughput: "
		if strings.Contains(text, "(a quieter machine)") != (name == "blocks") {
			t.Errorf("%s: the remedies are not those of the advice in\n%s", name, text)
		}
		_, rest, said := strings.Cut(text, heading)
		if rest = strings.Join(strings.Fields(rest), " "); said != (test.want != "") || !strings.Contains(rest, test.want) {
			t.Errorf("%s: no %q in\n%s", name, test.want, text)
		}
	}
}

// TestLongerRunsOfClosedLoops checks the forecast for the mean latency in a closed loop: the latency has no series, but
// it is the inverse of the rate, which has one.
func TestLongerRunsOfClosedLoops(t *testing.T) {
	t.Parallel()
	e := streams()
	e.Cases[0].Metric = metric.Mean
	for _, loop := range []string{"closed", "open"} {
		runs := scatter{11, 100, 0.02, 0.05}.runs(1)
		for i, r := range runs {
			runs[i].Facts = []result.Fact{{Name: "loop", Value: loop}}
			runs[i].Series[0].Name = metric.Rate
			runs[i].Values = []result.Value{{Metric: metric.Mean, Unit: unit.Second, Better: metric.Lower,
				Number: 1300 / r.Values[0].Number}}
		}
		all := longerRunsIn(t, e, runs)
		if (loop == "closed") != (len(all) == 1) || len(all) == 1 && all[0].Advice() != plan.AdviseMoreBlocks {
			t.Errorf("%s: %+v", loop, all)
		}
	}
}

// TestLongerRunsOfSeveralTargets checks that a case has one forecast for all its comparisons, by the fewest pairs.
func TestLongerRunsOfSeveralTargets(t *testing.T) {
	t.Parallel()
	e := streams()
	e.Targets = planned().Targets
	runs := scatter{11, 100, 0.02, 0.05}.runs(1)
	two := longerRunsOf(t, runs)
	third := scatter{11, 100, 0.02, 0.05}
	for _, r := range third.runs(2) {
		if r.Target = "c"; r.ID[0] == 'b' && r.Block <= 4 {
			runs = append(runs, r)
		}
	}
	all := longerRunsIn(t, e, runs)
	if len(all) != 1 || all[0].CI == nil {
		t.Fatalf("%+v", all)
	}
	width := func(i *compare.Interval) float64 { return i.Hi / i.Lo }
	if width(all[0].CI) <= width(two[0].CI) {
		t.Errorf("of 4 pairs %+v, of 11 %+v", all[0].CI, two[0].CI)
	}
}
