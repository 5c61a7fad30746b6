package runner_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

func scheduled(seed uint64, targets string, cases ...string) result.Experiment {
	e := result.Experiment{Seed: seed, Baseline: targets[:1], Design: result.Design{Blocks: 3}}
	for _, name := range strings.Split(targets, "") {
		e.Targets = append(e.Targets, result.Target{Name: name, Underlay: "one"})
	}
	for _, name := range cases {
		role := result.Primary
		if strings.HasPrefix(name, "node-node/") {
			role = result.Bound
		}
		e.Cases = append(e.Cases, result.Case{Name: name, Role: role})
	}
	return e
}

// TestScheduleGolden checks that the order does not change: a resumed experiment and a later version must draw the same
// order again.
func TestScheduleGolden(t *testing.T) {
	e := scheduled(7, "abc", "pod-pod/other/tcp-stream",
		"pod-pod/other/tcp-rr", "pod-svc/other/tcp-rr", "node-node/tcp-rr")
	e.NotMeasured = []result.NotMeasured{{Target: "c", Case: "pod-svc/other/tcp-rr"},
		{Target: "*", Case: "pod-pod/other/tcp-stream"}}
	var b strings.Builder
	for _, seed := range []uint64{7, 8} {
		e.Seed = seed
		for block := 1; block <= 3; block++ {
			fmt.Fprintf(&b, "seed %d block %d\n", seed, block)
			for _, cb := range runner.Schedule(e, block) {
				fmt.Fprintf(&b, "  %-22s %v, again %v\n", cb.Case.Name, cb.Targets, runner.Order(e, cb.Case, block, 2))
			}
		}
	}
	golden.Check(t, "testdata/schedule.golden", b.String())
}

// TestScheduleIsStable checks that leaving out or adding cases and targets does not change the order of the rest.
func TestScheduleIsStable(t *testing.T) {
	e := scheduled(3, "abcde", "p/1", "p/2", "p/3")
	more := scheduled(3, "abcde", "p/1", "p/2", "p/3", "p/4")
	without := scheduled(3, "abcde", "p/1", "p/2", "p/3")
	without.NotMeasured = []result.NotMeasured{{Target: "c", Case: "*"}, {Target: "*", Case: "p/2"}}
	for block := 1; block <= 200; block++ {
		orders := map[string][]string{}
		var order, left []string
		for _, cb := range runner.Schedule(e, block) {
			orders[cb.Case.Name] = cb.Targets
			order = append(order, cb.Case.Name)
		}
		for _, cb := range runner.Schedule(more, block) {
			if want, ok := orders[cb.Case.Name]; ok && !slices.Equal(cb.Targets, want) {
				t.Fatalf("block %d of %s: %v, with another case %v", block, cb.Case.Name, want, cb.Targets)
			}
		}
		for _, cb := range runner.Schedule(without, block) {
			left = append(left, cb.Case.Name)
			if want := drop(orders[cb.Case.Name], "c"); !slices.Equal(cb.Targets, want) {
				t.Fatalf("block %d of %s: %v, wanted %v", block, cb.Case.Name, cb.Targets, want)
			}
		}
		if want := drop(order, "p/2"); !slices.Equal(left, want) {
			t.Fatalf("block %d: cases %v, wanted %v", block, left, want)
		}
	}
}

func drop(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}

// TestScheduleIsBalanced checks that the randomisation is balanced: over many blocks, every target and case is equally
// often at every position, and every target equally often after every other one, for any seed.
func TestScheduleIsBalanced(t *testing.T) {
	const blocks = 4000
	for _, seed := range []uint64{0, 1, 2, 1 << 40, math.MaxUint64} {
		for _, targets := range []string{"ab", "abc", "abcde"} {
			e := scheduled(seed, targets, "p/1", "p/2", "p/3")
			position, follows, casePosition := map[string]int{}, map[string]int{}, map[string]int{}
			for block := 1; block <= blocks; block++ {
				for at, cb := range runner.Schedule(e, block) {
					if sorted(strings.Join(cb.Targets, "")) != targets {
						t.Fatalf("block %d has %v", block, cb.Targets)
					}
					casePosition[fmt.Sprintf("%s at %d", cb.Case.Name, at)]++
					for i, name := range cb.Targets {
						position[fmt.Sprintf("%s at %d", name, i)]++
						if i > 0 {
							follows[name+" after "+cb.Targets[i-1]]++
						}
					}
				}
			}
			n := len(targets)
			what := fmt.Sprintf("seed %d, targets %s", seed, targets)
			wantEven(t, what, position, n*n, 3*blocks, 1/float64(n))
			// n-1 neighbours among n(n-1) ordered pairs.
			wantEven(t, what, follows, n*(n-1), 3*blocks, 1/float64(n))
			wantEven(t, what, casePosition, 9, blocks, 1.0/3)
		}
	}
}

