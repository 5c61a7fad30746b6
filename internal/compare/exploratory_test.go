package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// exploratoryExperiment returns an experiment on three targets with exploratory cases, each with the given effect on
// the third target, and with a second metric without effect.
func exploratoryExperiment(d result.Design, effects []float64) result.Experiment {
	e := result.Experiment{ID: "exploring", Baseline: "a", Design: d,
		Targets: []result.Target{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for i := range effects {
		e.Cases = append(e.Cases, result.Case{Name: fmt.Sprint("case", i), Role: result.Exploratory, Metric: "latency"})
	}
	return e
}

// blockOf returns the runs of a block of the named cases.
func blockOf(e result.Experiment, block int, names []string, effects []float64, noise float64, random *rand.Rand,
) []result.Run {
	var runs []result.Run
	for i, rc := range e.Cases {
		if !slices.Contains(names, rc.Name) {
			continue
		}
		for slot, x := range random.Perm(len(e.Targets)) {
			value := noise * random.NormFloat64()
			if x == len(e.Targets)-1 {
				value += effects[i]
			}
			r := result.Run{Case: rc.Name, Target: e.Targets[x].Name, Block: block, Attempt: 1, Slot: slot + 1}
			r.ID = fmt.Sprint(r.Case, r.Target, r.Block)
			for name, v := range map[string]float64{"latency": value, "jitter": random.NormFloat64()} {
				r.Values = append(r.Values, result.Value{Metric: name, Unit: "s", Better: metric.Lower, Number: math.Exp(v)})
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// TestStopsAsReported checks that a decision at the time of a stop is also a decision in the report. It simulates
// families of cases with clear, small and no effects that stop at different looks.
func TestStopsAsReported(t *testing.T) {
	look := defaultLooks(t)
	effects := []float64{0.05, 0.04, 0.03, 0.02, 0.015, 0.01, 0, 0, 0, 0}
	e := exploratoryExperiment(simulatedExperiment{delta: 0.02}.experiment().Design, effects)
	p, err := newAnalysisPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	p.look = look
	random := rand.New(rand.NewPCG(15, 1))
	stopped, undecided := 0, 0
	for range 60 {
		var runs []result.Run
		ended := map[string]int{}
		names := p.remainingAfter(e, 0, nil)
		for done := 0; len(names) > 0; {
			done++
			runs = append(runs, blockOf(e, done, names, effects, 0.01, random)...)
			if !slices.Contains(e.Design.Looks, done) {
				continue
			}
			next := p.remainingAfter(e, done, runs)
			for _, name := range names {
				if !slices.Contains(next, name) && done < e.Design.Blocks {
					ended[name] = done
				}
			}
			names = next
		}
		for _, r := range p.compare(result.Results{Experiment: e, Runs: runs}).Comparisons {
			if r.Metric != "latency" || ended[r.Case] == 0 {
				continue
			}
			stopped++
			if r.Verdict == Undecided {
				undecided++
			}
		}
	}
	t.Logf("%d comparisons stopped before the last look, of which %d are undecided in the report", stopped, undecided)
	if stopped < 500 || undecided > 0 {
		t.Errorf("of %d comparisons that stopped as decided, %d are undecided in the report", stopped, undecided)
	}
}

// TestLettersOfManyCases checks ten simulated exploratory cases on three identical targets: different letters, a
// conclusion that orders targets, or a row that is different may occur in at most 5 % of the experiments.
func TestLettersOfManyCases(t *testing.T) {
	const experiments = 150
	effects := make([]float64, 10)
	e := exploratoryExperiment(result.Design{Blocks: 11, Alpha: 0.05, Delta: 1e-9}, effects)
	var names []string
	for _, rc := range e.Cases {
		names = append(names, rc.Name)
	}
	p, err := newAnalysisPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(15, 2))
	letters, rows := 0, 0
	for range experiments {
		var runs []result.Run
		for block := range e.Design.Blocks {
			runs = append(runs, blockOf(e, block+1, names, effects, 0.01, random)...)
		}
		c := p.compare(result.Results{Experiment: e, Runs: runs})
		if slices.ContainsFunc(c.Groups, func(g Group) bool {
			return slices.ContainsFunc(g.Members, func(m Member) bool { return m.Letters != "a" })
		}) {
			letters++
		}
		if slices.ContainsFunc(c.Comparisons, func(r Row) bool { return r.Metric == "latency" && r.Verdict == Different }) {
			rows++
		}
	}
	t.Logf("letters differ in %d, rows in %d of %d", letters, rows, experiments)
	if most := int(experiments * (0.05 + 3*math.Sqrt(0.05*0.95/experiments))); letters > most || rows > letters {
		t.Errorf("letters differ in %d and rows in %d of %d; more than %d are too many", letters, rows, experiments, most)
	}
}
