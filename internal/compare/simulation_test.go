package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A simulatedExperiment describes the distribution of an experiment's runs. Sizes are of logarithms.
type simulatedExperiment struct {
	name      string
	targets   int       // with the baseline
	noise     []float64 // of a run, of each primary case
	tails     func(r *rand.Rand) float64
	drift     float64 // standard deviation of the drift over time, which is correlated from run to run
	trend     float64 // from the first block to the last
	effect    float64 // of each target against the baseline
	delta     float64 // 0: so small that nothing is equivalent
	gates     []string
	budgets   bool // an experiment ends after a random number of runs
	allPairs  bool
	exploring bool // with an exploratory case
	// invalidRun reports whether a run is invalid and not repeated, so that looks have fewer pairs.
	invalidRun func(target int, noise float64, r *rand.Rand) bool
}

// loseShare invalidates a share of the runs of the targets from index from on.
func loseShare(share float64, from int) func(int, float64, *rand.Rand) bool {
	return func(target int, _ float64, r *rand.Rand) bool { return target >= from && r.Float64() < share }
}

// loseSlow invalidates the slow runs of all targets.
func loseSlow(_ int, noise float64, _ *rand.Rand) bool { return noise > 1 }

// driftCorrelation is the share of the drift that is left at the next run.
const driftCorrelation = 0.9

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// student draws from the t distribution.
func student(freedom int) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		squares := 0.0
		for range freedom {
			v := r.NormFloat64()
			squares += v * v
		}
		return r.NormFloat64() / math.Sqrt(squares/float64(freedom))
	}
}

func (n simulatedExperiment) experiment() result.Experiment {
	e := result.Experiment{ID: n.name, Baseline: "t0", Gates: n.gates, Design: result.Design{
		Blocks: 30, Looks: []int{8, 11, 15, 21, 30}, Alpha: 0.05, Delta: max(n.delta, 1e-9), AllPairs: n.allPairs,
	}}
	for i := range n.targets {
		e.Targets = append(e.Targets, result.Target{Name: fmt.Sprint("t", i)})
	}
	for i := range n.noise {
		e.Cases = append(e.Cases, result.Case{Name: fmt.Sprint("case", i), Role: result.Primary, Metric: "latency"})
	}
	if n.exploring {
		e.Cases = append(e.Cases, result.Case{Name: "other", Role: result.Exploratory, Metric: "latency"})
	}
	return e
}

// An experimentInProgress holds the state of a simulated experiment.
type experimentInProgress struct {
	simulatedExperiment
	e      result.Experiment
	random *rand.Rand
	drift  float64 // the drift now
	runs   []result.Run
}

// block measures the remaining cases in random order, each on all targets in random order. It ends when the number of
// runs reaches the budget.
func (m *experimentInProgress) block(block, budget int, names []string) (ended bool) {
	for _, c := range m.random.Perm(len(m.e.Cases)) {
		if !slices.Contains(names, m.e.Cases[c].Name) {
			continue
		}
		if len(m.runs)+m.targets > budget {
			return true
		}
		noise := m.noise[c%len(m.noise)]
		for slot, t := range m.random.Perm(m.targets) {
			m.drift = driftCorrelation*m.drift + m.drift*math.Sqrt(1-driftCorrelation*driftCorrelation)*m.random.NormFloat64()
			tail := m.tails(m.random)
			value := m.drift + m.trend*float64(block)/30 + noise*tail
			if t > 0 {
				value += m.effect
			}
			r := result.Run{
				ID: fmt.Sprint(len(m.runs)), Case: m.e.Cases[c].Name,
				Target: m.e.Targets[t].Name, Block: block, Attempt: 1, Slot: slot + 1,
				Values: []result.Value{{Metric: "latency", Unit: "s", Better: metric.Lower, Number: math.Exp(value)}},
			}
			if m.invalidRun != nil && m.invalidRun(t, tail, m.random) {
				r.Invalid = []result.Warning{{Code: "lost", Text: "lost"}}
			}
			m.runs = append(m.runs, r)
		}
	}
	return false
}

// carryOut simulates a whole experiment as the runner does it, with the design's decisions after each block, and
// compares it.
func (n simulatedExperiment) carryOut(p analysisPlan, e result.Experiment, random *rand.Rand) Comparison {
	m := experimentInProgress{simulatedExperiment: n, e: e, random: random}
	budget := math.MaxInt
	if n.budgets {
		budget = random.IntN(30 * len(e.Cases) * n.targets)
	}
	names := p.remainingAfter(e, 0, nil)
	for done := 0; ; done++ {
		if slices.Contains(e.Design.Looks, done) { // it decides nothing between looks (TestStoppingIsAReplay)
			names = p.remainingAfter(e, done, m.runs)
		}
		if len(names) == 0 || m.block(done+1, budget, names) {
			return p.compare(result.Results{Experiment: e, Runs: m.runs})
		}
	}
}

func defaultLooks(t *testing.T) stats.Design {
	t.Helper()
	look, err := lookDesign(simulatedExperiment{}.experiment().Design)
	if err != nil {
		t.Fatal(err)
	}
	return look
}

// A tally counts experiments by outcome.
type tally struct {
	of                           int
	different, equivalent, gated int // experiments with at least one such primary comparison, or decided gate
	blocks                       int // of the first case, of all experiments together
}

