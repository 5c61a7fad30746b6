package runner_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// sequentially sets the looks and a tool whose values depend on case, target and block alone, so that a repeated block
// gives the same values.
func (b *bench) sequentially(decide runner.Decide, looks ...int) *steady {
	s := &steady{Tool: b.model, effects: map[string]float64{}}
	b.config.Experiment.Design.Looks = looks
	b.config.Experiment.Design.Blocks = looks[len(looks)-1]
	b.config.Decide, b.config.Tool = decide, s
	b.config.Events = func(e runner.Event) {
		b.events = append(b.events, e)
		if e.Kind == runner.RunStarted {
			s.now = e
		}
	}
	return s
}

// A steady tool wraps another one and replaces its values by a reproducible one of the main metric.
type steady struct {
	family.Tool
	now     runner.Event       // RunStarted of the last run
	effects map[string]float64 // on the logarithm, by case and target joined by a blank
}

func (s *steady) Run(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
	m, err := s.Tool.Run(ctx, p, w, t)
	seed := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", s.now.Case, s.now.Target, s.now.Block))
	noise := 0.03 * rand.New(rand.NewChaCha8(seed)).NormFloat64()
	m.Values = slices.DeleteFunc(m.Values, func(v result.Value) bool { return v.Metric != w.Traits().Metric })
	for i := range m.Values {
		m.Values[i].Number = 20e-6 * math.Exp(noise+s.effects[s.now.Case+" "+s.now.Target])
	}
	return m, err
}

// whenClear is a simple stopping rule: a case ends, with its bound, at the first look at which the mean change is more
// than three standard errors from 0.
func whenClear(e result.Experiment, done int, runs []result.Run) []string {
	if done >= e.Design.Blocks {
		return nil
	}
	var going []string
	for _, c := range e.Cases {
		if c.Role == result.Bound {
			continue
		}
		clear := false
		for _, look := range e.Design.Looks {
			clear = clear || look <= done && isClear(c, look, runs)
		}
		if !clear {
			going = append(going, c.Name, c.Bound)
		}
	}
	return going
}

func isClear(c result.Case, look int, runs []result.Run) bool {
	values := map[string]map[int]float64{"a": {}, "b": {}}
	for _, r := range runs {
		v, ok := r.Value(c.Metric)
		if r.Case == c.Name && r.Valid() && r.Block <= look && ok {
			values[r.Target][r.Block] = math.Log(v.Number)
		}
	}
	var sum, squares float64
	n := float64(len(values["a"]))
	for block, v := range values["a"] {
		d := values["b"][block] - v
		sum, squares = sum+d, squares+d*d
	}
	return math.Abs(sum/n) > 3*math.Sqrt((squares/n-sum*sum/n/n)/n)
}

const (
	rr  = "pod-pod/other/tcp-rr"
	crr = "pod-pod/other/tcp-crr"
)

// blocksOf counts the blocks of each case that have a valid run.
func blocksOf(runs []result.Run) map[string]int {
	seen := map[string]map[int]bool{}
	for _, r := range runs {
		if seen[r.Case] == nil {
			seen[r.Case] = map[int]bool{}
		}
		if r.Valid() {
			seen[r.Case][r.Block] = true
		}
	}
	counts := map[string]int{}
	for name, blocks := range seen {
		counts[name] = len(blocks)
	}
	return counts
}

// decided lists the events of cases that ended early.
func decided(events []runner.Event) []string {
	var list []string
	for _, e := range events {
		if e.Kind == runner.CaseDecided {
			list = append(list, fmt.Sprintf("%s at %d", e.Case, e.Block))
		}
	}
	slices.Sort(list)
	return list
}

