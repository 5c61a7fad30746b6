package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// driftingDifferences simulates blocks of two equal targets on a machine that drifts: the noise of a slot is correlated
// with the previous one, with a slow trend added. The order within a block is random. The second target is shifted by
// effect.
func driftingDifferences(random *rand.Rand, blocks int, effect float64) []float64 {
	d := make([]float64, blocks)
	drift := 0.0
	slot := func(step int) float64 {
		drift = 0.95*drift + 0.05*random.NormFloat64()
		noise := random.NormFloat64() / math.Max(0.2, math.Abs(random.NormFloat64())) // heavy tails
		return 0.03*noise + drift + 0.1*float64(step)/float64(2*blocks)
	}
	for i := range d {
		first, second := slot(2*i), slot(2*i+1)
		if random.IntN(2) == 0 {
			first, second = second, first
		}
		d[i] = second - first + effect
	}
	return d
}

// standardErrors returns three standard errors of a rate estimated from n trials, enough for a test with a fixed seed.
func standardErrors(rate float64, n int) float64 { return 3 * math.Sqrt(rate*(1-rate)/float64(n)) }

// TestCoverage checks that the interval covers the truth as often as its level requires, under drift and heavy tails,
// for several numbers of blocks.
func TestCoverage(t *testing.T) {
	const trials, effect = 2000, 0.07
	for _, n := range []int{6, 8, 11, 21} {
		random := rand.New(rand.NewPCG(7, uint64(n)))
		missed, attained := 0, 0.0
		for range trials {
			e := Paired(driftingDifferences(random, n, effect), 0.05, OneLook{})
			if e.Excludes(effect) {
				missed++
			}
			attained = e.Attained
		}
		rate := float64(missed) / trials
		if rate > 0.05+standardErrors(0.05, trials) {
			t.Errorf("%d blocks: the interval misses the truth in %.4f of the cases", n, rate)
		}
		// It is not needlessly wide either: the coverage is the attained level.
		if want := 1 - attained; math.Abs(rate-want) > standardErrors(want, trials)+0.002 {
			t.Errorf("%d blocks: missed %.4f, the attained level says %.4f", n, rate, want)
		}
	}
}

// TestFamilyWiseError simulates A/A experiments with five primary comparisons: any verdict of
// different in the family is an error.
func TestFamilyWiseError(t *testing.T) {
	const trials, family, blocks, alpha = 2000, 5, 11, 0.05
	random := rand.New(rand.NewPCG(11, 11))
	wrong := 0
	for range trials {
		for range family {
			if Paired(driftingDifferences(random, blocks, 0), alpha/family, OneLook{}).Excludes(0) {
				wrong++
				break
			}
		}
	}
	if rate := float64(wrong) / trials; rate > alpha+standardErrors(alpha, trials) {
		t.Errorf("family-wise error %.4f exceeds %v", rate, alpha)
	}
}

// TestUnpairedError simulates two samples of one distribution, with and without ties.
func TestUnpairedError(t *testing.T) {
	const trials, alpha = 1000, 0.05
	for _, coarse := range []bool{false, true} {
		random := rand.New(rand.NewPCG(13, 13))
		p, ends := 0, 0
		for range trials {
			x, y := draw(random, 8, coarse), draw(random, 9, coarse)
			e := Unpaired(x, y, alpha)
			if e.P <= alpha {
				p++
			}
			if e.Excludes(0) {
				ends++
			}
		}
		limit := alpha + standardErrors(alpha, trials)
		if float64(p)/trials > limit || float64(ends)/trials > limit {
			t.Errorf("coarse %v: p rejects %d, the interval %d of %d", coarse, p, ends, trials)
		}
	}
}

