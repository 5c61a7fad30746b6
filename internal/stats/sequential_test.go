package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func sequential(t testing.TB, looks ...int) *GroupSequential {
	t.Helper()
	g, err := NewGroupSequential(looks)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// usual returns the design with the default looks. Most tests share it, because race detection makes its simulation
// slow.
var usual = sync.OnceValue(func() *GroupSequential {
	g, err := NewGroupSequential([]int{8, 11, 15, 21, 30})
	if err != nil {
		panic(err)
	}
	return g
})

func TestNewGroupSequential(t *testing.T) {
	for _, looks := range [][]int{nil, {}, {1}, {0, 8}, {-3}, {8, 8}, {11, 8}, {8, 101}, {8, 11, 10}} {
		if g, err := NewGroupSequential(looks); !errors.Is(err, ErrLooks) || g != nil {
			t.Errorf("%v: %v", looks, err)
		}
	}
	looks := []int{2, 100}
	g := sequential(t, looks...)
	looks[0] = 50
	g.Looks()[1] = 3
	if !slices.Equal(g.Looks(), []int{2, 100}) {
		t.Errorf("the looks can be changed from outside: %v", g.Looks())
	}
}

// spend returns the spending of fixed critical values up to each look.
func spend(g *GroupSequential, n int, values []int) []float64 {
	i := 0
	var all []float64
	processLooks(g.stages(n)[:len(values)], 1, func(c *column, _ int, spent float64, m mass) Critical {
		for w := 0; w <= values[i]; w++ {
			spent += m.crossing(w, 0)
		}
		i++
		all = append(all, spent)
		return Critical{W: values[i-1], Alpha: spent}
	})
	return all
}

// simulated is the accepted relative error of a simulated error probability.
const simulated = 0.01

// TestSequentialTables compares critical values with independently computed ones.
func TestSequentialTables(t *testing.T) {
	text, err := os.ReadFile("testdata/sequential.txt")
	if err != nil {
		t.Fatal(err)
	}
	designs := map[string]*GroupSequential{}
	rows := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] == "#" {
			continue
		}
		rows++
		looks := wholes(t, f[1])
		if designs[f[1]] == nil {
			designs[f[1]] = sequential(t, looks...)
		}
		alpha, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		g, values := designs[f[1]], wholes(t, strings.Join(f[3:], ","))
		if f[0] == "spent" {
			checkSpent(t, f[3:], spend(g, g.last(), values))
			continue
		}
		for i, want := range values {
			if got := g.Critical(looks[i], alpha); got.W < want-1 || got.W > want+1 {
				t.Errorf("%s: %d after %d pairs", strings.TrimSpace(line), got.W, looks[i])
			}
		}
	}
	if rows < 10 {
		t.Errorf("only %d rows", rows)
	}
}

