package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLooksCountPairs simulates comparisons of equal targets with missing pairs. Each look judges the first pairs, as
// many as the last look that they are enough for; the last one judges all pairs. The share in which any look rejects is
// at most alpha, whichever pairs are missing, as long as that does not depend on their sign. Judging all pairs at each
// look would spend too much, because each look would count as the last.
func TestLooksCountPairs(t *testing.T) {
	const alpha, times = 0.05, 10_000
	every := func(d []float64, missing func(d float64, block int, r *rand.Rand) bool,
		r *rand.Rand) (kept []float64, blocks []int) {
		for i, v := range d {
			if !missing(v, i+1, r) {
				kept, blocks = append(kept, v), append(blocks, i+1)
			}
		}
		return kept, blocks
	}
	at := func(share float64) func(float64, int, *rand.Rand) bool {
		return func(_ float64, _ int, r *rand.Rand) bool { return r.Float64() < share }
	}
	firstFive := func(_ float64, block int, _ *rand.Rand) bool { return block <= 5 }
	large := func(d float64, _ int, _ *rand.Rand) bool { return math.Abs(d) > 1.2 }
	for _, tt := range []struct {
		name    string
		looks   []int
		missing func(d float64, block int, r *rand.Rand) bool
		naive   bool // to judge all pairs at each look spends too much
	}{
		{"none", []int{8, 11, 15, 21, 30}, at(0), false},
		{"a few", []int{8, 11, 15, 21, 30}, at(0.1), false},
		{"half", []int{8, 11, 15, 21, 30}, at(0.5), false},
		{"late looks, a sixth", []int{26, 27, 28, 29, 30}, at(1.0 / 6), true},
		{"late looks, the first five", []int{26, 27, 28, 29, 30}, firstFive, true},
		{"those that differ much", []int{8, 11, 15, 21, 30}, large, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			design, err := NewGroupSequential(tt.looks)
			if err != nil {
				t.Fatal(err)
			}
			rejects := func(d []float64) bool {
				d = slices.Sorted(slices.Values(d))
				return leastRankSum(walsh(d)) <= design.Critical(len(d), alpha).W
			}
			random := rand.New(rand.NewPCG(7, uint64(len(tt.name))))
			wrong, naive := 0, 0
			for range times {
				all := make([]float64, 30)
				for i := range all {
					all[i] = random.NormFloat64()
				}
				d, blocks := every(all, tt.missing, random)
				rejected, anyway := false, false
				for _, look := range tt.looks {
					n, _ := slices.BinarySearch(blocks, look+1)
					anyway = anyway || rejects(d[:n])
					if look < 30 {
						n = Reached(design, n)
					}
					rejected = rejected || rejects(d[:n])
				}
				wrong, naive = wrong+count(rejected), naive+count(anyway)
			}
			most := int(times * (alpha + 3*math.Sqrt(alpha*(1-alpha)/times)))
			t.Logf("%d of %d, judging all pairs %d; at most %d", wrong, times, naive, most)
			if wrong > most || tt.naive && naive <= most {
				t.Errorf("%d of %d reject, judging all pairs %d; more than %d are too many", wrong, times, naive, most)
			}
		})
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func TestUnlooked(t *testing.T) {
	design, err := NewGroupSequential([]int{8, 11})
	if err != nil {
		t.Fatal(err)
	}
	d := []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6}
	e := Paired(d, 0.05, DesignFromFirstLook{design})
	unbounded := Remark{Kind: Unbounded, Count: 7, Needed: 8}
	if e.Bounded() || e.P != 1 || e.Needed != 8 || e.Shift != 1.3 || !slices.Contains(e.Remarks, unbounded) {
		t.Errorf("before the first look: %+v", e)
	}
	if e := Paired(append(d, 1.7), 0.05, DesignFromFirstLook{design}); !e.Bounded() {
		t.Errorf("at the first look: %+v", e)
	}
	for n, want := range map[int]int{0: 0, 7: 0, 8: 8, 10: 8, 11: 11, 40: 11} {
		if got := Reached(design, n); got != want {
			t.Errorf("with %d pairs the look after %d is reached", n, got)
		}
	}
}