// TestFalseDiscoveryRate simulates families of which half have a true difference.
func TestFalseDiscoveryRate(t *testing.T) {
	const trials, family, alpha = 1000, 20, 0.1
	random := rand.New(rand.NewPCG(17, 17))
	share := 0.0
	for range trials {
		p := make([]float64, family)
		for i := range p {
			p[i] = Paired(driftingDifferences(random, 11, 0.15*float64(i%2)), alpha, OneLook{}).P
		}
		found, wrong := 0, 0
		for i, q := range BenjaminiHochberg(p) {
			if q <= alpha {
				found++
				wrong += 1 - i%2
			}
		}
		share += float64(wrong) / math.Max(1, float64(found)) / trials
	}
	if share > alpha {
		t.Errorf("false discovery rate %.4f exceeds %v", share, alpha)
	}
	if share == 0 {
		t.Error("the simulation found nothing at all")
	}
}

// TestDetectableShift checks that a shift of the returned size is detected with the given power.
func TestDetectableShift(t *testing.T) {
	const trials, power = 2000, 0.8
	for _, c := range []struct {
		n     int
		alpha float64
	}{{8, 0.05}, {8, 0.01}, {11, 0.05 / 12}, {21, 0.05}, {30, 0.01}} {
		shift := DetectableShift(c.n, c.alpha, power, OneLook{})
		random := rand.New(rand.NewPCG(19, uint64(c.n)))
		found := 0
		for range trials {
			d := make([]float64, c.n)
			for i := range d {
				d[i] = random.NormFloat64() + shift
			}
			if Paired(d, c.alpha, OneLook{}).Excludes(0) {
				found++
			}
		}
		if rate := float64(found) / trials; math.Abs(rate-power) > 2*standardErrors(power, trials) {
			t.Errorf("%d pairs at %v: a shift of %.3f is found in %.3f of the cases", c.n, c.alpha, shift, rate)
		}
	}
	if got := DetectableShift(5, 0.05, power, OneLook{}); !math.IsInf(got, 1) {
		t.Errorf("5 pairs can find a shift of %v", got)
	}
	large := DetectableShift(exactPairs+1, 0.05, power, OneLook{})
	small := DetectableShift(exactPairs, 0.05, power, OneLook{})
	if !near(large, small, 0.05) {
		t.Errorf("the formula says %v, the simulation %v", large, small)
	}
}

// TestPairsToDecide checks that most experiments with the estimated number of pairs have a verdict.
func TestPairsToDecide(t *testing.T) {
	const alpha, margin = 0.05, 0.02
	random := rand.New(rand.NewPCG(23, 23))
	sample := func(n int) Estimate {
		d := make([]float64, n)
		for i := range d {
			d[i] = 0.001 + 0.04*random.NormFloat64()
		}
		return Paired(d, alpha, OneLook{})
	}
	var guesses []int
	for range 200 {
		if n := PairsToDecide(sample(11), margin, alpha, OneLook{}); n > 0 {
			if n < 12 {
				t.Fatalf("%d pairs were not enough, but %d shall be", 11, n)
			}
			guesses = append(guesses, n)
		}
	}
	slices.Sort(guesses)
	middle := guesses[len(guesses)/2]
	decided := 0
	for range 200 {
		if PairsToDecide(sample(middle*2), margin, alpha, OneLook{}) == 0 {
			decided++
		}
	}
	if decided < 100 {
		t.Errorf("%d pairs were to decide, but with twice as many only %d of 200 did", middle, decided)
	}
	for _, e := range []Estimate{{}, Paired(nil, alpha, OneLook{}),
		Paired([]float64{5, 5.1, 5.2, 5.3, 5.4, 5.5}, alpha, OneLook{})} {
		if n := PairsToDecide(e, margin, alpha, OneLook{}); n != 0 {
			t.Errorf("%+v needs %d", e, n)
		}
	}
	if n := PairsToDecide(Paired([]float64{1}, alpha, OneLook{}), margin, alpha, OneLook{}); n != 6 {
		t.Errorf("one pair needs %d in all, want 6", n)
	}
}