// TestCasesStopEarly checks that a decided case ends with its bound, that the others continue, and that events report
// it.
func TestCasesStopEarly(t *testing.T) {
	b := newBench(t, "ab", 1, rr, crr)
	tool := b.sequentially(whenClear, 4, 8, 12)
	tool.effects[crr+" b"] = 1
	s := b.run(t.Context())
	counts := blocksOf(b.sink.runs)
	if counts[crr] != 4 || counts["node-node/tcp-crr"] != 4 || counts[rr] != 12 ||
		counts["node-node/tcp-rr"] != 12 || s.Stopped != runner.StopComplete {
		t.Errorf("blocks %v, stopped %s", counts, s.Stopped)
	}
	if want := []string{crr + " at 4"}; !slices.Equal(decided(b.events), want) {
		t.Errorf("decided %v, wanted %v", decided(b.events), want)
	}
	first, last := b.events[0], b.events[len(b.events)-1]
	if first.Runs != 12*6 || last.Runs != 4*3+12*3 || last.Done != last.Runs || !first.AtMost {
		t.Errorf("first %+v, last %+v", first, last)
	}
	for i, e := range b.events[1:] {
		if e.Runs > b.events[i].Runs {
			t.Errorf("event %d wants %d runs, the one before %d", i+1, e.Runs, b.events[i].Runs)
		}
	}
}

// TestAllDecided checks that when all cases are decided, the experiment ends before its last block.
func TestAllDecided(t *testing.T) {
	b := newBench(t, "ab", 1, rr, crr)
	tool := b.sequentially(whenClear, 4, 8, 12)
	tool.effects[rr+" b"], tool.effects[crr+" b"] = -1, 1
	s := b.run(t.Context())
	if counts := blocksOf(b.sink.runs); counts[rr] != 4 || counts[crr] != 4 || s.Stopped != runner.StopDecided {
		t.Errorf("blocks %v, stopped %s", counts, s.Stopped)
	}
	if last := b.events[len(b.events)-1]; last.Reason != "decided" || len(decided(b.events)) != 2 {
		t.Errorf("events %v, last %+v", decided(b.events), last)
	}
}

// TestDecideSeesTheDoneBlocksOnly checks that the stopping rule gets the runs of the done blocks only, even if the
// directory has later ones, and a case that it ended does not continue later.
func TestDecideSeesTheDoneBlocksOnly(t *testing.T) {
	whole := newBench(t, "ab", 5, rr)
	whole.run(t.Context())
	b := newBench(t, "ab", 5, rr, crr)
	b.config.Earlier = whole.sink.runs
	b.config.Decide = func(e result.Experiment, done int, runs []result.Run) []string {
		for _, r := range runs {
			if r.Block > done {
				t.Errorf("after %d blocks it is shown one of block %d", done, r.Block)
			}
		}
		if done == 2 {
			return []string{rr}
		}
		return runner.FixedBlocks(e, done, runs)
	}
	b.run(t.Context())
	if counts := blocksOf(b.sink.runs); counts[crr] != 2 || counts[rr] != 0 {
		t.Errorf("measured in addition: %v", counts)
	}
}

// measured lists the runs that a comparison would use: the complete blocks, by case.
func measured(runs []result.Run, e result.Experiment) []string {
	var list []string
	for _, c := range e.Cases {
		for block := 1; block <= e.Design.Blocks; block++ {
			attempts := map[int]string{}
			values := map[int]float64{}
			for _, r := range runs {
				if v, ok := r.Value(c.Metric); ok && r.Case == c.Name && r.Block == block && r.Valid() {
					attempts[r.Attempt] += r.Target
					values[r.Attempt] += v.Number
				}
			}
			for attempt, names := range attempts {
				if sorted(names) == "ab" || c.Role == result.Bound {
					list = append(list, fmt.Sprintf("%s %d %.9f", c.Name, block, values[attempt]))
				}
			}
		}
	}
	return list
}

