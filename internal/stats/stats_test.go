package stats

import (
	"encoding/json"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*math.Max(1e-12, math.Max(math.Abs(a), math.Abs(b)))
}

// TestHollanderWolfe checks the worked examples of Hollander and Wolfe, Nonparametric Statistical
// Methods, 2nd ed., pages 40, 53, 111 and 126, as R's regression tests have them (PR 1150).
func TestHollanderWolfe(t *testing.T) {
	first := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	second := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(first))
	for i := range d {
		d[i] = second[i] - first[i]
	}
	paired := Paired(d, 0.05, OneLook{})
	check(t, "paired", paired, Estimate{Shift: -0.46, Lo: -0.786, Hi: -0.010, P: 0.0390625})

	x := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	y := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	check(t, "unpaired", Unpaired(x, y, 0.05), Estimate{Shift: -0.305, Lo: -0.76, Hi: 0.15, P: 0.254412254412254})
}

func check(t *testing.T, name string, got, want Estimate) {
	t.Helper()
	round := func(v float64) float64 { return math.Round(v*1000) / 1000 }
	if round(got.Shift) != want.Shift || round(got.Lo) != want.Lo ||
		round(got.Hi) != want.Hi || !near(got.P, want.P, 1e-12) {
		t.Errorf("%s: %.4f from %.4f to %.4f, p %.6f; want %.4f from %.4f to %.4f, p %.6f",
			name, got.Shift, got.Lo, got.Hi, got.P, want.Shift, want.Lo, want.Hi, want.P)
	}
	if got.Attained < got.Level {
		t.Errorf("%s: attained %v is below the level %v", name, got.Attained, got.Level)
	}
}

// TestNormalApproximation checks the approximation for large samples on small samples of R: the sleep data, and monthly
// temperatures, with ties and continuity correction.
func TestNormalApproximation(t *testing.T) {
	one := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	two := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	if p := rankSumNormal(doubledRanks(slices.Concat(one, two)), 10); !near(p, 0.0693275754336266, 1e-9) {
		t.Errorf("rank sum: p %v", p)
	}
	low := []float64{-1.8, -2.9, 0.9, 1.5, 11.5, 18.8, 23.9, 24.9, 23.8, 19.4, 4.8}
	d := []float64{-2.0, -3.2, 1.2, 5.8, 19.6, 19.9, 28.9, 31.1, 27.9, 21.9, 7.5} // without the zero, as R does
	for i := range d {
		d[i] -= low[i]
	}
	ranks, positive := signedRanks(d)
	if p := signNormal(ranks, positive); !near(p, 0.011278190116074, 1e-6) {
		t.Errorf("signed rank: p %v", p)
	}
}

// TestCriticalTables compares with published tables.
func TestCriticalTables(t *testing.T) {
	text, err := os.ReadFile("testdata/critical.txt")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] == "#" {
			continue
		}
		tables++
		alpha, _ := strconv.ParseFloat(f[1], 64)
		from, _ := strconv.Atoi(f[2])
		for i, v := range f[3:] {
			want, err := strconv.Atoi(v)
			if err != nil {
				want = -1
			}
			var got Critical
			if f[0] == "signed-rank" {
				got = OneLook{}.Critical(from+i, alpha)
			} else {
				got = mannWhitneyCritical(from, 5+i, alpha)
			}
			if got.W != want || got.Alpha > alpha {
				t.Errorf("%s %s: entry %d is %+v, the table has %d", f[0], f[2], i, got, want)
			}
		}
	}
	if tables < 13 {
		t.Errorf("only %d tables in the file", tables)
	}
}

// An oracle holds results of another implementation.
type oracle struct {
	SignedRank []struct {
		D []float64
		P float64
	} `json:"signed_rank"`
	RankSum []struct {
		X, Y []float64
		P    float64
	} `json:"rank_sum"`
	BH []struct {
		P, Q []float64
	} `json:"benjamini_hochberg"`
	Ranks []struct {
		N             int
		Q, Confidence float64
		Lo, Hi        int
	} `json:"quantile_ranks"`
}

