package compare

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestInterruptedFixedBlocks checks that a fixed number of blocks decides nothing before its last block, in any way,
// and decides at the last, also if pairs or targets are missing by then.
func TestInterruptedFixedBlocks(t *testing.T) {
	build := func() *world {
		w := levelled(12, result.Primary, 1, 1.2)
		w.e.Design.Blocks = 30
		w.e.Gates = []string{stream + " <= +5%", stream + " >= 1 Gbit/s"}
		return w
	}
	row := func(c Comparison) Row { return c.Comparisons[0] }
	c := compare(t, build(), nil)
	if r := row(c); r.Verdict != Undecided || r.CI.Bounded() || r.P != 1 || len(r.Warnings) != 0 ||
		!contains(c.Warnings, Warning{Code: BeforeLastBlock, Count: 12, Of: 30}) ||
		!strings.Contains(r.Sentence, "undecided after 12 of 30 planned blocks; estimated change +20") {
		t.Errorf("interrupted: %s %v %v %q %+v", r.Verdict, r.CI, r.P, r.Sentence, r.Warnings)
	}
	for _, g := range c.Gates {
		if g.Outcome != Open || !strings.Contains(g.Sentence, "after 12 of 30 planned blocks") {
			t.Errorf("interrupted: %s", g.Sentence)
		}
	}
	w := build()
	w.e.Design.Budget = 600
	c = compare(t, w, nil)
	if !contains(c.Warnings, Warning{Code: BeforeLastBlock, Count: 12, Of: 30, Seconds: 600}) {
		t.Errorf("the budget ended it: %+v", c.Warnings)
	}
	w = build()
	w.e.NotMeasured = []result.NotMeasured{{Target: "B", Case: "*", Reason: "given up"}}
	if r := row(compare(t, w, nil)); r.Verdict != Different {
		t.Errorf("given up after 12 blocks, which nobody chose: %s", r.Sentence)
	}
	w = levelled(12, result.Primary, 1, 1.2)
	if c := compare(t, w, nil); row(c).Verdict != Different || len(c.Warnings) != 0 {
		t.Errorf("complete: %s %+v", row(c).Sentence, c.Warnings)
	}
	w.runs = w.runs[:len(w.runs)-1]
	if r := row(compare(t, w, nil)); r.Verdict != Undecided {
		t.Errorf("interrupted in the last block: %s", r.Sentence)
	}
}

// TestWatchingTheBoard simulates users who end an experiment between equal targets as soon as the board or the results
// so far show a difference. Before intervals waited for their look, they were wrong in a fifth of 30 planned blocks.
func TestWatchingTheBoard(t *testing.T) {
	for _, looks := range [][]int{nil, {8, 11, 15, 21, 30}} {
		n := simulatedExperiment{name: "watched", targets: 2, noise: []float64{0.01}, tails: normal}
		e := n.experiment()
		e.Design.Looks = looks
		p, err := newAnalysisPlan(e)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(25, uint64(len(looks))))
		wrong, of := 0, 400
		for range of {
			m := experimentInProgress{simulatedExperiment: n, e: e, random: random}
			for done := 1; done <= e.Design.Blocks; done++ {
				m.block(done, 1<<30, []string{"case0"})
				shown := p.provisional(e, done, m.runs, []string{"case0"})[0]
				if looks == nil && done < e.Design.Blocks && (shown.CI.Bounded() || shown.Verdict != Undecided) {
					t.Fatalf("after %d blocks the board shows %v", done, shown.CI)
				}
				if shown.CI.Excludes(0) {
					if r := p.compare(result.Results{Experiment: e, Runs: m.runs}).Comparisons[0]; r.Verdict == Different {
						wrong++
					}
					break
				}
			}
		}
		t.Logf("looks %v: wrong in %d of %d", looks, wrong, of)
		if limit := (tally{of: of}).atMost(); wrong > limit {
			t.Errorf("looks %v: wrong in %d of %d, at most %d", looks, wrong, of, limit)
		}
	}
}