// wholes reads integers, - as -1, up to a colon.
func wholes(t *testing.T, list string) []int {
	t.Helper()
	var all []int
	for s := range strings.SplitSeq(list, ",") {
		s, _, _ = strings.Cut(s, ":")
		if s == "-" {
			s = "-1"
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func checkSpent(t *testing.T, entries []string, got []float64) {
	t.Helper()
	for i, entry := range entries {
		_, spent, _ := strings.Cut(entry, ":")
		want, err := strconv.ParseFloat(spent, 64)
		if err != nil || !near(got[i], want, simulated) {
			t.Errorf("%v: look %d spends %v", entries, i, got[i])
		}
	}
}

// An enumeration is the exact null distribution: the probability of each vector of signs, in the order of sizes, that
// has not crossed.
type enumeration []float64

// next adds a difference with every rank and both signs.
func (e enumeration) next() enumeration {
	n := 1
	for 1<<n <= len(e) {
		n++
	}
	grown := make(enumeration, 2*len(e))
	for signs, p := range e {
		for r := range n {
			wider := signs&(1<<r-1) | signs>>r<<(r+1)
			grown[wider] += p / float64(2*n)
			grown[wider|1<<r] += p / float64(2*n)
		}
	}
	return grown
}

// rankSum returns min(W+, W-) of a vector of signs.
func rankSum(signs, n int) int {
	w := 0
	for r := range n {
		w += (signs >> r & 1) * (r + 1)
	}
	return min(w, n*(n+1)/2-w)
}

// look removes the vectors that cross at c or below, and returns their probability, and the probability that c + 1
// would add.
func (e enumeration) look(n, c int) (spent, next float64) {
	for signs, p := range e {
		w := rankSum(signs, n)
		if w <= c+1 {
			next += p
		}
		if w <= c {
			spent += p
			e[signs] = 0
		}
	}
	return spent, next
}

// TestSequentialEnumeration checks critical values by the exact distribution of all sequences, also for unusual looks
// and ends between looks: they spend the probability that they return, no more than allowed, and the next value would
// spend too much; all within the accuracy of the simulation.
func TestSequentialEnumeration(t *testing.T) {
	for _, c := range []struct {
		looks []int // declared
		at    []int // taken
	}{
		{[]int{6, 9, 11, 13}, []int{6, 9, 11, 13}}, {[]int{8, 11, 15}, []int{8, 10}},
		{[]int{8, 11, 15}, []int{8, 11, 12}}, {[]int{2, 3, 4, 5, 6, 7, 8, 9, 10}, []int{2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		g := sequential(t, c.looks...)
		for _, alpha := range []float64{0.3, 0.05, 0.004} {
			law, n, spent := enumeration{1}, 0, 0.0
			for _, look := range c.at {
				for ; n < look; n++ {
					law = law.next()
				}
				got, may := g.Critical(n, alpha), g.spendable(n, alpha)
				more, next := law.look(n, got.W)
				next += spent
				spent += more
				if !near(got.Alpha, spent, simulated) || spent > may*(1+simulated) || next < may*(1-simulated) {
					t.Errorf("looks %v at %v after %d: %+v may spend %v; it spends %v, one more %v",
						c.looks, alpha, n, got, may, spent, next)
				}
			}
		}
	}
}

// TestNullLaw checks the simulated paths against exact results: the distribution of W+ at each look before it is
// adjusted to the exact one, down to probabilities that fair coins would hardly show. It also checks that the first
// look equals a test with one look at the spending allowed there.
func TestNullLaw(t *testing.T) {
	for _, g := range []*GroupSequential{usual(), sequential(t, 70, 100)} {
		for _, n := range g.looks {
			g.Critical(n, 0.05)
			c := g.column(n)
			seen, exact := 0.0, 0.0
			for w := range len(c.exact) - 1 {
				seen, exact = seen+c.total[w]/float64(len(c.rank)), exact+c.exact[w]/2
				if exact > 1e-6 && !near(seen, exact, 0.1) {
					t.Fatalf("%d pairs: W+ is at most %d with %v, simulated %v", n, w, exact, seen)
				}
			}
		}
		first := g.looks[0]
		for _, alpha := range []float64{0.2, 0.05, 0.001, 1e-5, 1e-8} {
			want := critical(signDistribution(firstRanks(first)), g.spendable(first, alpha))
			if got := g.Critical(first, alpha); got.W != want.W || !near(got.Alpha, want.Alpha, 1e-12) {
				t.Errorf("%d pairs at %v: %+v, want %+v", first, alpha, got, want)
			}
		}
	}
}

// TestSequentialBounds checks properties that hold for every alpha and every number of pairs.
func TestSequentialBounds(t *testing.T) {
	g, again := usual(), sequential(t, 8, 11, 15, 21, 30)
	again.Critical(13, 0.02) // asked in another order
	for _, alpha := range []float64{0.99, 0.5, 0.05, 0.05 / 7, 0.05 / 300, 1e-5} {
		before := 0.0
		for _, n := range []int{-1, 0, 1, 8, 11, 13, 15, 18, 21, 30, 31} {
			c := g.Critical(n, alpha)
			inside := n >= 1 && n <= 30
			if !inside && c != (Critical{W: -1}) {
				t.Errorf("%d pairs at %v: %+v", n, alpha, c)
			}
			if !inside {
				continue
			}
			if c.W < -1 || c.W >= n*(n+1)/4+1 || c.Alpha < before-1e-15 || c.Alpha > g.spendable(n, alpha) || c.Alpha > alpha {
				t.Errorf("%d pairs at %v: %+v after %v", n, alpha, c, before)
			}
			if slices.Contains(g.looks, n) {
				before = c.Alpha
			}
			if n%9 == 4 && again.Critical(n, alpha) != c {
				t.Errorf("%d pairs at %v: %+v depends on what was asked before", n, alpha, c)
			}
		}
		if unspent := 1 - before/alpha; alpha >= 1e-5 && unspent > 0.08 {
			t.Errorf("at %v a share of %v is never spent", alpha, unspent)
		}
	}
	for _, alpha := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1)} {
		if c := g.Critical(8, alpha); c.W != -1 || c.Alpha != 0 {
			t.Errorf("alpha %v: %+v", alpha, c)
		}
	}
}

// TestRepeatedP checks the repeated p: it falls with the statistic, agrees with the critical values, and is ever at
// most alpha with at most that probability.
func TestRepeatedP(t *testing.T) {
	g := usual()
	for _, n := range []int{1, 8, 11, 13, 15, 18, 21, 30} {
		before := 0.0
		for w := range n*(n+1)/4 + 1 {
			p := g.repeatedP(n, w)
			if p < before || p > 1 || p <= 0 {
				t.Fatalf("%d pairs, W %d: p %v after %v", n, w, p, before)
			}
			before = p
		}
		for _, alpha := range []float64{0.1, 0.05, 0.01, 0.001} {
			c := g.Critical(n, alpha)
			if p := g.repeatedP(n, c.W); c.W >= 0 && p > 1.2*alpha {
				t.Errorf("%d pairs: the critical value of %v has p %v", n, alpha, p)
			}
			if p := g.repeatedP(n, c.W+2+n/6); p <= alpha {
				t.Errorf("%d pairs: well above the critical value of %v p is %v", n, alpha, p)
			}
		}
	}
	for _, n := range []int{-1, 0, 31} {
		if p := g.repeatedP(n, 0); p != 1 {
			t.Errorf("%d pairs: p %v", n, p)
		}
	}
}

// A noise is a distribution of differences around their centre that may change from pair to pair.
type noise struct {
	name  string
	draw  func(random *rand.Rand, i int) float64
	worst float64 // the factor on alpha that is stated for it
}

func normalNoise(scale func(i int) float64) func(*rand.Rand, int) float64 {
	return func(random *rand.Rand, i int) float64 { return scale(i) * random.NormFloat64() }
}

func noises() []noise {
	return []noise{
		{"normal", normalNoise(func(int) float64 { return 1 }), 1},
		{"t with 3 degrees of freedom", func(random *rand.Rand, _ int) float64 {
			a, b, c := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
			return random.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
		}, 1},
		{"shrinking fourfold", normalNoise(func(i int) float64 { return 4 - float64(i)/10 }), 1},
		{"a burst early", normalNoise(func(i int) float64 {
			if i < 5 {
				return 5
			}
			return 1
		}), 1},
		{"growing fourfold", normalNoise(func(i int) float64 { return 1 + float64(i)/10 }), 1.15},
	}
}

// leastByRanks computes min(W+, W-) from its definition.
func leastByRanks(d []float64) int {
	sorted := slices.Clone(d)
	slices.SortFunc(sorted, func(a, b float64) int {
		if math.Abs(a) < math.Abs(b) {
			return -1
		}
		return 1
	})
	w := 0
	for r, v := range sorted {
		if v > 0 {
			w += r + 1
		}
	}
	return min(w, len(d)*(len(d)+1)/2-w)
}

// TestSequentialError simulates A/A experiments up to the last look, and counts those with an interval without 0 at any
// look, or with a p of at most alpha.
func TestSequentialError(t *testing.T) {
	const trials = 10000
	g := usual()
	alphas := []float64{0.05, 0.01, 0.001}
	for _, kind := range noises() {
		random := rand.New(rand.NewPCG(31, 31))
		excluded, small := make([]int, len(alphas)), make([]int, len(alphas))
		for range trials {
			d := make([]float64, 30)
			for i := range d {
				d[i] = kind.draw(random, i)
			}
			crossed, p := make([]bool, len(alphas)), 1.0
			for _, n := range g.looks {
				w := leastByRanks(d[:n])
				p = math.Min(p, g.repeatedP(n, w))
				for a, alpha := range alphas {
					crossed[a] = crossed[a] || w <= g.Critical(n, alpha).W
				}
			}
			for a, alpha := range alphas {
				if crossed[a] {
					excluded[a]++
				}
				if p <= alpha {
					small[a]++
				}
			}
		}
		for a, alpha := range alphas {
			limit := int(trials * (kind.worst*alpha + standardErrors(alpha, trials)))
			if excluded[a] > limit || small[a] > limit {
				t.Errorf("%s: at %v %d of %d experiments err, %d by p; at most %d",
					kind.name, alpha, excluded[a], trials, small[a], limit)
			}
			if least := int(trials * (0.8*alpha - standardErrors(alpha, trials))); kind.name == "normal" && excluded[a] < least {
				t.Errorf("%s: at %v only %d of %d experiments err: alpha is wasted", kind.name, alpha, excluded[a], trials)
			}
		}
	}
}

// TestRepeatedIntervals checks by simulation that all intervals of an experiment together cover the truth, and that
// interval and p agree, also with ties and zeros.
func TestRepeatedIntervals(t *testing.T) {
	const trials, effect, alpha = 1000, 0.5, 0.05
	g := usual()
	random := rand.New(rand.NewPCG(37, 37))
	missed := 0
	for i := range trials {
		all := true
		d := make([]float64, 30)
		for i := range d {
			d[i] = effect + random.NormFloat64()
		}
		for _, n := range g.looks {
			e := Paired(d[:n], alpha, g)
			all = all && !e.Excludes(effect)
			if want := leastByRanks(d[:n]) <= g.Critical(n, alpha).W; e.Excludes(0) != want {
				t.Fatalf("%d pairs: the interval says %v, the ranks %v", n, e.Excludes(0), want)
			}
			agrees(t, e, alpha)
		}
		if !all {
			missed++
		}
		coarse := draw(random, []int{1, 8, 11, 13, 15, 21, 30, 31}[random.IntN(8)], true)
		if i%4 == 0 {
			agrees(t, Paired(coarse, alpha, g), alpha)
		}
	}
	if rate := float64(missed) / trials; rate > alpha+standardErrors(alpha, trials) {
		t.Errorf("some interval misses the truth in %v of the experiments", rate)
	}
}

func agrees(t *testing.T, e Estimate, alpha float64) {
	t.Helper()
	if e.Excludes(0) != (e.P <= alpha) || !(e.P > 0 && e.P <= 1) || e.Attained < e.Level {
		t.Fatalf("%+v", e)
	}
}

// TestSignPOfLooks checks the p of a hypothesis against the intervals at other alphas, except very small ones: there
// the steps of the spending are so coarse that a larger alpha, which lets an early look reject something, may leave a
// late look less.
func TestSignPOfLooks(t *testing.T) {
	g := usual()
	random := rand.New(rand.NewPCG(41, 41))
	for _, n := range []int{8, 11, 13, 21, 30} {
		d := draw(random, n, false)
		for _, at := range []float64{-0.6, 0, 0.2, 0.9} {
			p := SignP(d, at, g)
			if p > 0.9 || p < 0.003 {
				continue
			}
			if e := Paired(d, math.Min(0.99, 1.3*p), g); !e.Excludes(at) {
				t.Errorf("%d pairs: p of %v is %v, but the interval at 1.3 times that has it: %+v", n, at, p, e)
			}
			if e := Paired(d, p/1.3, g); e.Excludes(at) {
				t.Errorf("%d pairs: p of %v is %v, but the interval at 1/1.3 of that has it not: %+v", n, at, p, e)
			}
		}
	}
	for _, at := range []float64{math.NaN(), math.Inf(1)} {
		if p := SignP([]float64{1, 2, 3}, at, g); p != 1 {
			t.Errorf("at %v: p %v", at, p)
		}
	}
	zeros := make([]float64, 30)
	if p := SignP(zeros, 0, g); p != 1 {
		t.Errorf("nothing but zeros: p %v", p)
	}
	if p := SignP(draw(random, 31, false), 0, g); p != 1 {
		t.Errorf("beyond the last look: p %v", p)
	}
}

// A designWithoutP is a design with looks but without repeated p-values.
type designWithoutP struct{}

func (designWithoutP) Looks() []int { return []int{8, 11} }
func (designWithoutP) Critical(n int, _ float64) Critical {
	return Critical{W: 1, Alpha: 0.0156}
}

func TestForeignDesign(t *testing.T) {
	d := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	if e := Paired(d, 0.05, designWithoutP{}); e.P != 0.05 || !e.Excludes(0) {
		t.Errorf("%+v", e)
	}
	if p := SignP(d, 0, designWithoutP{}); p != 1 {
		t.Errorf("p %v is that of one look", p)
	}
}

// TestExpectedPairs compares with an independent simulation of the whole rule (3000 experiments of up to 30 pairs,
// alpha 0.05), and checks arguments that need no simulation.
func TestExpectedPairs(t *testing.T) {
	g := usual()
	for _, c := range []struct{ spread, shift, margin, want float64 }{
		{0.01, 0, 0.02, 8.3}, {0.02, 0, 0.02, 15.8}, {0.042, 0, 0.05, 12.3}, {0.042, 0, 0.02, 29},
		{1, 0.5, 0, 23.5}, {1, 1, 0, 12.6}, {1, 2, 0, 8.2},
	} {
		if got := ExpectedPairs(c.spread, c.shift, c.margin, 0.05, g); math.Abs(got-c.want) > 0.3 {
			t.Errorf("spread %v, shift %v, margin %v: %.2f pairs, want %v", c.spread, c.shift, c.margin, got, c.want)
		}
	}
	for _, c := range []struct {
		spread, shift, margin, alpha, want float64
	}{
		{0, 0.1, 0.02, 0.05, 8}, {0, 0, 0.02, 0.05, 8}, {1, 0, 0, 1e-9, 30},
		{0.01, -0.1, 0.02, 0.05, 8}, {0.01, 0.1, 0.02, 0.01, 11},
	} {
		if got := ExpectedPairs(c.spread, c.shift, c.margin, c.alpha, g); got != c.want {
			t.Errorf("%+v: %v pairs", c, got)
		}
	}
	for _, got := range []float64{
		ExpectedPairs(0.01, 0, 0.02, 0.05, OneLook{}),
		ExpectedPairs(-1, 0, 0.02, 0.05, g), ExpectedPairs(math.NaN(), 0, 0.02, 0.05, g),
		ExpectedPairs(1, math.Inf(1), 0.02, 0.05, g), ExpectedPairs(math.Inf(1), 0, 0.02, 0.05, g),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%v pairs", got)
		}
	}
}

// TestRTables compares with R's own distributions.
func TestRTables(t *testing.T) {
	text, err := os.ReadFile("testdata/r.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] == "#" {
			continue
		}
		seen++
		var numbers []float64
		for _, s := range slices.Concat(f[1:len(f)-2], f[len(f)-1:]) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, v)
		}
		n, want := int(numbers[1]), numbers[len(numbers)-1]
		var law []float64
		if f[0] == "psignrank" {
			law = signDistribution(firstRanks(n))
		} else {
			law = subsetDistribution(firstRanks(n+int(numbers[2])), n)[n*(n+1)/2:]
		}
		split := int(numbers[0]) + 1
		got, tolerance := math.Log(total(law[split:])), 1e-9
		if f[len(f)-2] == "lower" {
			got, tolerance = total(law[:split]), 1e-7
		}
		if !near(got, want, tolerance) {
			t.Errorf("%s: %v", strings.TrimSpace(line), got)
		}
	}
	if seen < 5 {
		t.Errorf("only %d values", seen)
	}
}

