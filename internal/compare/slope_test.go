package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// slopeWorld returns an experiment with targets of the given numbers of rules, whose latency grows by slope for each
// rule.
func slopeWorld(blocks int, numbers []int, slope, spread float64, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 17))
	var names []string
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("lab:native?rules=%d", n))
	}
	w := newWorld(blocks, names...)
	w.addCase(rr, result.Primary, "p50")
	for b := 1; b <= blocks; b++ {
		level := 50e-6 * (1 + 0.2*r.NormFloat64()) // the blocks differ more than the targets do
		for i, name := range names {
			w.add(b, rr, name, p50(level+slope*float64(numbers[i])+50e-6*spread*r.NormFloat64()))
		}
	}
	return w
}

func TestSlopes(t *testing.T) {
	for _, test := range []struct {
		slope     float64
		spread    float64
		want      Verdict
		direction Direction
		sentence  string
	}{
		{2e-9, 0.01, Different, WorseThan, "P50 of pod-pod/other/tcp-rr grows with the number of rules, from 0 to 5000: +"},
		{-2e-9, 0.01, Different, BetterThan, "µs] per 1000 rules."},
		{0, 0.002, Equivalent, None, "is flat within ±2 % from 0 to 5000 rules: "},
		{0, 0.2, Undecided, None, "Whether p50 of pod-pod/other/tcp-rr changes with the number of rules is undecided"},
	} {
		c := compare(t, slopeWorld(11, []int{0, 5000, 1000}, test.slope, test.spread, 5), nil)
		if len(c.Slopes) != 1 {
			t.Fatalf("%+v", c.Slopes)
		}
		s := c.Slopes[0]
		if s.Verdict != test.want || s.Direction != test.direction && test.want != Equivalent ||
			!strings.Contains(s.Sentence, test.sentence) || s.Blocks != 11 || s.Per != 1000 || s.Option != "rules" {
			t.Errorf("%g: %+v", test.slope, s)
		}
		if p := s.Points; len(p) != 3 || p[0].Number != 0 || p[1].Number != 1000 || p[2].Number != 5000 {
			t.Errorf("%+v", p)
		}
	}
	few := compare(t, slopeWorld(3, []int{0, 10}, 1e-7, 0.01, 1), nil)
	if c := few; !strings.Contains(c.Slopes[0].Sentence, "too few") {
		t.Error(c.Slopes[0].Sentence)
	}
	if c := compare(t, typical(), nil); len(c.Slopes) > 0 {
		t.Errorf("slopes of targets without numbers: %+v", c.Slopes)
	}
}

// TestBentSlopes checks that levels that are not on a straight line are reported.
func TestBentSlopes(t *testing.T) {
	for _, bent := range []bool{false, true} {
		w := slopeWorld(11, []int{0, 1000, 5000}, 2e-9, 0.01, 1)
		for i := range w.runs {
			if bent && strings.HasSuffix(w.runs[i].Target, "=1000") {
				w.runs[i].Values[0].Number += 4e-6 // half of the whole rise
			}
		}
		s := compare(t, w, nil).Slopes[0]
		if s.Bent != bent || s.Straight() == bent || strings.Contains(s.Sentence, "not on a straight line") != bent {
			t.Errorf("%+v", s)
		}
	}
}

// TestSlopeOfTwoLevels checks that two levels give their total change and no rate, which they cannot show.
func TestSlopeOfTwoLevels(t *testing.T) {
	for slope, want := range map[float64]string{
		2e-9: "grows with the number of rules, from 0 to 5000: +", 0: "is flat within",
	} {
		s := compare(t, slopeWorld(11, []int{0, 5000}, slope, 0.002, 1), nil).Slopes[0]
		if total := 5000 * slope; s.Per != 5000 || math.Abs(float64(s.Estimate)-total) > 2e-7 {
			t.Errorf("%g: %v per %v", slope, s.Estimate, s.Per)
		}
		if !strings.Contains(s.Sentence, want) || !strings.Contains(s.Sentence, "in all; two levels show no rate") ||
			strings.Contains(s.Sentence, " per ") || s.Straight() {
			t.Error(s.Sentence)
		}
	}
}

// TestBentIsNotFlat checks that nothing bent is called flat: neither a U, nor an S whose deviations cancel.
func TestBentIsNotFlat(t *testing.T) {
	for name, bent := range map[string]map[string]float64{
		"U": {"=1000": -8e-6, "=4000": -8e-6},
		"S": {"=1000": 8e-6, "=4000": -8e-6},
	} {
		w := slopeWorld(11, []int{0, 1000, 4000, 5000}, 0, 0.002, 1)
		for i := range w.runs {
			for suffix, by := range bent {
				if strings.HasSuffix(w.runs[i].Target, suffix) {
					w.runs[i].Values[0].Number += by
				}
			}
		}
		s := compare(t, w, nil).Slopes[0]
		if !s.Bent || s.Verdict != Different || s.Direction != None || strings.Contains(s.Sentence, "flat") ||
			strings.Contains(s.Sentence, " per ") ||
			!strings.Contains(s.Sentence, "changes with the number of rules, from 0 to 5000, but not along a straight line: ") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestSlopesOfWholeBlocks checks that blocks without a valid run on every target do not count.
func TestSlopesOfWholeBlocks(t *testing.T) {
	w := slopeWorld(11, []int{0, 1000, 2000}, 2e-9, 0.01, 1)
	w.runs[4].Invalid = []result.Warning{{Code: result.ShortWindow, Text: "the window was short"}}
	if s := compare(t, w, nil).Slopes[0]; s.Blocks != 10 {
		t.Errorf("%+v", s)
	}
}

// TestSlopeCoverage checks that the interval covers the slope as often as its level requires.
func TestSlopeCoverage(t *testing.T) {
	const slope, experiments = 1e-9, 400
	missed := 0
	for seed := range uint64(experiments) {
		s := compare(t, slopeWorld(11, []int{0, 500, 5000}, slope, 0.05, seed), nil).Slopes[0]
		if s.CI.Lo > 1000*slope || s.CI.Hi < 1000*slope {
			missed++
		}
	}
	// With a true rate of 5 %, 36 or more occur once in a thousand times.
	if missed >= 36 || math.Abs(float64(missed)-experiments*0.05) > 20 {
		t.Errorf("%d of %d intervals miss the slope", missed, experiments)
	}
}