func TestOracle(t *testing.T) {
	text, err := os.ReadFile("testdata/scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var o oracle
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	for _, c := range o.SignedRank {
		if e := Paired(c.D, 0.05, OneLook{}); !near(e.P, c.P, 1e-9) {
			t.Errorf("signed rank of %d: p %v, want %v", len(c.D), e.P, c.P)
		}
	}
	for _, c := range o.RankSum {
		if e := Unpaired(c.X, c.Y, 0.05); !near(e.P, c.P, 1e-9) {
			t.Errorf("rank sum of %d and %d: p %v, want %v", len(c.X), len(c.Y), e.P, c.P)
		}
	}
	for _, c := range o.BH {
		for i, q := range BenjaminiHochberg(c.P) {
			if !near(q, c.Q[i], 1e-12) {
				t.Errorf("Benjamini-Hochberg of %v at %d: %v, want %v", c.P, i, q, c.Q[i])
			}
		}
	}
	for _, c := range o.Ranks {
		if lo, hi := quantileRanks(c.N, c.Q, c.Confidence); lo != c.Lo || hi != c.Hi {
			t.Errorf("ranks of %v: %d and %d", c, lo, hi)
		}
	}
	if len(o.SignedRank) < 10 || len(o.RankSum) < 8 || len(o.BH) < 3 || len(o.Ranks) < 8 {
		t.Error("the oracle is not complete")
	}
}

// TestSignEnumeration compares the distribution, the p and the interval with all sign vectors.
func TestSignEnumeration(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 12; n++ {
		for _, coarse := range []bool{false, true} {
			d := draw(random, n, coarse)
			ranks, positive := signedRanks(d)
			low, high := 0, 0
			for set := range 1 << len(ranks) {
				w := 0
				for i, r := range ranks {
					if set>>i&1 == 1 {
						w += r
					}
				}
				if w <= positive {
					low++
				}
				if w >= positive {
					high++
				}
			}
			want := math.Min(1, 2*float64(min(low, high))/float64(int(1)<<len(ranks)))
			e := Paired(d, 0.05, OneLook{})
			if !near(e.P, want, 1e-12) {
				t.Errorf("n %d of %v: p %v, enumerated %v", n, d, e.P, want)
			}
			if !coarse {
				checkInversion(t, d, e)
			}
		}
	}
}

func draw(random *rand.Rand, n int, coarse bool) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = random.NormFloat64() + 0.5
		if coarse {
			d[i] = math.Round(d[i])
		}
	}
	return d
}

// checkInversion checks that the interval contains exactly the shifts that the test does not reject, by the sum of
// ranks instead of Walsh averages.
func checkInversion(t *testing.T, d []float64, e Estimate) {
	t.Helper()
	for at := -3.0; at <= 4; at += 0.0371 {
		rejected := SignP(d, at, OneLook{}) <= 0.05
		if inside := at >= e.Lo && at <= e.Hi; inside == rejected {
			t.Fatalf("n %d: shift %v is inside %v, rejected %v; interval %v to %v", len(d), at, inside, rejected, e.Lo, e.Hi)
		}
	}
}

func TestSubsetEnumeration(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for _, size := range [][2]int{{1, 1}, {2, 3}, {4, 4}, {6, 5}, {3, 9}} {
		for _, coarse := range []bool{false, true} {
			x, y := draw(random, size[0], coarse), draw(random, size[1], coarse)
			ranks := doubledRanks(slices.Concat(x, y))
			observed := sum(ranks[len(x):])
			low, high, all := 0, 0, 0
			for set := range 1 << len(ranks) {
				if bits.OnesCount(uint(set)) != len(y) {
					continue
				}
				w := 0
				for i, r := range ranks {
					if set>>i&1 == 1 {
						w += r
					}
				}
				all++
				if w <= observed {
					low++
				}
				if w >= observed {
					high++
				}
			}
			want := math.Min(1, 2*float64(min(low, high))/float64(all))
			if e := Unpaired(x, y, 0.05); !near(e.P, want, 1e-12) {
				t.Errorf("%v: p %v, enumerated %v", size, e.P, want)
			}
		}
	}
}

// TestPairwise compares the selection with the sorted list of all values.
func TestPairwise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for n := 1; n < 30; n++ {
		x, y := draw(random, n, n%2 == 0), draw(random, n/2+1, n%3 == 0)
		slices.Sort(x)
		slices.Sort(y)
		var averages, differences []float64
		for i := range x {
			for j := i; j < n; j++ {
				averages = append(averages, x[i]/2+x[j]/2)
			}
			for j := range y {
				differences = append(differences, y[j]-x[i])
			}
		}
		compareSelection(t, walsh(x), averages)
		compareSelection(t, shifts(x, y), differences)
	}
}

func compareSelection(t *testing.T, p pairwise, all []float64) {
	t.Helper()
	slices.Sort(all)
	if p.size != len(all) {
		t.Fatalf("size %d, want %d", p.size, len(all))
	}
	for k, want := range all {
		if got := p.kth(k + 1); got != want {
			t.Fatalf("value %d of %d is %v, want %v", k+1, len(all), got, want)
		}
	}
	if got, want := p.median(), quantile(all, 0.5); !near(got, want, 1e-12) {
		t.Fatalf("median %v, want %v", got, want)
	}
}

func TestSummarise(t *testing.T) {
	s := Summarise([]float64{4, math.NaN(), 1, 3, 2, 10, math.Inf(1)})
	// R: quantile(c(4,1,3,2,10)) is 1 2 3 4 10.
	if s.N != 5 || s.Q1 != 2 || s.Median != 3 || s.Q3 != 4 {
		t.Errorf("%+v", s)
	}
	if even := Summarise([]float64{1, 2, 3, 4}); even.Q1 != 1.75 || even.Median != 2.5 || even.Q3 != 3.25 {
		t.Errorf("%+v", even)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("an empty sample has a median")
	}
}