func total(p []float64) float64 {
	all := 0.0
	for _, v := range p {
		all += v
	}
	return all
}

// TestWilcoxTest compares with printed results of R's wilcox.test.
func TestWilcoxTest(t *testing.T) {
	x := []float64{-2, 4, 8, 25, -5, 16, 3, 1, 12, 17, 20, 9} // mu = 15: p-value 0.05224609
	if p := SignP(x, 15, OneLook{}); !near(p, 0.05224609, 1e-6) {
		t.Errorf("p %v", p)
	}
	before := []float64{51.2, 46.5, 24.1, 10.2, 65.3, 92.1, 30.3, 49.2}
	after := []float64{45.8, 41.3, 15.8, 11.1, 58.5, 70.3, 31.6, 35.4}
	d := make([]float64, len(before))
	for i := range d {
		d[i] = before[i] - after[i]
	}
	// Greater: p-value 0.01953, from 2.15 with 95 % confidence, pseudo-median 6.6.
	if e := Paired(d, 0.1, OneLook{}); !near(e.Shift, 6.6, 1e-9) ||
		!near(e.Lo, 2.15, 1e-9) || !near(e.P/2, 0.01953, 1e-3) {
		t.Errorf("%+v", e)
	}
}

// TestEquivalenceExits simulates experiments whose true change is exactly the margin: few may be called equivalent,
// even though an experiment may stop at any look.
func TestEquivalenceExits(t *testing.T) {
	const trials, alpha, margin = 3000, 0.05, 0.02
	g := usual()
	random := rand.New(rand.NewPCG(43, 43))
	wrong := 0
	for range trials {
		d := make([]float64, 30)
		for i := range d {
			d[i] = margin + 0.02*random.NormFloat64()
		}
		for _, n := range g.looks {
			if e := Paired(d[:n], alpha, g); e.Lo > -margin && e.Hi < margin {
				wrong++
				break
			}
		}
	}
	if rate := float64(wrong) / trials; rate > alpha/2+standardErrors(alpha/2, trials) {
		t.Errorf("%v of the experiments are called equivalent", rate)
	}
}