// TestResumedDecidesTheSame checks that an experiment that is interrupted in any of its runs and resumed measures the
// same blocks and makes the same decisions as without the interruption, by a simple rule and by the real one.
func TestResumedDecidesTheSame(t *testing.T) {
	for _, test := range []struct {
		name    string
		looks   []int
		effect  float64 // of tcp-rr
		stopped map[string]int
		rule    func(*testing.T, result.Experiment) runner.Decide
	}{
		{"a rule for tests", []int{3, 5, 8}, 0.025, map[string]int{crr: 3, rr: 8},
			func(*testing.T, result.Experiment) runner.Decide { return whenClear }},
		{"repeated intervals", []int{6, 7, 9}, 0.025, map[string]int{crr: 6, rr: 9},
			func(t *testing.T, e result.Experiment) runner.Decide {
				decide, err := compare.Stopping(e)
				if err != nil {
					t.Fatal(err)
				}
				return decide
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var decide runner.Decide
			start := func() *bench {
				b := newBench(t, "ab", 1, rr, crr)
				tool := b.sequentially(decide, test.looks...)
				b.config.Experiment.Design.Alpha = 0.2
				tool.effects[crr+" b"], tool.effects[rr+" b"] = 0.3, test.effect
				return b
			}
			decide = test.rule(t, start().config.Experiment)
			whole := start()
			whole.run(t.Context())
			want := verdicts(t, whole.config.Experiment, whole.sink.runs)
			for name, want := range test.stopped {
				if got := blocksOf(whole.sink.runs)[name]; got != want {
					t.Fatalf("%s has %d blocks, wanted %d; this data does not test it", name, got, want)
				}
			}
			for moment := 1; moment <= len(whole.sink.runs); moment += 3 {
				runs := wantResumedAlike(t, whole, start, moment)
				if got := verdicts(t, whole.config.Experiment, runs); !slices.Equal(got, want) {
					t.Errorf("interrupted in run %d its verdicts are %v, without that %v", moment, got, want)
				}
			}
		})
	}
}

// wantResumedAlike interrupts an experiment in one of its runs, resumes it, and compares runs and decisions with those
// of the uninterrupted one. It returns all runs.
func wantResumedAlike(t *testing.T, whole *bench, start func() *bench, moment int) []result.Run {
	t.Helper()
	b := start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.model.Wait = func(ctx context.Context, d time.Duration) error {
		if b.model.Calls() == moment {
			cancel()
		}
		b.clock.Sleep(ctx, d)
		return ctx.Err()
	}
	b.run(ctx)
	again := start()
	again.config.Earlier, again.config.EarlierFacts = b.sink.runs, b.sink.facts
	again.run(t.Context())
	runs := slices.Concat(b.sink.runs, again.sink.runs)
	want, got := measured(whole.sink.runs, whole.config.Experiment), measured(runs, again.config.Experiment)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("interrupted in run %d (-without +resumed):\n%s", moment, diff)
	}
	if want := decided(whole.events); !slices.Equal(decided(again.events), want) {
		t.Errorf("interrupted in run %d it decided %v, without that %v", moment, decided(again.events), want)
	}
	return runs
}