func TestMinSamples(t *testing.T) {
	for _, c := range []struct {
		q    float64
		want int
	}{{0.5, 6}, {0.9, 36}, {0.99, 368}, {0.999, 3688}, {0.01, 368}, {0, 0}, {1, 0}, {math.NaN(), 0}} {
		got := MinSamples(c.q, 0.95)
		if got != c.want {
			t.Errorf("p%v needs %d, want %d", c.q*100, got, c.want)
		}
		if got == 0 {
			continue
		}
		for n, finite := range map[int]bool{got - 1: false, got: true} {
			lo, hi := QuantileInterval(make([]float64, n), c.q, 0.95)
			if is := !math.IsInf(lo, 0) && !math.IsInf(hi, 0); is != finite {
				t.Errorf("p%v of %d values: from %v to %v", c.q*100, n, lo, hi)
			}
		}
	}
}

func TestMinPairs(t *testing.T) {
	// 2^(1-n) must not exceed alpha over the number of hypotheses.
	for m, want := range map[int]int{1: 6, 5: 8, 10: 9, 20: 10, 40: 11, 100: 12} {
		alpha := 0.05 / float64(m)
		if got := MinPairs(alpha, OneLook{}); got != want {
			t.Errorf("%d hypotheses need %d pairs, want %d", m, got, want)
		}
		if e := Paired([]float64{1, 2, 3, 4, 5}, alpha, OneLook{}); e.Needed != want || e.Bounded() || len(e.Remarks) != 1 {
			t.Errorf("5 pairs at %v: %+v", alpha, e)
		}
	}
	if got := MinPairs(0, OneLook{}); got != 0 {
		t.Errorf("no number of pairs gives certainty, but %d", got)
	}
}

// A strict is a design with a fixed critical value.
type strict struct{}

func (strict) Looks() []int                   { return nil }
func (strict) Critical(int, float64) Critical { return Critical{W: 1, Alpha: 0.0156} }

func TestDesignIsUsed(t *testing.T) {
	d := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	e := Paired(d, 0.05, strict{})
	if e.Lo != 1.5 || e.Hi != 7.5 || e.Attained != 1-0.0156 {
		t.Errorf("with the critical value 1: %+v", e)
	}
}

func TestRemarks(t *testing.T) {
	for _, c := range []struct {
		d    []float64
		want Remark
	}{
		{nil, Remark{Kind: NoPairs}},
		{[]float64{1, 2, 3}, Remark{Kind: Unbounded, Count: 3, Needed: 6}},
		{[]float64{2, 2, 2, 2, 2, 2}, Remark{Kind: AllSame, Count: 6}},
		{[]float64{0, 0, 1, 2, 3, -1, 2}, Remark{Kind: ManyZeros, Count: 2, Of: 7}},
		{[]float64{1, 2, 3, 4, 5, 6, math.NaN()}, Remark{Kind: NotFinite, Count: 1, Of: 7}},
	} {
		e := Paired(c.d, 0.05, OneLook{})
		if !slices.Contains(e.Remarks, c.want) {
			t.Errorf("%v: %+v, want %+v", c.d, e.Remarks, c.want)
		}
	}
	if e := Paired([]float64{1, -2, 3, -4, 5, 6.5}, 0.05, OneLook{}); len(e.Remarks) != 0 {
		t.Errorf("good data: %+v", e.Remarks)
	}
}

func TestBenjaminiHochbergOfNonsense(t *testing.T) {
	got := BenjaminiHochberg([]float64{math.NaN(), 0.01, -3, 7})
	if got[0] != 1 || got[1] != 0.04 || got[2] != 1 || got[3] != 1 {
		t.Errorf("%v", got)
	}
}

// TestLargeSamples checks that the results do not jump where the normal approximation begins.
func TestLargeSamples(t *testing.T) {
	for _, alpha := range []float64{0.2, 0.05, 0.01, 0.001, 0.0001} {
		exact := critical(signDistribution(firstRanks(exactPairs+1)), alpha)
		if c := (OneLook{}).Critical(exactPairs+1, alpha); c.W > exact.W ||
			float64(c.W) < 0.98*float64(exact.W) || c.Alpha > alpha {
			t.Errorf("alpha %v: normal %+v, exact %+v", alpha, c, exact)
		}
		exact = critical(subsetDistribution(firstRanks(exactValues+1), 31)[31*32/2:], alpha)
		if c := mannWhitneyCritical(30, 31, alpha); c.W > exact.W || float64(c.W) < 0.95*float64(exact.W) || c.Alpha > alpha {
			t.Errorf("alpha %v: normal %+v, exact rank sum %+v", alpha, c, exact)
		}
	}
	random := rand.New(rand.NewPCG(4, 4))
	d := draw(random, 500, false)
	if e := Paired(d, 0.05, OneLook{}); !e.Excludes(0) || e.Lo > 0.5 || e.Hi < 0.5 {
		t.Errorf("%+v", e)
	}
}

func TestPercent(t *testing.T) {
	for level, want := range map[float64]string{0.95: "95 %", 1 - 0.05/3: "98.3 %",
		1 - 0.05/12: "99.5 %", 1 - 0.05/100: "99.95 %", 1 - 0.05/1000: "99.995 %", 0.9: "90 %"} {
		if got := Percent(level); got != want {
			t.Errorf("%v is %q, want %q", level, got, want)
		}
	}
}