// TestEquivariance checks invariants for all data: shifted data shift the estimate, mirrored data mirror it, the order
// does not matter, and the estimate lies in its interval.
func TestEquivariance(t *testing.T) {
	random := rand.New(rand.NewPCG(29, 29))
	for range 200 {
		n := 1 + random.IntN(25)
		d := draw(random, n, random.IntN(2) == 0)
		e := Paired(d, 0.05, OneLook{})
		mirrored, moved := slices.Clone(d), slices.Clone(d)
		for i := range d {
			mirrored[i], moved[i] = -d[i], d[i]+8
		}
		random.Shuffle(n, func(i, j int) { mirrored[i], mirrored[j] = mirrored[j], mirrored[i] })
		m, v := Paired(mirrored, 0.05, OneLook{}), Paired(moved, 0.05, OneLook{})
		if !near(m.Shift, -e.Shift, 1e-9) || m.Lo != -e.Hi || m.Hi != -e.Lo || !near(m.P, e.P, 1e-9) {
			t.Fatalf("mirrored %+v, was %+v", m, e)
		}
		if !near(v.Shift, e.Shift+8, 1e-9) || !near(v.Lo, e.Lo+8, 1e-9) || !near(v.Hi, e.Hi+8, 1e-9) {
			t.Fatalf("moved %+v, was %+v", v, e)
		}
		if e.Shift < e.Lo || e.Shift > e.Hi {
			t.Fatalf("the estimate lies outside its interval: %+v", e)
		}
	}
}

// FuzzStats uses bytes as values of every kind; nothing may panic, and every result must be in its range.
func FuzzStats(f *testing.F) {
	f.Add([]byte{}, 0.05)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0.05)
	f.Add([]byte{0, 0, 0, 128, 255, 254, 253, 252}, 0.5)
	f.Add([]byte{9}, math.NaN())
	f.Add(slices.Repeat([]byte{1, 2, 3}, 60), -1.0)
	g := sequential(f, 5, 9, 14)
	f.Fuzz(func(t *testing.T, data []byte, alpha float64) {
		if len(data) > 300 {
			data = data[:300]
		}
		x := make([]float64, len(data))
		for i, b := range data {
			x[i] = odd(b)
		}
		half := len(x) / 2
		for _, e := range []Estimate{Paired(x, alpha, OneLook{}), Paired(x, alpha, g), Unpaired(x[:half], x[half:], alpha)} {
			if math.IsNaN(e.Lo) || math.IsNaN(e.Hi) || e.Lo > e.Hi ||
				!(e.P >= 0 && e.P <= 1) || !(e.Attained >= 0 && e.Attained <= 1) {
				t.Errorf("%+v", e)
			}
			for _, design := range []Design{OneLook{}, g} {
				if n := PairsToDecide(e, alpha, alpha, design); n < 0 {
					t.Errorf("%d pairs to decide", n)
				}
			}
		}
		if s := Summarise(x); s.N > 0 && !(s.Q1 <= s.Median && s.Median <= s.Q3) {
			t.Errorf("%+v", s)
		}
		if lo, hi := QuantileInterval(x, alpha, 0.95); lo > hi {
			t.Errorf("quantile from %v to %v", lo, hi)
		}
		for _, q := range BenjaminiHochberg(x) {
			if !(q >= 0 && q <= 1) {
				t.Errorf("q %v", q)
			}
		}
		for _, p := range []float64{SignP(x, alpha, OneLook{}), SignP(x, alpha, g)} {
			if !(p >= 0 && p <= 1) {
				t.Errorf("p %v", p)
			}
		}
		MinSamples(alpha, alpha)
		if n := ExpectedPairs(odd(byte(len(x))), alpha, alpha, alpha, g); n < 5 || n > 14 {
			t.Errorf("%v pairs expected", n)
		}
		if s := DetectableShift(len(x)%17, alpha, 0.8, g); math.IsNaN(s) {
			t.Error("no detectable shift for several looks")
		}
		if s := DetectableShift(len(x)%12, alpha, 0.8, OneLook{}); math.IsNaN(s) {
			t.Error("no detectable shift")
		}
	})
}

// odd converts a byte to a value, including ties, zeros, infinities and NaN.
func odd(b byte) float64 {
	switch {
	case b < 200:
		return float64(int(b) - 100)
	case b < 220:
		return math.Pow(10, float64(b-200)*16) * float64(1-2*int(b%2))
	case b < 240:
		return math.MaxFloat64 * float64(1-2*int(b%2))
	case b < 250:
		return math.SmallestNonzeroFloat64
	}
	return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[b%3]
}
