package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// sequential returns a plan with the default looks.
func sequential(targets ...string) *world {
	w := newWorld(30, targets...)
	w.e.Design.Looks = []int{8, 11, 15, 21, 30}
	return w
}

// measure adds blocks of a case with the given ratio of each target to the first, and noise that never repeats.
func (w *world) measure(caseName string, from, to int, size float64, ratios ...float64) {
	for b := from; b <= to; b++ {
		for i, t := range w.e.Targets {
			ratio := 1.0
			if i > 0 {
				ratio = ratios[i-1]
			}
			w.add(b, caseName, t.Name, p50(1e-4*ratio*math.Exp(size*math.Sin(float64(7*b+3*i)*1.7))))
		}
	}
}

// plan returns the analysis plan of a world with a design that is already computed.
func (w *world) plan(t *testing.T, look stats.Design) analysisPlan {
	t.Helper()
	p, err := newAnalysisPlan(w.e)
	if err != nil {
		t.Fatal(err)
	}
	p.look = look
	return p
}

// remaining returns the cases that continue after done blocks.
func remaining(t *testing.T, look stats.Design, w *world, done int) string {
	t.Helper()
	return strings.Join(w.plan(t, look).remainingAfter(w.e, done, w.runs), " ")
}

func TestStoppingWithoutLooks(t *testing.T) {
	look := stats.OneLook{}
	w := newWorld(8, "a", "b")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(bound, result.Bound, "p50")
	w.measure(rr, 1, 8, 0.001, 2)
	for done, want := range map[int]string{0: rr + " " + bound, 7: rr + " " + bound, 8: "", 9: ""} {
		if got := remaining(t, look, w, done); got != want {
			t.Errorf("after %d blocks %q, want %q", done, got, want)
		}
	}
}

func TestStoppingOfBoundsAlone(t *testing.T) {
	w := sequential("a", "b")
	w.addCase(bound, result.Bound, "p50")
	w.measure(bound, 1, 30, 0.001, 1)
	for done, want := range map[int]string{0: bound, 8: bound, 29: bound, 30: ""} {
		if got := remaining(t, defaultLooks(t), w, done); got != want {
			t.Errorf("after %d blocks %q, want %q", done, got, want)
		}
	}
}

// TestStoppingByCase checks after which blocks four cases stop, with their bounds: one is different, one is equivalent,
// one stays undecided, one is exploratory.
func TestStoppingByCase(t *testing.T) {
	look := defaultLooks(t)
	w := sequential("a", "b")
	for i, name := range []string{"different", "equivalent", "open", "exploratory"} {
		w.addCase(name, result.Primary, "p50")
		w.addCase("bound-"+name, result.Bound, "p50")
		w.e.Cases[2*i].Bound = "bound-" + name
	}
	w.e.Cases[6].Role = result.Exploratory
	w.addCase("bound-of-none", result.Bound, "p50")
	w.measure("different", 1, 30, 0.002, 1.5)
	w.measure("equivalent", 1, 30, 0.002, 1)
	w.measure("open", 1, 30, 0.3, 1)
	w.measure("exploratory", 1, 30, 0.3, 1)
	every := "different bound-different equivalent bound-equivalent open bound-open exploratory bound-exploratory " +
		"bound-of-none"
	left := "open bound-open exploratory bound-exploratory bound-of-none"
	// At a third of alpha nothing can be rejected with 8 blocks, but with 11 it can.
	for _, c := range []struct {
		done int
		want string
	}{{0, every}, {7, every}, {8, every}, {10, every}, {11, left}, {12, left}, {21, left}, {29, left}, {30, ""}} {
		if got := remaining(t, look, w, c.done); got != c.want {
			t.Errorf("after %d blocks %q, want %q", c.done, got, c.want)
		}
	}
	if len(w.e.NotMeasured) > 0 {
		t.Error("the experiment was changed")
	}
}

