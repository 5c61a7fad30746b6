package compare

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestOrderIsCorrected checks in simulated experiments of twenty comparisons, without any effect of the order of runs,
// that at most about one experiment in a hundred warns of the order.
func TestOrderIsCorrected(t *testing.T) {
	const experiments = 150
	effects := make([]float64, 10)
	e := exploratoryExperiment(result.Design{Blocks: 20, Alpha: 0.05, Delta: 0.02}, effects)
	var names []string
	for _, rc := range e.Cases {
		names = append(names, rc.Name)
	}
	p, err := newAnalysisPlan(e)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(20, 3))
	warnings := 0
	for range experiments {
		var runs []result.Run
		for block := range e.Design.Blocks {
			runs = append(runs, blockOf(e, block+1, names, effects, 0.01, random)...)
		}
		if slices.ContainsFunc(p.compare(result.Results{Experiment: e, Runs: runs}).Comparisons, func(r Row) bool {
			return warned(r.Warnings, OrderOfRuns)
		}) {
			warnings++
		}
	}
	t.Logf("%d of %d", warnings, experiments)
	if warnings > 5 {
		t.Errorf("%d of %d experiments warn of an order that changes nothing", warnings, experiments)
	}
}

// TestEarlyEndsSaySo checks that a case that stopped early warns of its biased estimate, and one with all blocks does
// not.
func TestEarlyEndsSaySo(t *testing.T) {
	for blocks, want := range map[int]bool{8: true, 30: false} {
		w := sequential("a", "b")
		w.addCase(rr, result.Primary, "p50")
		w.measure(rr, 1, blocks, 0.002, 1.5)
		if blocks == 30 {
			w.e.Design.Looks = []int{30}
		}
		r := compare(t, w, nil).Comparisons[0]
		if got := warned(r.Warnings, StoppedEarly); got != want || r.Verdict != Different {
			t.Errorf("%d blocks: %s, %+v", blocks, r.Verdict, r.Warnings)
		}
	}
}
