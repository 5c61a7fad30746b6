package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// standingsOf reads the outcomes of pairs of A, B, C …: "A>B" A is ahead, "A=B" they are equivalent, "A~B" undecided;
// pairs that are not named have no interval.
func standingsOf(n int, pairs string) standings {
	s := undecided(n)
	for pair := range strings.FieldsSeq(pairs) {
		r := Row{Verdict: Undecided, Direction: None, CI: Interval{-0.1, 0.1}}
		switch pair[1] {
		case '>':
			r.Verdict, r.Direction = Different, WorseThan
		case '=':
			r.Verdict = Equivalent
		}
		s.set(int(pair[0]-'A'), int(pair[2]-'A'), r)
	}
	return s
}

func groupOf(n int, u unit.Unit, better metric.Better) Group {
	g := Group{Unit: u, Better: better, Declared: true}
	for i := range n {
		g.Members = append(g.Members, Member{Target: string(rune('A' + i))})
	}
	return g
}

func TestConclusions(t *testing.T) {
	for _, c := range []struct {
		n     int
		pairs string
		want  string
	}{
		{3, "", "too few blocks to tell anything apart"},
		{3, "A~B A~C B~C", "nothing can be told apart"},
		{3, "A~B", "nothing can be told apart"},
		{3, "A=B A=C B=C", "all are equivalent within ±2 %"},
		{3, "A=B A=C B~C", "no two can be told apart, or they differ by less than 2 %"},
		{3, "A>B A>C B>C", "A carries most; then B; C least"},
		{4, "A>B A>C A>D B~C B>D C>D", "A carries most; B and C cannot be told apart; D least"},
		{4, "A>B A>C A>D B=C B>D C>D", "A carries most; B and C are equivalent within ±2 %; D least"},
		{3, "A>B A>C B~C", "A carries most; B and C cannot be told apart"},
		{3, "A~B A>C B>C", "A and B carry most and cannot be told apart; C least"},
		{4, "A>B A>C A>D B>C B>D C~D", "A carries most; then B; C and D carry least and cannot be told apart"},
		{5, "A>B A>C A>D A>E B>C B>D B>E C~D C>E D>E", "A carries most; then B; then C and D, which cannot be told apart; " +
			"E least"},
		{4, "A=B A~C B~C A>D B>D C>D", "A, B and C carry most and cannot be told apart or differ by less than 2 %; D least"},
		// The ends differ, the middle is undecided against both.
		{3, "A~B A>C B~C", "A carries more than C; no other two can be told apart"},
		{4, "A~B A>C A>D B~C B>D C~D", "A carries more than C and D, B carries more than D; no other two can be told apart"},
		{4, "A>B A>C A>D B~C B>D C~D", "A carries most; B, C and D carry less than the others (of these, B carries more " +
			"than D; no other two of them can be told apart)"},
		{4, "A~B A>C B=C A>D B>D C>D", "A, B and C carry more than the others (of these, A carries more than C; no other " +
			"two of them can be told apart, or they differ by less than 2 %); D least"},
		{5, "A>B A>C A>D A>E B~C B>D C~D B>E C>E D>E", "A carries most; then B, C and D (of these, B carries more than D; " +
			"no other two of them can be told apart); E least"},
		{3, "A=B A>C B=C", "A carries more than C; any other two are equivalent within ±2 %"},
		// The order of the medians contradicts the pairs within blocks.
		{3, "B>A A>C B>C", "A and B carry more than the others (of these, B carries more than A); C least"},
		{3, "B>A A~C B~C", "B carries more than A; no other two can be told apart"},
		{3, "A>B B>C C>A", "A carries more than B, B carries more than C, C carries more than A"},
		{3, "A>B B~C A~C", "A carries more than B; no other two can be told apart"},
	} {
		g := groupOf(c.n, unit.BitPerSecond, metric.Higher)
		got := newWording(g, standingsOf(c.n, c.pairs), pairedTrial()).conclusion()
		if got != c.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", c.pairs, got, c.want)
		}
	}
}