// TestStoppingTheExperiment checks that gates prolong an experiment and exploratory cases do not.
func TestStoppingTheExperiment(t *testing.T) {
	look := defaultLooks(t)
	make := func(gates ...string) *world {
		w := sequential("a", "b")
		w.addCase(rr, result.Primary, "p50")
		w.addCase(stream, result.Exploratory, "p50")
		w.measure(rr, 1, 30, 0.002, 1.5)
		w.measure(stream, 1, 30, 0.3, 1)
		w.e.Gates = gates
		return w
	}
	for _, c := range []struct {
		gate, want string
	}{
		{"", ""},
		{rr + " <= +5%", ""},
		{rr + " <= +50%", rr + " " + stream}, // the truth is at the limit
		{stream + " <= +3%", stream},         // open for long, on a case that is not primary
		{"nothing <= +3%", ""},               // is not waited for
		{rr + " p99.9 <= +3%", ""},           // no run has it
		{rr + " <= 3 Gbit/s", ""},            // of another unit
		{rr + " <= +3% on nobody", ""},       // matches no target
		{rr + " <= 1s", rr + " " + stream},   // a median has ends of its interval only with more blocks
		{stream + " >= -90% on b", ""},
	} {
		w := make(c.gate)
		if c.gate == "" {
			w = make()
		}
		if got := remaining(t, look, w, 8); got != c.want {
			t.Errorf("gate %q: %q goes on, want %q", c.gate, got, c.want)
		}
	}
	w := make()
	w.e.Cases[0].Role = result.Exploratory
	// With 8 blocks no p is small enough for one of two comparisons under control of the false discovery rate.
	if got := remaining(t, look, w, 8); got != rr+" "+stream {
		t.Errorf("none is primary, 8 blocks: %q goes on", got)
	}
	if got := remaining(t, look, w, 11); got != stream {
		t.Errorf("none is primary, 11 blocks: %q goes on", got)
	}
	w.runs = slices.DeleteFunc(w.runs, func(r result.Run) bool { return r.Case == stream })
	w.measure(stream, 1, 30, 0.002, 1)
	if got := remaining(t, look, w, 11); got != "" {
		t.Errorf("none is primary and all are decided: %q goes on", got)
	}
}

// TestStoppingIsAReplay checks that decisions depend on earlier runs alone: it carries out an experiment block by
// block, and repeats every decision with all later runs known. Cases that stopped do not continue.
func TestStoppingIsAReplay(t *testing.T) {
	build := func() *world {
		w := sequential("a", "b", "c")
		for i := range 6 {
			w.addCase(fmt.Sprint("case", i), []result.Role{result.Primary, result.Exploratory}[i%2], "p50")
		}
		w.addCase(bound, result.Bound, "p50")
		w.e.Gates = []string{"case1 <= +8%", "* p50 <= 1ms on b"}
		return w
	}
	sizes := []float64{0.001, 0.01, 0.03, 0.03, 0.06, 0.3}
	w := build()
	decide, err := Stopping(w.e)
	if err != nil {
		t.Fatal(err)
	}
	var took [][]string
	for done := 0; ; done++ {
		names := decide(w.e, done, w.runs)
		took = append(took, names)
		if len(names) == 0 {
			break
		}
		for i, size := range sizes {
			if name := fmt.Sprint("case", i); slices.Contains(names, name) {
				w.measure(name, done+1, done+1, size, 1.04, 0.96)
			}
		}
	}
	counts := map[int]bool{}
	for _, names := range took {
		counts[len(names)] = true
	}
	if len(counts) < 4 {
		t.Fatalf("the cases stop at too few looks to test much: %v", counts)
	}
	again, err := Stopping(w.e)
	if err != nil {
		t.Fatal(err)
	}
	full := build()
	for i, size := range sizes {
		full.measure(fmt.Sprint("case", i), 1, 30, size, 1.04, 0.96)
	}
	for done, want := range took {
		for name, runs := range map[string][]result.Run{"resumed": w.runs, "all blocks": full.runs} {
			if diff := cmp.Diff(want, again(w.e, done, runs)); diff != "" {
				t.Errorf("%s, after %d blocks (-then +now):\n%s", name, done, diff)
			}
		}
		if done > 0 && slices.ContainsFunc(want, func(n string) bool { return !slices.Contains(took[done-1], n) }) {
			t.Errorf("after %d blocks something goes on that had stopped: %v after %v", done, want, took[done-1])
		}
		if done > 0 && !slices.Contains(w.e.Design.Looks, done) && !slices.Equal(want, took[done-1]) {
			t.Errorf("after %d blocks, between looks, something stopped", done)
		}
	}
}