// TestSequentialPlanning checks power and numbers of pairs of designs with looks.
func TestSequentialPlanning(t *testing.T) {
	const trials, power = 3000, 0.8
	g := usual()
	for _, alpha := range []float64{0.05, 0.01} {
		shift := DetectableShift(30, alpha, power, g)
		if one := DetectableShift(30, alpha, power, OneLook{}); !(shift > one && shift < 1.25*one) {
			t.Errorf("at %v several looks find %v, one look %v", alpha, shift, one)
		}
		random := rand.New(rand.NewPCG(47, 47))
		found := 0
		for range trials {
			d := make([]float64, 30)
			for i := range d {
				d[i] = shift + random.NormFloat64()
			}
			for _, n := range g.looks {
				if leastByRanks(d[:n]) <= g.Critical(n, alpha).W {
					found++
					break
				}
			}
		}
		if rate := float64(found) / trials; math.Abs(rate-power) > 2*standardErrors(power, trials) {
			t.Errorf("at %v a shift of %v is found in %v of the experiments", alpha, shift, rate)
		}
	}
	if s := DetectableShift(31, 0.05, power, g); !math.IsInf(s, 1) {
		t.Errorf("beyond the last look a shift of %v can be found", s)
	}
	for alpha, want := range map[float64]int{0.05: 8, 0.01: 11, 0.05 / 120: 15, 1e-5: 21, 1e-12: 0} {
		if got := MinPairs(alpha, g); got != want {
			t.Errorf("at %v the first look is after %d pairs, want %d", alpha, got, want)
		}
	}
}