// verdicts returns the verdicts of a comparison of the runs, one line each.
func verdicts(t *testing.T, e result.Experiment, runs []result.Run) []string {
	t.Helper()
	c, err := compare.Compare(result.Results{Experiment: e, Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range c.Primary() {
		list = append(list, fmt.Sprintf("%s %s %.9f [%.9f, %.9f] %d",
			r.Case, r.Verdict, r.Change, r.CI.Lo, r.CI.Hi, r.Blocks))
	}
	return list
}

// TestBudgetIsExceededByLessThanOneRun checks that no run begins after the budget, however long runs take, so that the
// budget is exceeded by less than one run.
func TestBudgetIsExceededByLessThanOneRun(t *testing.T) {
	for seed := range uint64(60) {
		b := newBench(t, "abc", 20, rr, crr)
		random := rand.New(rand.NewPCG(seed, 2))
		b.config.Experiment.Design.Budget = 1 + 40*random.Float64()
		b.model.Wait = func(ctx context.Context, d time.Duration) error {
			// Mostly as predicted, sometimes many times that.
			b.clock.Sleep(ctx, time.Duration(float64(d)*math.Exp(1.5*random.NormFloat64())))
			return ctx.Err()
		}
		var began []float64
		b.config.Events = func(e runner.Event) {
			if e.Kind == runner.RunStarted {
				began = append(began, e.Elapsed)
			}
		}
		s := b.run(t.Context())
		if n := len(began); n > 0 && began[n-1] >= b.config.Experiment.Design.Budget {
			t.Errorf("seed %d: a run began after %.2f s of a budget of %.2f s",
				seed, began[n-1], b.config.Experiment.Design.Budget)
		}
		if s.Stopped == runner.StopComplete && s.Runs != 20*(3*2+2) {
			t.Errorf("seed %d: complete with %d runs", seed, s.Runs)
		}
	}
}

// TestBudgetCutsABlock checks that the runs of a block that the budget cuts off are kept, and that the resumed
// experiment measures the block again.
func TestBudgetCutsABlock(t *testing.T) {
	b := newBench(t, "abc", 2, rr)
	b.config.Experiment.Cases = b.config.Experiment.Cases[:1] // without the bound
	b.config.Experiment.Design.Budget = 9
	b.model.Wait = func(ctx context.Context, d time.Duration) error {
		if b.model.Calls() == 4 {
			d = 10 * time.Second // not predictable
		}
		b.clock.Sleep(ctx, d)
		return ctx.Err()
	}
	s := b.run(t.Context())
	if len(b.sink.runs) != 4 || s.Stopped != runner.StopBudget || b.sink.runs[3].Block != 2 || !b.sink.runs[3].Valid() {
		t.Fatalf("%v, %+v", describe(b.sink.runs), s)
	}
	again := newBench(t, "abc", 2, rr)
	again.config.Experiment, again.config.Earlier = b.config.Experiment, b.sink.runs
	again.config.Experiment.Design.Budget = 0
	again.run(t.Context())
	if len(again.sink.runs) != 3 || again.sink.runs[0].Attempt != 2 {
		t.Errorf("resumed: %v", describe(again.sink.runs))
	}
	wantComplete(t, slices.Concat(b.sink.runs, again.sink.runs), b.config.Experiment, "abc")
}

// TestCheck checks that a run that ended without errors but fails Config.Check is invalid, and its case is measured
// again.
func TestCheck(t *testing.T) {
	b := newBench(t, "ab", 2, rr)
	b.config.Experiment.Cases = b.config.Experiment.Cases[:1]
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		if call == 1 {
			return "late", nil
		}
		return "", nil
	}
	checked := 0
	b.config.Check = func(_ result.Case, r result.Run) []result.Warning {
		checked++
		if !r.Valid() || len(r.Values) == 0 || len(r.Histograms) == 0 || r.Case != rr {
			t.Errorf("asked about %+v", r)
		}
		if checked == 2 {
			return []result.Warning{{Code: "a", Text: "audit: faster than its link"}, {Code: "b", Text: "audit: second"}}
		}
		return nil
	}
	s := b.run(t.Context())
	invalid := slices.DeleteFunc(slices.Clone(b.sink.runs), result.Run.Valid)
	if len(invalid) != 2 || result.Joined(invalid[1].Invalid) != "audit: faster than its link; audit: second" ||
		checked != 6 || s.Runs != 5 {
		t.Errorf("%v, asked %d times, %+v", describe(b.sink.runs), checked, s)
	}
	wantComplete(t, b.sink.runs, b.config.Experiment, "ab")
	reported := slices.ContainsFunc(b.events, func(e runner.Event) bool {
		return e.Kind == runner.RunInvalid && strings.HasPrefix(e.Reason, "audit: faster")
	})
	if !reported {
		t.Error("no event reports it")
	}
}