// repeat simulates experiments with a design that is already computed.
func (n simulatedExperiment) repeat(t *testing.T, look stats.Design, times int) tally {
	t.Helper()
	e := n.experiment()
	p, err := newAnalysisPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	p.look = look
	sum := tally{of: times}
	var seed [32]byte
	copy(seed[:], n.name)
	random := rand.New(rand.NewChaCha8(seed))
	for range times {
		c := n.carryOut(p, e, random)
		has := func(v Verdict) int {
			if slices.ContainsFunc(c.Primary(), func(r Row) bool { return r.Verdict == v }) {
				return 1
			}
			return 0
		}
		sum.different += has(Different)
		sum.equivalent += has(Equivalent)
		if slices.ContainsFunc(c.Gates, func(g Gated) bool { return g.Outcome != Open }) {
			sum.gated++
		}
		sum.blocks += c.Comparisons[0].Blocks
	}
	return sum
}

// atMost returns the largest acceptable number of errors if the true rate is 0.05: three standard errors above it.
func (s tally) atMost() int {
	return int(float64(s.of) * (0.05 + 3*math.Sqrt(0.05*0.95/float64(s.of))))
}

// TestFamilyWiseError checks in simulations of the whole procedure with identical targets that at most alpha of the
// experiments find any difference: with several primary cases and targets, looks, cases that stop early, and budgets
// that end.
func TestFamilyWiseError(t *testing.T) {
	look := defaultLooks(t)
	for _, n := range []simulatedExperiment{
		{name: "drift", targets: 3, noise: []float64{0.01, 0.02}, tails: normal, drift: 0.03, delta: 0.02, exploring: true},
		{name: "nothing stops it", targets: 2, noise: []float64{0.02}, tails: normal, drift: 0.02},
		{name: "tails of t2, a noisy case", targets: 2, noise: []float64{0.01, 0.1},
			tails: student(2), drift: 0.03, trend: 0.1, delta: 0.02},
		{name: "tails of t3, budgets", targets: 2, noise: []float64{0.02, 0.02},
			tails: student(3), drift: 0.05, delta: 0.01, budgets: true},
		{name: "all pairs, a trend", targets: 3, noise: []float64{0.02},
			tails: normal, trend: 0.3, delta: 0.01, allPairs: true},
		{name: "lost runs", targets: 2, noise: []float64{0.02}, tails: normal, drift: 0.02, invalidRun: loseShare(0.1, 0)},
		{name: "lost runs of one target", targets: 2, noise: []float64{0.02},
			tails: normal, drift: 0.02, delta: 0.01, invalidRun: loseShare(0.3, 1)},
		{name: "slow runs are lost", targets: 2, noise: []float64{0.02},
			tails: student(3), drift: 0.02, invalidRun: loseSlow},
	} {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			got := n.repeat(t, look, simulated)
			t.Logf("%+v", got)
			if got.different > got.atMost() {
				t.Errorf("%d of %d experiments find a difference that is not there; more than %d are too many",
					got.different, got.of, got.atMost())
			}
		})
	}
}

// TestFalseEquivalence checks simulated targets that differ by exactly delta: calling them equivalent, or a gate at
// that limit passed or failed, is an error, and may happen in at most alpha of the experiments.
func TestFalseEquivalence(t *testing.T) {
	look := defaultLooks(t)
	for _, n := range []simulatedExperiment{
		{name: "quiet", targets: 3, noise: []float64{0.004, 0.007}, tails: normal,
			drift: 0.02, delta: 0.02, effect: math.Log1p(0.02), gates: []string{"* <= +2%"}},
		{name: "noisy, budgets", targets: 2, noise: []float64{0.01, 0.03}, tails: student(3),
			drift: 0.02, delta: 0.02, effect: math.Log1p(-0.02), gates: []string{"* >= -2%"}, budgets: true},
		{name: "lost runs of one target", targets: 2, noise: []float64{0.007}, tails: normal,
			delta: 0.02, effect: math.Log1p(0.02), gates: []string{"* <= +2%"}, invalidRun: loseShare(0.2, 1)},
	} {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			got := n.repeat(t, look, simulated)
			t.Logf("%+v", got)
			if got.equivalent > got.atMost() {
				t.Errorf("%d of %d experiments call a difference of delta equivalent; more than %d are too many",
					got.equivalent, got.of, got.atMost())
			}
			if got.gated > got.atMost() {
				t.Errorf("%d of %d experiments decide a gate at its limit; more than %d are too many",
					got.gated, got.of, got.atMost())
			}
		})
	}
}

// TestPower checks how often, and after how many blocks, differences of one standard deviation of a pair, and of a
// half, are detected. The expected rates and mean numbers of blocks are those of simulations of the statistic alone,
// with Pocock-like spending at each look: 1.0 with 12.6 blocks, 0.63 with 23.5.
func TestPower(t *testing.T) {
	look := defaultLooks(t)
	for _, c := range []struct {
		effect     float64
		low, high  float64 // rate
		few, many  float64 // mean number of blocks
		experiment string
	}{
		{1, 0.97, 1, 11, 14.2, "one sigma"},
		{0.5, 0.54, 0.72, 21.5, 25.5, "half a sigma"},
	} {
		t.Run(c.experiment, func(t *testing.T) {
			t.Parallel()
			n := simulatedExperiment{name: c.experiment, targets: 2, noise: []float64{0.02 / math.Sqrt2},
				tails: normal, effect: 0.02 * c.effect}
			got := n.repeat(t, look, 300)
			rate, blocks := float64(got.different)/float64(got.of), float64(got.blocks)/float64(got.of)
			t.Logf("%.3f with %.1f blocks", rate, blocks)
			if rate < c.low || rate > c.high || blocks < c.few || blocks > c.many {
				t.Errorf("found in %.3f with %.1f blocks in the mean, wanted %.2f to %.2f with %.1f to %.1f",
					rate, blocks, c.low, c.high, c.few, c.many)
			}
		})
	}
}