// wantEven checks that there is the given number of cells and that each count is within five standard deviations of the
// mean of n draws with probability p.
func wantEven(t *testing.T, what string, counts map[string]int, cells, n int, p float64) {
	t.Helper()
	if len(counts) != cells {
		t.Errorf("%s: %d of %d combinations happen: %v", what, len(counts), cells, counts)
	}
	mean, sd := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
	for name, count := range counts {
		if math.Abs(float64(count)-mean) > 5*sd {
			t.Errorf("%s: %s in %d of %d, expected %.0f ± %.0f", what, name, count, n, mean, sd)
		}
	}
}

// TestOrdersAreIndependent checks that the orders of different cases, blocks, attempts and seeds are independent.
func TestOrdersAreIndependent(t *testing.T) {
	const n = 4000
	c1, c2 := result.Case{Name: "p/1"}, result.Case{Name: "p/2"}
	e, other := scheduled(5, "ab", "p/1", "p/2"), scheduled(6, "ab", "p/1", "p/2")
	agree := map[string]int{}
	for block := 1; block <= n; block++ {
		first := runner.Order(e, c1, block, 1)[0]
		for name, order := range map[string][]string{
			"case":    runner.Order(e, c2, block, 1),
			"block":   runner.Order(e, c1, block+1, 1),
			"attempt": runner.Order(e, c1, block, 2),
			"seed":    runner.Order(other, c1, block, 1),
		} {
			if order[0] == first {
				agree[name]++
			}
		}
	}
	wantEven(t, "agreement with another", agree, 4, n, 0.5)
}

// TestBoundOnEachUnderlay checks that a bound is measured once on each underlay; on the baseline's underlay, it is
// measured on the baseline.
func TestBoundOnEachUnderlay(t *testing.T) {
	e := scheduled(1, "abcdef", "node-node/tcp-rr", "pod-pod/other/tcp-rr")
	e.Baseline = "b"
	e.Targets[2].Underlay, e.Targets[3].Underlay, e.Targets[4].Underlay, e.Targets[5].Underlay = "two", "two", "", ""
	for block := 1; block <= 20; block++ {
		for _, cb := range runner.Schedule(e, block) {
			slices.Sort(cb.Targets)
			if cb.Case.Role == result.Bound && !slices.Equal(cb.Targets, []string{"b", "c", "e", "f"}) {
				t.Errorf("block %d: a bound on %v", block, cb.Targets)
			}
		}
	}
}

func TestPlan(t *testing.T) {
	e := scheduled(1, "abc", "p/1", "p/2", "p/3", "node-node/x")
	e.Design = result.Design{Blocks: 10, Duration: 1, Warmup: 1 - plan.Pause.Seconds()}
	e.NotMeasured = []result.NotMeasured{{Target: "c", Case: "p/2"}, {Target: "*", Case: "p/3"}}
	d := plan.NewDurations(e, nil)
	p := plan.NewOutline(e, &d)
	var got []string
	for _, c := range p.Cases {
		got = append(got, fmt.Sprintf("%s %v %d %.0f", c.Name, c.Targets, c.Runs, c.Seconds))
	}
	want := []string{"p/1 [a b c] 30 60", "p/2 [a b] 20 40", "node-node/x [a] 10 20"}
	if !slices.Equal(got, want) || p.Runs != 60 || math.Abs(p.Seconds-120) > 1e-9 || p.Blocks != 10 {
		t.Errorf("plan %+v", p)
	}
	runs := 0
	for block := 1; block <= e.Design.Blocks; block++ {
		for _, cb := range runner.Schedule(e, block) {
			runs += len(cb.Targets)
		}
	}
	if runs != p.Runs {
		t.Errorf("the plan has %d runs, the schedule %d", p.Runs, runs)
	}
}

// TestSeed checks that each run has its own seed, which depends on the experiment's seed.
func TestSeed(t *testing.T) {
	r := result.Run{Case: "a", Target: "t", Block: 1, Attempt: 1}
	seeds := map[uint64]bool{}
	for _, change := range []func(e *result.Experiment, r *result.Run){
		func(*result.Experiment, *result.Run) {},
		func(e *result.Experiment, _ *result.Run) { e.Seed = 8 },
		func(_ *result.Experiment, r *result.Run) { r.Case = "b" },
		func(_ *result.Experiment, r *result.Run) { r.Target = "u" },
		func(_ *result.Experiment, r *result.Run) { r.Block = 2 },
		func(_ *result.Experiment, r *result.Run) { r.Attempt = 2 },
	} {
		e, r := result.Experiment{Seed: 7}, r
		change(&e, &r)
		if seed := runner.Seed(e, r); seeds[seed] || seed != runner.Seed(e, r) {
			t.Errorf("%+v: %d", r, seed)
		} else {
			seeds[seed] = true
		}
	}
}
