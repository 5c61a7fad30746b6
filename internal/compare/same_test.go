package compare

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// lastBitWorld returns an experiment on values that differ in their last bit: the first target always has the lower
// value, the second the next number, the third alternates. Rank tests of the raw numbers would find a difference.
func lastBitWorld(blocks int) *world {
	w := newWorld(blocks, "low", "high", "turns")
	w.addCase(stream, result.Primary, "throughput")
	low, high := 1.0, math.Nextafter(1, 2) // where the logarithms differ too
	for b := 1; b <= blocks; b++ {
		w.add(b, stream, "low", throughput(low))
		w.add(b, stream, "high", throughput(high))
		w.add(b, stream, "turns", throughput([]float64{low, high}[b%2]))
	}
	return w
}

func TestLastBitsAreNoDifference(t *testing.T) {
	paired, looking, theirs := lastBitWorld(16), lastBitWorld(15), lastBitWorld(16)
	looking.e.Design.Looks = []int{8, 11, 15}
	theirs.e.Imported = "csv"
	for name, w := range map[string]*world{"paired": paired, "at looks": looking, "imported": theirs} {
		w.e.Gates = []string{"* >= +0%"}
		c := compare(t, w, nil)
		for _, r := range c.Comparisons {
			// The resolution of identical values is unknown, so nothing is equivalent.
			if r.Verdict != Undecided || r.Direction != None || r.CI != (Interval{-0.5, 1}) || r.Change != 0 {
				t.Errorf("%s: %s has %v %v, change %v in %v", name, r.Target, r.Verdict, r.Direction, r.Change, r.CI)
			}
		}
		for _, g := range c.Gates {
			if g.Outcome != Open {
				t.Errorf("%s: %s", name, g.Sentence)
			}
		}
		for _, g := range c.Groups {
			for _, m := range g.Members {
				if m.Letters != "a" {
					t.Errorf("%s: %s", name, g.Conclusion)
				}
			}
		}
		for _, b := range c.Boxes {
			if b.Lowest != b.Highest || len(b.Beyond) != 0 {
				t.Errorf("%s: the box of %s is %+v", name, b.Target, b)
			}
		}
	}
}

// TestLastBitsAreNoTrend checks that values of a single target that rise by one bit per block are not taken for a
// trend.
func TestLastBitsAreNoTrend(t *testing.T) {
	w := newWorld(12, "only")
	w.addCase(stream, result.Primary, "throughput")
	v := 1.0
	for b := 1; b <= 12; b++ {
		w.add(b, stream, "only", throughput(v))
		v = math.Nextafter(v, 2)
	}
	if c := compare(t, w, nil); warned(c.Warnings, Trend) {
		t.Errorf("%+v", c.Warnings)
	}
}