// TestPairsToDecideOfLooks checks that the result is one of the design's looks.
func TestPairsToDecideOfLooks(t *testing.T) {
	g := usual()
	estimate := func(n int, half float64) Estimate {
		return Estimate{N: n, Lo: -half, Hi: half, Spread: 1}
	}
	for _, c := range []struct {
		e    Estimate
		want int
	}{
		{estimate(8, 1.05), 11}, {estimate(8, 1.3), 15}, {estimate(11, 1.3), 21},
		{estimate(15, 1.4), 30}, {estimate(21, 1.01), 30},
		{estimate(21, 1.5), 48}, {estimate(30, 1.0001), 31}, {estimate(8, 0.9), 0}, {estimate(3, math.Inf(1)), 8},
	} {
		if got := PairsToDecide(c.e, 1, 0.05, g); got != c.want {
			t.Errorf("%d pairs, ± %v: %d in all, want %d", c.e.N, c.e.Hi, got, c.want)
		}
	}
}

func TestSequentialRemarks(t *testing.T) {
	g := usual()
	for _, c := range []struct {
		n     int
		alpha float64
		want  Remark
	}{
		{31, 0.05, Remark{Kind: PastLastLook, Count: 31, Of: 30}},
		{5, 0.05, Remark{Kind: Unbounded, Count: 5, Needed: 8}},
		{8, 1e-12, Remark{Kind: NeverBounded, Count: 8}},
	} {
		e := Paired(make([]float64, c.n), c.alpha, g)
		if e.Bounded() || !slices.Contains(e.Remarks, c.want) {
			t.Errorf("%d pairs: %+v, want %+v", c.n, e.Remarks, c.want)
		}
	}
}

