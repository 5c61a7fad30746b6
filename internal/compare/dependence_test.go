package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A series describes runs that are measured one after another, half of them into one directory and half into another.
type series struct {
	correlation float64 // of a run with the one before
	drift       float64 // from the first run to the last, in standard deviations
	shift       float64 // of the second half, likewise
}

// values returns the logarithms of n runs.
func (s series) values(n int, random *rand.Rand) []float64 {
	values := make([]float64, n)
	level := 0.0
	for i := range values {
		level = s.correlation*level + math.Sqrt(1-s.correlation*s.correlation)*random.NormFloat64()
		if i == 0 {
			level = random.NormFloat64()
		}
		values[i] = level + s.drift*float64(i)/float64(n)
		if i >= n/2 {
			values[i] += s.shift
		}
	}
	return values
}

// directories returns the comparison of the two halves; a standard deviation is 1 %.
func directories(t *testing.T, values []float64) Comparison {
	t.Helper()
	var parts []Part
	half := len(values) / 2
	for k, label := range []string{"before", "after"} {
		w := newWorld(half, "A")
		w.e.Design.Delta = 1e-9
		w.addCase(stream, result.Primary, "throughput")
		w.e.Gates = []string{stream + " >= -0%", stream + " <= +0%"}
		for i, v := range values[k*half : (k+1)*half] {
			w.add(i+1, stream, "A", throughput(1e9*math.Exp(0.01*v)))
		}
		parts = append(parts, Part{Results: result.Results{Experiment: w.e, Runs: w.runs}, Label: label})
	}
	j, err := Join(parts...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := j.Compare()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnpairedDependence simulates two directories without any difference, but with runs that are not independent, and
// independent runs with and without one; the bounds are those of 1000 repetitions, which the test may miss by three
// standard errors. The shares that Mann-Whitney's test alone would find are in brackets in the
// log; with independent runs it is what the tests for dependence cost.
func TestUnpairedDependence(t *testing.T) {
	for _, c := range []struct {
		name                       string
		of                         series
		runs                       int // of each side
		least, most                int // different, in percent
		leastWarnings, mostWarning int // rows that drift, in percent
	}{
		{"independent", series{}, 12, 0, 6, 0, 5},
		{"a shift of independent runs", series{shift: 1.3}, 12, 70, 90, 0, 5},
		{"a large shift of independent runs", series{shift: 4}, 12, 95, 100, 0, 5},
		{"a shift of many independent runs", series{shift: 0.75}, 30, 72, 90, 0, 5},
		{"correlation 0.3", series{correlation: 0.3}, 12, 0, 8, 0, 15},
		{"correlation 0.6", series{correlation: 0.6}, 12, 0, 10, 5, 40},
		{"correlation 0.3, many runs", series{correlation: 0.3}, 30, 0, 7, 0, 20},
		{"correlation 0.6, many runs", series{correlation: 0.6}, 30, 0, 7, 10, 50},
		{"one drift", series{drift: 10}, 12, 0, 4, 96, 100},
		{"one drift within much noise", series{drift: 6}, 12, 0, 35, 60, 100},
	} {
		random := rand.New(rand.NewPCG(23, 1))
		different, drifting, alone, of := 0, 0, 0, 150
		if testing.Short() {
			of = 40
		}
		for range of {
			values := c.of.values(2*c.runs, random)
			r := directories(t, values)
			row := r.Comparisons[0]
			if stats.Unpaired(values[:c.runs], values[c.runs:], 0.05).P <= 0.05 {
				alone++
			}
			if row.Verdict == Different {
				different++
			}
			if !contains(row.Warnings, Warning{Code: Drift}) {
				continue
			}
			drifting++
			if _, withheld := row.Withheld(); withheld != row.undecidedBeyondZero() {
				t.Fatalf("%s: undecided by drift, without that reason: %+v", c.name, row)
			}
			if row.Verdict != Undecided || r.Outcome() != Open || strings.Contains(r.Scope, "95 %") ||
				!contains(r.Warnings, Warning{Code: Trend, Cases: []string{stream}}) {
				t.Fatalf("%s: drift, but %s, %q, gates %s", c.name, row.Sentence, r.Scope, r.Outcome())
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / float64(of) }
		t.Logf("%s: %.1f %% different (%.1f %%), %.1f %% drift", c.name, share(different), share(alone), share(drifting))
		slack := 100 * 3 * math.Sqrt(0.05*0.95/float64(of))
		if s := share(different); s < float64(c.least)-slack || s > float64(c.most)+slack {
			t.Errorf("%s: %.1f %% different, not %d to %d", c.name, s, c.least, c.most)
		}
		if s := share(drifting); s < float64(c.leastWarnings)-slack || s > float64(c.mostWarning)+slack {
			t.Errorf("%s: %.1f %% drift, not %d to %d", c.name, s, c.leastWarnings, c.mostWarning)
		}
	}
}