func TestMannersOfConclusions(t *testing.T) {
	table := standingsOf(4, "A>B A>C A>D B~C B>D C>D")
	for _, c := range []struct {
		unit     unit.Unit
		better   metric.Better
		declared bool
		want     string
	}{
		{unit.Second, metric.Lower, true, "A is fastest; B and C cannot be told apart; D slowest"},
		{unit.PerSecond, metric.Higher, true, "A is best; B and C cannot be told apart; D last"},
		{unit.Ratio, metric.Lower, false, "A is best; B and C cannot be told apart; D last (exploratory)"},
	} {
		g := groupOf(4, c.unit, c.better)
		g.Declared = c.declared
		if got := newWording(g, table, pairedTrial()).conclusion(); got != c.want {
			t.Errorf("%s: %q, want %q", c.unit, got, c.want)
		}
	}
}

// TestConclusionsClaimNothingMore checks for random relations that a target called best is ahead of all others, and
// that the words express the whole relation if nothing is equivalent: two relations of three targets have the same
// words only if their letters are the same.
func TestConclusionsClaimNothingMore(t *testing.T) {
	said := map[string]string{}
	for code := range 27 {
		var pairs []string
		for k, pair := range []string{"AB", "AC", "BC"} {
			switch code / []int{1, 3, 9}[k] % 3 {
			case 0:
				pairs = append(pairs, pair[:1]+"~"+pair[1:])
			case 1:
				pairs = append(pairs, pair[:1]+">"+pair[1:])
			case 2:
				pairs = append(pairs, pair[1:]+">"+pair[:1])
			}
		}
		text := strings.Join(pairs, " ")
		words := newWording(groupOf(3, unit.BitPerSecond, metric.Higher),
			standingsOf(3, text), pairedTrial()).conclusion()
		if other, twice := said[words]; twice {
			t.Errorf("%q and %q both are %q", other, text, words)
		}
		said[words] = text
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		n := 3 + random.IntN(6)
		s := undecided(n)
		for j := range n {
			for i := range j {
				r := Row{Verdict: []Verdict{Different, Equivalent, Undecided}[random.IntN(3)],
					Direction: []Direction{BetterThan, WorseThan}[random.IntN(8)/7]}
				s.set(j, i, r)
			}
		}
		words := newWording(groupOf(n, unit.BitPerSecond, metric.Higher), s, pairedTrial()).conclusion()
		for i := range n {
			best := true
			for j := range n {
				best = best && (i == j || s[i][j].ahead)
			}
			if claimed := strings.HasPrefix(words, fmt.Sprintf("%c carries most", 'A'+i)); claimed && !best {
				t.Errorf("%q, but %v", words, s[i])
			}
		}
	}
}