// TestStoppingWithoutData checks from when on comparisons that get no more data do not keep a case going.
func TestStoppingWithoutData(t *testing.T) {
	look := defaultLooks(t)
	build := func(until int) *world {
		w := sequential("a", "b", "c")
		w.addCase(rr, result.Primary, "p50")
		w.measure(rr, 1, 30, 0.001, 1.5, 1.5)
		w.runs = slices.DeleteFunc(w.runs, func(r result.Run) bool { return r.Target == "c" && r.Block > until })
		for i := range w.runs {
			if r := &w.runs[i]; r.Target == "c" {
				r.Values[0] = p50(1e-4 * math.Exp(math.Sin(float64(r.Block)))) // decides nothing
			}
		}
		return w
	}
	w := build(0)
	if got := remaining(t, look, w, 11); got != rr {
		t.Errorf("c may still come, but %q goes on", got)
	}
	w.e.NotMeasured = []result.NotMeasured{{Target: "c", Case: "*", Reason: "no such thing"}}
	if got := remaining(t, look, w, 11); got != "" {
		t.Errorf("c was never measured, but %q goes on", got)
	}
	w = build(12)
	if got := remaining(t, look, w, 11); got != rr {
		t.Errorf("c is undecided, but %q goes on", got)
	}
	w.e.NotMeasured = []result.NotMeasured{{Target: "c", Case: rr, Reason: "given up"}}
	for done, want := range map[int]string{11: rr, 14: rr, 15: "", 16: ""} {
		if got := remaining(t, look, w, done); got != want {
			t.Errorf("c was given up at block 13; after %d blocks %q goes on, want %q", done, got, want)
		}
	}
	zeros := sequential("a", "b")
	zeros.addCase(rr, result.Primary, "loss")
	for b := 1; b <= 30; b++ {
		for _, target := range []string{"a", "b"} {
			zeros.add(b, rr, target, result.Value{Metric: "loss", Unit: unit.Ratio, Better: metric.Lower})
		}
	}
	for done, want := range map[int]string{8: rr, 21: rr, 29: rr, 30: ""} {
		if got := remaining(t, look, zeros, done); got != want {
			t.Errorf("zeros: after %d blocks %q goes on, want %q", done, got, want)
		}
	}
	zeros.e.Cases[0].Metric = "p77"
	if got := remaining(t, look, zeros, 8); got != "" {
		t.Errorf("no run has the metric, but %q goes on", got)
	}
}

// TestStoppingLeavesOutMistakes checks that runs with audit errors decide nothing.
func TestStoppingLeavesOutMistakes(t *testing.T) {
	look := defaultLooks(t)
	w := sequential("a", "b")
	w.addCase(rr, result.Primary, "p50")
	w.measure(rr, 1, 8, 0.001, 1.5)
	if got := remaining(t, look, w, 8); got != "" {
		t.Fatalf("%q goes on", got)
	}
	for i := range 4 {
		w.runs[2*i].Values = append(w.runs[2*i].Values, result.Value{Metric: "rate",
			Unit: unit.PerSecond, Better: metric.Higher})
	}
	if got := remaining(t, look, w, 8); got != rr {
		t.Errorf("four blocks have an error, but %q goes on", got)
	}
}

func TestBrokenLooks(t *testing.T) {
	for _, c := range []struct {
		looks []int
		want  string
	}{
		{[]int{8, 8, 30}, "[8 8 30] are not numbers of blocks"}, {[]int{11, 8, 30}, "each above the one before"},
		{[]int{0, 30}, "from 1 on"}, {[]int{-1, 30}, "from 1 on"},
		{[]int{8, 11}, "the last look is after 11 blocks, but there are 30"}, {[]int{1, 30}, "a look after 1 pairs"},
	} {
		w := scenario(1, 1)
		w.e.Design.Blocks, w.e.Design.Looks = 30, c.looks
		_, err := Compare(result.Results{Experiment: w.e, Runs: w.runs})
		_, again := Stopping(w.e)
		for _, err := range []error{err, again} {
			if !errors.Is(err, ErrExperiment) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: error %v, want %q", c.looks, err, c.want)
			}
		}
	}
	w := scenario(1, 1)
	w.e.Gates = []string{"p99"}
	if _, err := Stopping(w.e); !errors.Is(err, ErrExperiment) || !errors.Is(err, ErrGate) {
		t.Errorf("gate: error %v", err)
	}
}

