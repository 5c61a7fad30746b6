package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestShareP(t *testing.T) {
	for _, c := range []struct {
		x            []float64
		below, above float64
	}{
		{nil, 1, 1},
		{make([]float64, 299), math.Pow(0.99, 299), 1},
		{[]float64{1}, 1, 2.0 / 101},
		{[]float64{1, 0}, 1, 4.0 / 101},
		{[]float64{0.01, 0.01}, 1, 1},
		{slices.Repeat([]float64{0.05}, 3), 1, 1.0 / 27},
		{slices.Repeat([]float64{0.002}, 400), math.Pow(0.99/0.998, 400), 1},
		{slices.Repeat([]float64{1}, 400), 1, 0},
	} {
		below, above := ShareP(c.x, 0.01)
		if math.Abs(below-c.below) > 1e-9 || math.Abs(above-c.above) > 1e-9 {
			t.Errorf("%d shares: %g, %g, want %g, %g", len(c.x), below, above, c.below, c.above)
		}
	}
	if n := MinBlocks(0.01, 0.05); n != 299 {
		t.Errorf("%d blocks", n)
	}
}

// TestSharePHolds uses shares of many distributions whose mean is exactly the limit: either p is at most 0.05 in at
// most 5 % of the experiments, although each ends at its most favourable block.
func TestSharePHolds(t *testing.T) {
	const limit, experiments, blocks = 0.01, 2000, 400
	for name, share := range map[string]func(r *rand.Rand) float64{
		"all or nothing": func(r *rand.Rand) float64 {
			if r.Float64() < limit {
				return 1
			}
			return 0
		},
		"a third": func(r *rand.Rand) float64 {
			if r.Float64() < 3*limit {
				return 1.0 / 3
			}
			return 0
		},
		"many sizes": func(r *rand.Rand) float64 { return math.Min(1, limit*r.ExpFloat64()) },
	} {
		random := rand.New(rand.NewPCG(5, 6))
		belows, aboves := 0, 0
		for range experiments {
			x := make([]float64, blocks)
			least := [2]float64{1, 1}
			for i := range x {
				x[i] = share(random)
				if i%10 == 9 {
					below, above := ShareP(x[:i+1], limit)
					least = [2]float64{math.Min(least[0], below), math.Min(least[1], above)}
				}
			}
			if least[0] <= 0.05 {
				belows++
			}
			if least[1] <= 0.05 {
				aboves++
			}
		}
		t.Logf("%s: %d and %d of %d", name, belows, aboves, experiments)
		if most := int(experiments * (0.05 + 3*math.Sqrt(0.05*0.95/experiments))); belows > most || aboves > most {
			t.Errorf("%s: %d and %d of %d are wrong; more than %d are too many", name, belows, aboves, experiments, most)
		}
	}
}