func TestGroups(t *testing.T) {
	w := levelled(15, result.Primary, 1, 1.2, 1.001, 0.8)
	w.e.Design.AllPairs = true
	c := compare(t, w, nil)
	if len(c.Groups) != 1 {
		t.Fatalf("%d groups", len(c.Groups))
	}
	g := c.Groups[0]
	if !g.Declared || g.Level != 1-0.05/6 || g.Conclusion != "B carries most; C and A are equivalent within ±2 %; D "+
		"least" {
		t.Errorf("%+v", g)
	}
	var order []string
	for _, m := range g.Members {
		order = append(order, m.Target+m.Letters)
	}
	if got := strings.Join(order, " "); got != "Ba Cb Ab Dc" {
		t.Errorf("order and letters %q", got)
	}
	w.e.Baseline = "D" // the pairs are then the other way round
	if turned := compare(t, w, nil).Groups[0]; turned.Conclusion != g.Conclusion {
		t.Errorf("another baseline: %q", turned.Conclusion)
	}
	for name, change := range map[string]func(){
		"not declared": func() { w.e.Design.AllPairs = false },
		"exploratory":  func() { w.e.Design.AllPairs = true; w.e.Cases[0].Role = result.Exploratory },
	} {
		change()
		g := compare(t, w, nil).Groups[0]
		if g.Declared || g.Level != 1-0.05 || !strings.HasSuffix(g.Conclusion, "; D least (exploratory)") {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// TestGroupsGolden checks the groups of a case with overlapping neighbours, one with tiers, and one that stopped early.
func TestGroupsGolden(t *testing.T) {
	w := newWorld(12, "native", "vxlan", "ipip", "bridge", "macvlan")
	w.e.Design.AllPairs = true
	cases := []struct {
		name          string
		blocks        int
		spread, noise float64
	}{{"overlap", 12, 0.01, 2.5}, {"tiers", 12, 0.05, 0.5}, {"stopped", 6, 0.1, 0.5}}
	for k, x := range cases {
		w.addCase(x.name+"/tcp-stream", result.Primary, "throughput")
		for b := 1; b <= x.blocks; b++ {
			for i, at := range w.e.Targets {
				level := 1 + x.spread*float64(i/(1+k%2))
				w.add(b, x.name+"/tcp-stream", at.Name, throughput(9e9*level*(1+x.noise*noise(31*b+7*i+k))))
			}
		}
	}
	c := compare(t, w, nil)
	goldenJSON(t, "groups.json", c.Groups)
	lettersAgree(t, c)
}

func TestGroupsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"two targets": func(w *world) { w.e.Targets = w.e.Targets[:2] },
		"one was not measured": func(w *world) {
			w.runs = slices.DeleteFunc(w.runs, func(r result.Run) bool { return r.Target == "C" })
		},
		"a bound":      func(w *world) { w.e.Cases[0].Role = result.Bound },
		"neutral":      func(w *world) { each(w, func(v *result.Value) { v.Better = metric.Neutral }) },
		"other metric": func(w *world) { w.e.Cases[0].Metric = "p50" },
		"units differ": func(w *world) { w.runs[4].Values[0].Unit = unit.PerSecond },
	} {
		w := levelled(8, result.Primary, 1, 1.2, 0.8)
		change(w)
		if c := compare(t, w, nil); len(c.Groups) != 0 {
			t.Errorf("%s: %+v", name, c.Groups)
		}
	}
	w := levelled(4, result.Primary, 1, 1.2, 0.8)
	if g := compare(t, w, nil).Groups[0]; g.Conclusion != "too few blocks to tell anything apart (exploratory)" ||
		g.Members[2].Letters != "a" {
		t.Errorf("four blocks: %+v", g)
	}
	w = levelled(12, result.Primary, 1, 1.2, 0.8)
	w.runs[0].Values[0].Number = 0
	if g := compare(t, w, nil).Groups[0]; g.Members[1].Target != "A" ||
		g.Members[1].Blocks != 11 || g.Members[1].Letters != "b" {
		t.Errorf("the run of 0 is left out: %+v", g)
	}
	each(w, func(v *result.Value) { v.Metric, v.Better = "retransmits", metric.Lower })
	w.e.Cases[0].Metric = "retransmits"
	if g := compare(t, w, nil).Groups[0]; !strings.Contains(g.Conclusion, "no other two") {
		t.Errorf("a value of 0 has no ratio: %+v", g)
	}
}

func each(w *world, change func(v *result.Value)) {
	for i := range w.runs {
		for k := range w.runs[i].Values {
			change(&w.runs[i].Values[k])
		}
	}
}

// TestGroupLettersFollowTheRows checks on noisy experiments that the letters of each pair agree with its row.
func TestGroupLettersFollowTheRows(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	apart := 0
	for range 40 {
		w := newWorld(10, "A", "B", "C", "D", "E")
		w.addCase(stream, result.Primary, "throughput")
		w.e.Design.AllPairs = true
		for b := 1; b <= 10; b++ {
			for i, x := range w.e.Targets {
				w.add(b, stream, x.Name, throughput(1e9*(1+0.03*float64(i)+0.03*random.NormFloat64())))
			}
		}
		c := compare(t, w, nil)
		lettersAgree(t, c)
		for _, r := range c.Comparisons {
			if r.Verdict == Different {
				apart++
			}
		}
	}
	if apart < 40 || apart > 360 {
		t.Errorf("%d of 400 pairs are apart, which tests little", apart)
	}
}

// lettersAgree checks that two targets of a planned group share a letter unless their row is different.
func lettersAgree(t *testing.T, c Comparison) {
	t.Helper()
	for _, g := range c.Groups {
		letters := map[string]string{}
		for _, m := range g.Members {
			letters[m.Target] = m.Letters
		}
		for _, r := range c.Comparisons {
			a, b := letters[r.Baseline], letters[r.Target]
			if !g.Declared || r.Case != g.Case || r.Metric != g.Metric || a == "" || b == "" {
				continue
			}
			if strings.ContainsAny(a, b) == (r.Verdict == Different) {
				t.Errorf("%s and %s: %s, letters %v", r.Baseline, r.Target, r.Verdict, letters)
			}
		}
	}
}

func TestBoxes(t *testing.T) {
	w := newWorld(10, "a", "b")
	w.addCase(rr, result.Exploratory, "jitter")
	w.addCase(bound, result.Bound, "jitter")
	jitter := func(v float64) result.Value {
		return result.Value{Metric: "jitter", Unit: unit.Second, Better: metric.Lower, Number: v}
	}
	for b, v := range []float64{3, 1, 2, 4, 5, 100, 6, -50, 7} {
		w.add(b+1, rr, "a", jitter(v))
	}
	w.add(10, rr, "a", jitter(8)).Invalid = []result.Warning{{Code: "disturbed", Text: "short window"}}
	w.add(1, rr, "b", jitter(2))
	w.add(2, rr, "b", throughput(9))
	w.add(1, bound, "a", jitter(1))
	boxes := compare(t, w, nil).Boxes
	if len(boxes) != 3 {
		t.Fatalf("%+v", boxes)
	}
	// Of -50 1 2 3 4 5 6 7 100 the quartiles are 2 and 6, and a whisker ends between -4 and 12.
	a := boxes[0]
	if a.Runs != 9 || a.Q1 != 2 || a.Median != 4 || a.Q3 != 6 || a.Lowest != 1 ||
		a.Highest != 7 || !slices.Equal(a.Beyond, []Number{-50, 100}) {
		t.Errorf("%+v", a)
	}
	if b := boxes[1]; b.Target != "b" || b.Runs != 1 || b.Lowest != 2 || b.Highest != 2 || b.Beyond == nil {
		t.Errorf("%+v", b)
	}
	if n := boxes[2]; n.Case != bound || n.Target != "a" {
		t.Errorf("%+v", n)
	}
}

// TestBoxesOfPublishedForm checks that a mean latency has the boxes of published tables, and every other metric only
// its own.
func TestBoxesOfPublishedForm(t *testing.T) {
	w := newWorld(1, "a")
	w.addCase("app/vault/published", result.Primary, "mean")
	r := w.add(1, "app/vault/published", "a", result.Value{Metric: "mean",
		Unit: unit.Second, Better: metric.Lower, Number: 2})
	for i, m := range []string{"min", "p50", "p99", "max"} {
		r.Values = append(r.Values, result.Value{Metric: m, Unit: unit.Second, Better: metric.Lower, Number: float64(i + 1)})
	}
	var got []string
	for _, b := range compare(t, w, nil).Boxes {
		got = append(got, fmt.Sprintf("%s %g", b.Metric, float64(b.Median)))
	}
	if want := []string{"mean 2", "p99 3", "max 4", "min 1"}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// pairedTrial returns a table of blocks without runs.
func pairedTrial() *runTable {
	return &runTable{e: result.Experiment{Design: result.Design{Delta: 0.02}}, look: stats.OneLook{}}
}