// TestEnds checks the warnings about the number of blocks of a row.
func TestEnds(t *testing.T) {
	look := defaultLooks(t)
	build := func(blocks int, size, ratio float64) *world {
		w := sequential("a", "b")
		w.addCase(rr, result.Primary, "p50")
		w.measure(rr, 1, blocks, size, ratio)
		return w
	}
	row := func(w *world) Row {
		return w.plan(t, look).compare(result.Results{Experiment: w.e, Runs: w.runs}).Comparisons[0]
	}
	type said struct {
		Name, Sentence string
		Warnings       []Warning
	}
	var all []said
	ends := func(r Row) []Warning {
		return slices.DeleteFunc(slices.Clone(r.Warnings), func(w Warning) bool {
			return !slices.Contains([]Code{BudgetSpent, EndedEarly, FewOfPlanned}, w.Code)
		})
	}
	for _, c := range []struct {
		name    string
		w       *world
		budget  float64
		verdict Verdict
		says    string // in the sentence
		ended   []Warning
	}{
		{"stopped at the first look", build(8, 0.001, 1.5), 600, Different, "8 blocks): different", nil},
		{"stopped as equivalent", build(8, 0.001, 1), 600, Equivalent, "is equivalent", nil},
		{"budget between looks", build(13, 0.3, 1), 600, Undecided, "undecided",
			[]Warning{{Code: BudgetSpent, Count: 13, Of: 30, Seconds: 600}}},
		{"budget at a look", build(15, 0.3, 1), 45, Undecided, "undecided",
			[]Warning{{Code: BudgetSpent, Count: 15, Of: 30, Seconds: 45}}},
		{"interrupted", build(13, 0.3, 1), 0, Undecided, "undecided",
			[]Warning{{Code: EndedEarly, Count: 13, Of: 30}}},
		{"last look", build(30, 0.3, 1), 600, Undecided, "undecided at the last look; estimated change", nil},
		{"last look, blocks", build(30, 0.03, 1.01), 600, Undecided, "blocks would decide.", nil},
	} {
		c.w.e.Design.Budget = c.budget
		r := row(c.w)
		if r.Verdict != c.verdict || !slices.EqualFunc(ends(r), c.ended, Warning.Equal) ||
			!strings.Contains(r.Sentence, c.says) {
			t.Errorf("%s: %s, %q, %+v", c.name, r.Verdict, r.Sentence, r.Warnings)
		}
		all = append(all, said{c.name, r.Sentence, r.Warnings})
	}
	goldenJSON(t, "ends.json", all)
	w := build(15, 0.3, 1)
	w.runs[4].Invalid = []result.Warning{{Code: result.ShortWindow, Text: "short window"}}
	if r := row(w); !contains(r.Warnings, Warning{Code: FewOfMeasured, Count: 14, Of: 15}) {
		t.Errorf("%+v", r.Warnings)
	}
	w = build(13, 0.3, 1)
	w.e.NotMeasured = []result.NotMeasured{{Target: "*", Case: rr, Reason: "given up after 3 failed attempts"}}
	if r := row(w); len(ends(r)) > 0 {
		t.Errorf("given up, but %+v", r.Warnings)
	}
	if r := row(build(13, 0.3, 1)); strings.Contains(r.Sentence, "last look") {
		t.Errorf("%q", r.Sentence)
	}
}

// FuzzStopping checks, for experiments built from bytes, that the cases that continue are part of the plan, depend only
// on earlier blocks, and never become more.
func FuzzStopping(f *testing.F) {
	f.Add([]byte("an experiment of two targets and one case, of which little is known"), uint8(11))
	f.Add(slices.Repeat([]byte{7, 1, 33, 200, 250, 9}, 90), uint8(30))
	f.Add([]byte{}, uint8(0))
	w := sequential("a", "b", "c")
	w.addCase("one", result.Primary, "p50")
	w.addCase("two", result.Exploratory, "p50")
	w.addCase("three", result.Bound, "p50")
	w.e.Cases[0].Bound = "three"
	w.e.Gates = []string{"* <= +5%", "two >= 3", "* x <= 5s"}
	p, err := newAnalysisPlan(w.e)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, done uint8) {
		if len(data) > 900 {
			data = data[:900]
		}
		e, runs := w.e, []result.Run(nil)
		for ; len(data) >= 6; data = data[6:] {
			r := result.Run{
				ID: fmt.Sprint(len(runs)), Case: []string{"one", "two", "three", "four"}[data[0]%4],
				Target: []string{"a", "b", "c", "d"}[data[1]%4],
				Block:  int(data[2]%34) - 1, Attempt: int(data[3] % 3), Values: []result.Value{p50(oddValue(int(data[4])))},
			}
			if data[5] > 230 {
				r.Invalid = []result.Warning{{Code: "gate", Text: "gate"}}
			}
			if data[5]%50 == 0 {
				e.NotMeasured = append(e.NotMeasured, result.NotMeasured{Target: []string{"a", "b", "c", "*"}[data[1]%4],
					Case: []string{"one", "*"}[data[0]%2]})
			}
			runs = append(runs, r)
		}
		now := p.remainingAfter(e, int(done%32), runs)
		for _, name := range now {
			if !slices.ContainsFunc(e.Cases, func(rc result.Case) bool { return rc.Name == name }) {
				t.Errorf("%q is not in the plan", name)
			}
		}
		if len(e.NotMeasured) > 0 {
			return
		}
		before := slices.DeleteFunc(slices.Clone(runs), func(r result.Run) bool { return r.Block > int(done%32) })
		if again := p.remainingAfter(e, int(done%32), before); !slices.Equal(now, again) {
			t.Errorf("with later blocks %v goes on, without %v", now, again)
		}
		for _, name := range p.remainingAfter(e, int(done%32)+1, runs) {
			if !slices.Contains(now, name) {
				t.Errorf("%q had stopped and goes on", name)
			}
		}
	})
}