// TestSequentialConcurrently uses one design from several goroutines.
func TestSequentialConcurrently(t *testing.T) {
	g, alone := sequential(t, 4, 6), sequential(t, 4, 6)
	ask := func(g *GroupSequential, i int) string {
		n, alpha := 4+i%4, 0.5/float64(1+i%3)
		return fmt.Sprint(g.Critical(n, alpha), g.repeatedP(n, i%5))
	}
	got := make([]string, 40)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() { got[i] = ask(g, i) })
	}
	group.Wait()
	for i := range got {
		if want := ask(alone, i); got[i] != want {
			t.Errorf("question %d: %s, alone %s", i, got[i], want)
		}
	}
}

// FuzzLooks builds designs from bytes.
func FuzzLooks(f *testing.F) {
	f.Add([]byte{4, 7, 9}, 0.05, 8)
	f.Add([]byte{2, 3, 4}, 1e-300, 3)
	f.Add([]byte{20}, 0.999, 20)
	f.Add([]byte{5, 5}, math.NaN(), -1)
	f.Fuzz(func(t *testing.T, data []byte, alpha float64, n int) {
		looks := make([]int, len(data))
		for i, b := range data {
			looks[i] = int(b)
		}
		g, err := NewGroupSequential(looks)
		if err != nil {
			return
		}
		c := g.Critical(n, alpha)
		if c.W < -1 || !(c.Alpha >= 0 && c.Alpha <= 1) || c.W >= 0 && c.Alpha > alpha {
			t.Errorf("looks %v, %d pairs at %v: %+v", looks, n, alpha, c)
		}
		if p := g.repeatedP(n, c.W); !(p >= 0 && p <= 1) {
			t.Errorf("looks %v, %d pairs: p %v of %d", looks, n, p, c.W)
		}
	})
}
