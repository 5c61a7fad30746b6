package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A world is an experiment built by hand: the values of each target, block by block.
type world struct {
	e    result.Experiment
	runs []result.Run
}

const (
	rr     = "pod-pod/other/tcp-rr"
	stream = "pod-pod/other/tcp-stream"
	bound  = "node-node/tcp-rr"
)

// newWorld returns a plan of the named targets, the first of them the baseline, without cases and runs.
func newWorld(blocks int, targets ...string) *world {
	w := &world{e: result.Experiment{
		Schema: result.ExperimentSchema, ID: "2026-12-01-a1b2", Seed: 7,
		Version: "test", Suite: "network:quick", Tool: "native",
		Design:   result.Design{Kind: "randomised complete blocks", Blocks: blocks, Duration: 1, Alpha: 0.05, Delta: 0.02},
		Baseline: targets[0],
	}}
	for _, t := range targets {
		w.e.Targets = append(w.e.Targets, result.Target{Name: t, Spec: result.SpecOf(t), Underlay: "one"})
	}
	return w
}

func (w *world) addCase(name string, role result.Role, metric string) {
	c := family.List{network.Family(), storage.Family()}.ImportedCase(name)
	c.Role, c.Metric = role, metric
	w.e.Cases = append(w.e.Cases, c)
}

// add appends a valid run with one value; the slot is the target's place in the plan, rotated by one with each block.
func (w *world) add(block int, caseName, target string, v result.Value) *result.Run {
	slot := slices.IndexFunc(w.e.Targets, func(t result.Target) bool { return t.Name == target })
	w.runs = append(w.runs, result.Run{
		Schema: result.RunSchema, ID: fmt.Sprintf("%s-%s-%d-%d",
			target, strings.ReplaceAll(caseName, "/", "-"), block, len(w.runs)),
		Case: caseName, Target: target, Block: block, Attempt: 1, Slot: (slot+block)%len(w.e.Targets) + 1,
		Start: time.Date(2026, 12, 1, 10, 0, len(w.runs), 0, time.UTC), Window: 1, Tool: "native", Values: []result.Value{v},
	})
	return &w.runs[len(w.runs)-1]
}

func p50(seconds float64) result.Value {
	return result.Value{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: seconds}
}

func throughput(rate float64) result.Value {
	return result.Value{Metric: "throughput", Unit: unit.BitPerSecond, Better: metric.Higher, Number: rate}
}

// noise returns reproducible noise of at most half a percent, different for each i.
func noise(i int) float64 { return 0.005 * math.Sin(float64(i)*2.3+0.7) }

// typical returns 11 blocks of two cases with a bound on three targets, of which one is slower and one is alike.
func typical() *world {
	w := newWorld(11, "lab:native", "lab:vxlan", "lab:again")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(stream, result.Primary, "throughput")
	w.addCase(bound, result.Bound, "p50")
	w.e.Cases[0].Bound = bound
	w.e.NotMeasured = []result.NotMeasured{{Target: "lab:ipsec",
		Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"}}
	for b := 1; b <= 11; b++ {
		drift := 1 + 0.01*[]float64{5, 4, 11, 1, 3, 9, 10, 8, 2, 6, 7}[b-1] // of no direction
		for i, t := range w.e.Targets {
			factor := []float64{1, 1.074, 1.001}[i] * (1 + noise(3*b+i))
			r := w.add(b, rr, t.Name, p50(40e-6*drift*factor))
			r.Values = append(r.Values,
				result.Value{Metric: "p99", Unit: unit.Second, Better: metric.Lower,
					Number: 90e-6 * drift * factor * (1 + 5*noise(7*b+i))},
				result.Value{Metric: "retransmits", Unit: unit.Count, Better: metric.Lower, Number: float64(b * i % 3)},
				result.Value{Metric: "transactions", Unit: unit.Count, Number: 1000})
			r.Facts = []result.Fact{{Name: "loop", Value: "closed"}, {Name: "path-mtu",
				Value: []string{"1500", "1450", "1500"}[i]}, {Name: "warmup.left-out", Value: strconv.Itoa(100*b + i)}}
			w.add(b, stream, t.Name, throughput(9.1e9/drift/factor))
		}
		w.add(b, bound, "lab:native", p50(30e-6*drift*(1+noise(b))))
	}
	for i := range w.runs {
		w.runs[i].Facts = append(w.runs[i].Facts, result.Fact{Name: "cpu.shared", Value: "true"})
		w.runs[i].Warnings = []result.Warning{{Code: "clock-source", Text: "the clock source is hpet"}}
	}
	return w
}

func labFacts() map[string][]result.Fact {
	return map[string][]result.Fact{
		"lab:native": {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1500"}, {Name: "cpu.governor",
			Value: result.Unknown}, {Name: "provider", Value: result.Unknown}, {Name: "datapath", Value: "native"}},
		"lab:vxlan": {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1450"},
			{Name: "cpu.governor", Value: "powersave"}, {Name: "provider", Value: result.Unknown},
			{Name: "datapath", Value: "vxlan"}, {Name: "vxlan.port", Value: "4789"}},
		"lab:again": {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1500"},
			{Name: "cpu.governor", Value: "performance"}, {Name: "datapath", Value: "native"}},
	}
}

func compare(t *testing.T, w *world, facts map[string][]result.Fact) Comparison {
	t.Helper()
	c, err := Compare(result.Results{Experiment: w.e, Runs: w.runs, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goldenJSON compares v, as indented JSON, with a file.
func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/"+name, string(got)+"\n")
}

func TestCompareGolden(t *testing.T) {
	c := compare(t, typical(), labFacts())
	goldenJSON(t, "typical.json", c)

	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Comparison
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("reading and writing again changes the text (%v)", err)
	}
}

// TestContract checks the names and types of knotmeter/comparison/v1 that readers rely on.
func TestContract(t *testing.T) {
	const rowKeys = "case metric unit better role target blocks baseline_median target_median change ci verdict " +
		"direction warnings"
	text, err := json.Marshal(compare(t, typical(), labFacts()))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c["schema"] != "knotmeter/comparison/v1" || c["baseline"] != "lab:native" ||
		c["alpha"] != 0.05 || c["primaries"] != 4.0 {
		t.Errorf("head: %v %v %v %v", c["schema"], c["baseline"], c["alpha"], c["primaries"])
	}
	row := c["comparisons"].([]any)[0].(map[string]any)
	for key := range strings.FieldsSeq(rowKeys) {
		if _, ok := row[key]; !ok {
			t.Errorf("a comparison has no %q", key)
		}
	}
	if ci := row["ci"].([]any); len(ci) != 2 || ci[0].(float64) >= row["change"].(float64) ||
		ci[1].(float64) <= row["change"].(float64) {
		t.Errorf("the change %v is not inside %v", row["change"], ci)
	}
	differs := c["also_differs"].(map[string]any)["lab:vxlan"].([]any)
	if want := []any{"cpu.governor (unknown)", "mtu", "path-mtu", "vxlan.port"}; !slices.Equal(differs, want) {
		t.Errorf("also differs: %v, want %v", differs, want)
	}
	if m := c["not_measured"].([]any)[0].(map[string]any); m["target"] != "lab:ipsec" ||
		m["case"] != "*" || m["reason"] == "" {
		t.Errorf("not measured: %v", m)
	}
}

// TestEmptyIsNoNull checks that an experiment without runs has lists, not nulls, and a row for every planned
// comparison.
func TestEmptyIsNoNull(t *testing.T) {
	w := typical()
	w.runs, w.e.NotMeasured = nil, nil
	c := compare(t, w, nil)
	if len(c.Comparisons) != 4 || c.Primaries != 4 {
		t.Errorf("%d rows, %d primaries", len(c.Comparisons), c.Primaries)
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if list := slices.Contains([]string{`"warnings"`, `"findings"`, `"comparisons"`, `"not_measured"`, `"pairs"`,
			`"targets"`, `"reasons"`, `"also_differs"`, `"differences"`}, key); list && strings.HasPrefix(value, "null") {
			t.Errorf("%s", line)
		}
	}
	for _, r := range c.Comparisons {
		if r.Verdict != Undecided || len(r.Warnings) == 0 || r.CI.Bounded() {
			t.Errorf("%+v", r)
		}
	}
}

// scenario returns blocks of one primary case with the given ratios.
func scenario(ratios ...float64) *world {
	w := newWorld(len(ratios), "a", "b")
	w.addCase(rr, result.Primary, "p50")
	for i, ratio := range ratios {
		w.add(i+1, rr, "a", p50(1e-4*(1+noise(i))))
		w.add(i+1, rr, "b", p50(1e-4*(1+noise(i))*ratio))
	}
	return w
}

// spreadOver returns n ratios spread evenly between two.
func spreadOver(lo, hi float64, n int) []float64 {
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = lo + (hi-lo)*float64(i)/float64(n-1)
	}
	return ratios
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name      string
		ratios    []float64
		verdict   Verdict
		direction Direction
		sentence  string
	}{
		{"slower", spreadOver(1.09, 1.11, 11), Different, WorseThan, "p50 is 10.0 % higher than a (95 % CI +9.5 % to " +
			"+10.5 %, 11 blocks): different, worse, by more than the 2 % that matter."},
		{"faster", spreadOver(0.89, 0.91, 11), Different, BetterThan, "p50 is 10.0 % lower than a"},
		{"slightly slower", spreadOver(1.01, 1.03, 11), Different, WorseThan,
			"different, worse, perhaps by less than the 2 % that matter."},
		{"alike", spreadOver(0.99, 1.01, 11), Equivalent, None, "is equivalent to a within ±2 % (change"},
		{"alike but slower", spreadOver(1.002, 1.01, 11), Equivalent, WorseThan, "): worse, but by less than matters."},
		{"noisy", spreadOver(0.8, 1.2, 11), Undecided, None, "11 blocks), where 2 % matter; about"},
		{"few", spreadOver(1.4, 1.5, 5), Undecided, None,
			"no bounds at 95 % confidence, 5 blocks), where 2 % matter; about 6 blocks would decide."},
		{"one", []float64{1.5}, Undecided, None, "1 block"},
	} {
		got := compare(t, scenario(c.ratios...), nil).Comparisons[0]
		if got.Verdict != c.verdict || got.Direction != c.direction || !strings.Contains(got.Sentence, c.sentence) {
			t.Errorf("%s: %s %s, %q; want %s %s, %q",
				c.name, got.Verdict, got.Direction, got.Sentence, c.verdict, c.direction, c.sentence)
		}
	}
	higher := scenario(spreadOver(1.09, 1.11, 11)...)
	for i := range higher.runs {
		higher.runs[i].Values[0].Better = metric.Higher
	}
	if r := compare(t, higher, nil).Comparisons[0]; r.Direction != BetterThan {
		t.Errorf("higher is better: %+v", r)
	}
}

func TestFewBlocksSayHowManyItTakes(t *testing.T) {
	w := scenario(spreadOver(1.4, 1.5, 6)...)
	for _, name := range []string{"c", "d", "e"} {
		w.e.Targets = append(w.e.Targets, result.Target{Name: name})
	}
	r := compare(t, w, nil).Comparisons[0]
	if r.Level != 1-0.05/4 || r.Verdict != Undecided ||
		!contains(r.Warnings, Warning{Code: Unbounded, Count: 6, Needed: 8, Level: r.Level}) {
		t.Errorf("%v %v %+v", r.Level, r.Verdict, r.Warnings)
	}
	if r.BlocksNeeded < 8 {
		t.Errorf("%d blocks are said to suffice", r.BlocksNeeded)
	}
}

// warned reports whether one of the warnings has the code.
func warned(warnings []Warning, code Code) bool {
	return slices.ContainsFunc(warnings, func(w Warning) bool { return w.Code == code })
}

func contains(warnings []Warning, want Warning) bool {
	return slices.ContainsFunc(warnings, want.Equal)
}

// TestLastAttemptCounts checks that only the last attempt of a block is used, and all of it.
func TestLastAttemptCounts(t *testing.T) {
	w := scenario(spreadOver(1.09, 1.11, 11)...)
	// Block 1 failed on b and was run again; block 2 failed again; block 3's repetition has only one side.
	for i := range w.runs {
		if r := &w.runs[i]; r.Block <= 3 && r.Target == "b" {
			r.Invalid = []result.Warning{{Code: result.AgentFailed, Text: "the agent died"}}
			r.Values[0].Number = 1
		}
	}
	again := func(block int, target string, seconds float64) *result.Run {
		r := w.add(block, rr, target, p50(seconds))
		r.Attempt = 2
		return r
	}
	again(1, "b", 1.1e-4)
	again(1, "a", 1e-4)
	again(2, "a", 1e-4)
	again(2, "b", 9).Invalid = []result.Warning{
		{Code: result.AgentFailed, Text: "the agent died"}, {Code: result.ShortWindow, Text: "short window"},
	}
	again(3, "a", 1e-4)
	c := compare(t, w, nil)
	r := c.Comparisons[0]
	if r.Blocks != 9 || r.Pairs[0].Block != 1 || r.Pairs[0].Baseline != 1e-4 ||
		r.Pairs[0].Target != 1.1e-4 || r.Pairs[1].Block != 4 {
		t.Errorf("%d blocks, first %+v", r.Blocks, r.Pairs[:2])
	}
	if !contains(r.Warnings, Warning{Code: FewOfPlanned, Count: 9, Of: 11}) || !contains(c.Warnings, Warning{
		Code: OneSidedInvalid, Cases: []string{rr}, Counts: []TargetCount{{"a", 0, 14}, {"b", 4, 13}}}) {
		t.Errorf("%+v %+v", r.Warnings, c.Warnings)
	}
	if b := c.Targets[1]; b.Invalid != 4 || b.Runs != 13 ||
		b.Reasons[0] != (Reason{"the agent died", 4}) || b.Reasons[1] != (Reason{"short window", 1}) {
		t.Errorf("%+v", b)
	}
}

// TestPlannedPrimaries checks that the number of primaries is that of the plan, whatever was measured.
func TestPlannedPrimaries(t *testing.T) {
	w := scenario(spreadOver(1.09, 1.11, 11)...)
	w.addCase(stream, result.Primary, "throughput")
	w.addCase(bound, result.Bound, "p50")
	w.e.Targets = append(w.e.Targets, result.Target{Name: "c"})
	w.e.NotMeasured = []result.NotMeasured{{Target: "c", Case: "*", Reason: "no such thing"},
		{Target: "b", Case: stream, Reason: "nor this"}}
	c := compare(t, w, nil)
	if c.Primaries != 4 || len(c.Primary()) != 1 || c.Primary()[0].Level != 1-0.05/4 {
		t.Errorf("%d primaries, %d rows", c.Primaries, len(c.Primary()))
	}
	want := "4 primary comparisons: 1 different, 0 equivalent within ±2 %, 0 undecided, 3 not measured."
	if c.Summary != want {
		t.Errorf("summary %q, want %q", c.Summary, want)
	}
}

func TestValuesWithoutRatio(t *testing.T) {
	w := newWorld(8, "a", "b")
	w.addCase(rr, result.Exploratory, "p50")
	for b := 1; b <= 8; b++ {
		loss := func(n float64) []result.Value {
			return []result.Value{{Metric: "loss", Unit: unit.Ratio, Better: metric.Lower, Number: n},
				{Metric: "timeouts", Unit: unit.Count, Better: metric.Lower}}
		}
		w.add(b, rr, "a", p50(1)).Values = loss(0)
		w.add(b, rr, "b", p50(1)).Values = loss(0.01 + 0.001*float64(b))
	}
	c := compare(t, w, nil)
	loss, timeouts := c.Comparisons[0], c.Comparisons[1]
	if loss.Verdict != Undecided || loss.Change.Known() || loss.CI.Bounded() || loss.P.Known() || loss.Q.Known() {
		t.Errorf("loss has a ratio: %+v", loss)
	}
	if s := loss.Shift; s == nil || math.Abs(float64(s.Estimate)-0.0145) > 1e-9 || s.CI.Lo <= 0.01 || s.CI.Hi >= 0.02 {
		t.Errorf("loss: shift %+v", s)
	}
	if !contains(loss.Warnings, Warning{Code: NoRatio, Count: 8, Of: 16}) ||
		!strings.Contains(loss.Sentence, "the difference +1.45 % (95 % CI +") {
		t.Errorf("loss: %+v %q", loss.Warnings, loss.Sentence)
	}
	if !warned(timeouts.Warnings, OnlyZeros) || !strings.Contains(timeouts.Sentence, "both are 0 (8 blocks)") {
		t.Errorf("timeouts: %+v %q", timeouts.Warnings, timeouts.Sentence)
	}
}

func TestBrokenRuns(t *testing.T) {
	base := func() *world { return scenario(spreadOver(1.09, 1.11, 11)...) }
	p50s := []string{"p50"}
	differs := func(target unit.Unit) Warning {
		return Warning{Code: BlockUnitDiffers, Block: 2, Metrics: p50s, Units: []unit.Unit{unit.Second, target}}
	}
	unusable := Warning{Code: BlocksUnusable, Count: 1, Metrics: p50s}
	unplanned := Warning{Code: UnplannedRuns, Runs: []string{base().runs[3].ID}}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   Warning
		blocks int
	}{
		{"unit", func(w *world) { w.runs[3].Values[0].Unit = unit.PerSecond }, differs(unit.PerSecond), 0},
		{"better", func(w *world) { w.runs[3].Values[0].Better = metric.Higher }, differs(unit.Second), 0},
		{"NaN", func(w *world) { w.runs[3].Values[0].Number = math.NaN() }, unusable, 10},
		{"infinite", func(w *world) { w.runs[3].Values[0].Number = math.Inf(1) }, unusable, 10},
		{"absent", func(w *world) { w.runs[3].Values = nil }, unusable, 10},
		{"all absent", func(w *world) {
			for i := range w.runs {
				w.runs[i].Values = nil
			}
		}, Warning{Code: NoPairedRuns, Metrics: p50s}, 0},
		{"twin", func(w *world) { w.add(1, rr, "b", p50(1.1e-4)) }, Warning{Code: RunTwice, Block: 1,
			Attempt: 1, Cases: []string{rr}, Targets: []string{"b"},
			Runs: []string{base().runs[1].ID, "b-pod-pod-other-tcp-rr-1-22"}}, 11},
		{"strange target", func(w *world) { w.runs[3].Target = "z" }, unplanned, 10},
		{"strange case", func(w *world) { w.runs[3].Case = "z" }, unplanned, 10},
		{"block 0", func(w *world) { w.runs[3].Block = 0 }, unplanned, 10},
	} {
		w := base()
		c.change(w)
		got := compare(t, w, nil)
		r := got.Comparisons[0]
		if r.Blocks != c.blocks || !contains(append(r.Warnings, got.Warnings...), c.want) {
			t.Errorf("%s: %d blocks, %+v and %+v; want %d, %+v", c.name, r.Blocks, r.Warnings, got.Warnings, c.blocks, c.want)
		}
	}
}

func TestBrokenPlans(t *testing.T) {
	for _, c := range []struct {
		change func(e *result.Experiment)
		want   string
	}{
		{func(e *result.Experiment) { e.Baseline = "z" }, `"z" is not among its targets`},
		{func(e *result.Experiment) { e.Targets = nil }, "not among its targets"},
		{func(e *result.Experiment) { e.Targets[1].Name = "a" }, `two targets are named "a"`},
		{func(e *result.Experiment) { e.Cases = append(e.Cases, e.Cases[0]) }, "twice"},
		{func(e *result.Experiment) { e.Design.Alpha = 0 }, "alpha: 0 is not"},
		{func(e *result.Experiment) { e.Design.Alpha = math.NaN() }, "alpha: NaN is not"},
		{func(e *result.Experiment) { e.Design.Delta = -1 }, "delta: -1 is not"},
		{func(e *result.Experiment) { e.Design.Delta = 1 }, "delta: 1 is not"},
	} {
		w := scenario(1, 1)
		c.change(&w.e)
		_, err := Compare(result.Results{Experiment: w.e, Runs: w.runs})
		if !errors.Is(err, ErrExperiment) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		_, err = compareSeveral(result.Results{Experiment: scenario(1).e}, result.Results{Experiment: w.e})
		if !errors.Is(err, ErrExperiment) {
			t.Errorf("unpaired: error %v, want %q", err, c.want)
		}
	}
}

func TestImplausible(t *testing.T) {
	w := scenario(spreadOver(0.69, 0.71, 11)...)
	w.e.Cases[0].Bound = bound
	w.addCase(bound, result.Bound, "p50")
	for b := 1; b <= 11; b++ {
		w.add(b, bound, "a", p50(0.9e-4*(1+noise(b))))
	}
	c := compare(t, w, nil)
	r := c.Comparisons[0]
	if u := r.UpperBound; u == nil || !(u.ExceededBy > 0.25) || u.Faster != "b" {
		t.Errorf("%+v", u)
	}
	if !contains(r.Warnings, Warning{Code: AuditDoubts, Rules: []string{"above-bound"}}) ||
		len(c.Findings) != 1 || c.Findings[0].Rule != "above-bound" {
		t.Errorf("%+v %+v", r.Warnings, c.Findings)
	}

	same := scenario(1, 1, 1, 1, 1, 1, 1, 1)
	c = compare(t, same, nil)
	if len(c.Findings) != 1 || c.Findings[0].Rule != "identical-numbers" ||
		!warned(c.Comparisons[0].Warnings, AllSame) {
		t.Errorf("%+v %+v", c.Findings, c.Comparisons[0].Warnings)
	}

	dead := scenario(1.1, 1.2, 1.15, 1.12, 1.13, 1.14)
	for i := range dead.runs {
		dead.runs[i].Values[0].Better = metric.Higher
	}
	dead.runs[1].Values[0].Number = 0
	c = compare(t, dead, nil)
	if r := c.Comparisons[0]; len(c.Findings) != 1 ||
		c.Findings[0].Rule != "zero" || r.Blocks != 5 || r.Pairs[0].Block != 2 ||
		!contains(r.Warnings, Warning{Code: BlocksExcluded, Count: 1, Rules: []string{"zero"}}) ||
		!contains(r.Warnings, Warning{Code: FewOfPlanned, Count: 5, Of: 6}) {
		t.Errorf("%+v %+v", c.Findings, r)
	}
}

func TestDoubts(t *testing.T) {
	w := scenario(spreadOver(1.09, 1.11, 12)...)
	for i := range w.runs {
		r := &w.runs[i]
		if r.Target != "b" {
			continue
		}
		r.Facts = []result.Fact{{Name: "generator.limited", Value: "yes"}}
		if r.Block <= 4 {
			r.Warnings = []result.Warning{{Code: "clock", Text: fmt.Sprintf("the clock jumped by %d s", r.Block)}}
		}
		// What runs second is slower.
		r.Slot, w.runs[i-1].Slot = 1+r.Block%2, 2-r.Block%2
		r.Values[0].Number *= 1 + 0.05*float64(r.Slot)
	}
	r := compare(t, w, nil).Comparisons[0]
	for _, want := range []Warning{
		{Code: GeneratorLimit, Counts: []TargetCount{{"a", 0, 12}, {"b", 12, 12}}},
		{Code: RunsWarn, Counts: []TargetCount{{"a", 0, 12}, {"b", 4, 12}}, Varies: true,
			Recorded: &result.Warning{Code: "clock", Text: "the clock jumped by 1 s"}},
	} {
		if !contains(r.Warnings, want) {
			t.Errorf("no warning %+v in %+v", want, r.Warnings)
		}
	}
	if i := slices.IndexFunc(r.Warnings, func(w Warning) bool { return w.Code == OrderOfRuns }); i < 0 ||
		!slices.Equal(r.Warnings[i].Targets, []string{"b", "a"}) || !(r.Warnings[i].After > r.Warnings[i].Before+0.05) {
		t.Errorf("the order of runs: %+v", r.Warnings)
	}
	w.e.Design.Parallel = true
	c := compare(t, w, nil)
	if warned(c.Comparisons[0].Warnings, OrderOfRuns) || !warned(c.Warnings, Parallel) {
		t.Errorf("at the same time: %+v and %+v", c.Comparisons[0].Warnings, c.Warnings)
	}
	wide := compare(t, scenario(spreadOver(0.5, 1.5, 11)...), nil).Comparisons[0]
	if !warned(wide.Warnings, WideSpread) {
		t.Errorf("%+v", wide.Warnings)
	}
}

// TestExploratory checks that exploratory verdicts are corrected for their number.
func TestExploratory(t *testing.T) {
	w := newWorld(6, "a", "b")
	w.addCase(rr, result.Exploratory, "p50")
	family := func(metrics int, factor func(m, b int) float64) Comparison {
		w.runs = nil
		for b := 1; b <= 6; b++ {
			x, y := w.add(b, rr, "a", p50(1)), (*result.Run)(nil)
			x.Values = nil
			for m := range metrics {
				x.Values = append(x.Values, result.Value{Metric: fmt.Sprint("m", m),
					Unit: unit.Second, Better: metric.Lower, Number: 1})
			}
			y = w.add(b, rr, "b", p50(1))
			y.Values = nil
			for m := range metrics {
				y.Values = append(y.Values, result.Value{Metric: fmt.Sprint("m", m),
					Unit: unit.Second, Better: metric.Lower, Number: factor(m, b)})
			}
		}
		return compare(t, w, nil)
	}
	// With 6 blocks the smallest p is 1/32: enough if all comparisons have it, not if one of many does.
	all := family(10, func(m, b int) float64 { return 1.1 + 0.001*float64(b*(m+1)) })
	one := family(10, func(m, b int) float64 {
		if m == 0 {
			return 1.1 + 0.001*float64(b)
		}
		return 1 + 0.1*noise(5*b+m)*float64(1-2*(b%2))
	})
	for _, r := range all.Comparisons {
		if r.Verdict != Different || r.Role != result.Exploratory || !(r.Q <= 0.05) || r.Level != 0.95 {
			t.Errorf("all: %s %s q %v", r.Metric, r.Verdict, r.Q)
		}
	}
	if r := one.Comparisons[0]; r.Verdict != Undecided || !(r.Q > 0.05) ||
		!contains(r.Warnings, Warning{Code: OneOfMany, Verdict: Different, Count: 10}) {
		t.Errorf("one: %s q %v %+v", r.Verdict, r.Q, r.Warnings)
	} else if w, withheld := r.Reversed(0.02).Withheld(); !withheld || w.Code != OneOfMany {
		t.Errorf("reversed: %+v", w)
	}
	if one.Primaries != 0 || !strings.Contains(one.Summary, "exploratory") {
		t.Errorf("summary %q", one.Summary)
	}
}

// TestSameTargets checks in complete simulated A/A experiments, with drift and random order, that at most alpha of them
// have a primary verdict of different, which is an error.
func TestSameTargets(t *testing.T) {
	const trials = 400
	random := rand.New(rand.NewPCG(5, 5))
	wrong, exploratory := 0, 0
	w := newWorld(11, "a", "b", "c")
	for k := range 3 {
		w.addCase(fmt.Sprintf("case%d", k), result.Primary, "p50")
	}
	p, err := newAnalysisPlan(w.e)
	if err != nil {
		t.Fatal(err)
	}
	for range trials {
		w.runs = nil
		drift := 0.0
		for b := 1; b <= 11; b++ {
			for k := range 3 {
				for slot, i := range random.Perm(3) {
					drift = 0.9*drift + 0.03*random.NormFloat64()
					r := w.add(b, fmt.Sprintf("case%d", k), w.e.Targets[i].Name, p50(math.Exp(drift+0.02*random.NormFloat64())))
					r.Slot = slot + 1
					r.Values = append(r.Values, result.Value{Metric: "p99", Unit: unit.Second,
						Better: metric.Lower, Number: math.Exp(drift + 0.1*random.NormFloat64())})
				}
			}
		}
		c := p.compare(result.Results{Experiment: w.e, Runs: w.runs})
		if different(c.Primary()) {
			wrong++
		}
		if different(c.Exploratory()) {
			exploratory++
		}
	}
	limit := 0.05 + 3*math.Sqrt(0.05*0.95/trials)
	if float64(wrong)/trials > limit || float64(exploratory)/trials > limit {
		t.Errorf("%d of %d A/A experiments have a primary, %d an exploratory difference", wrong, trials, exploratory)
	}
}

func different(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Verdict == Different })
}

func TestUnpairedGolden(t *testing.T) {
	a, b := typical(), typical()
	b.e.ID, b.e.Version = "2026-12-02-c3d4", "newer"
	for i := range b.runs {
		for k := range b.runs[i].Values {
			b.runs[i].Values[k].Number *= 1.2
		}
	}
	c, err := compareSeveral(result.Results{Experiment: a.e, Runs: a.runs, Facts: labFacts()},
		result.Results{Experiment: b.e, Runs: b.runs, Facts: labFacts()})
	if err != nil {
		t.Fatal(err)
	}
	goldenJSON(t, "unpaired.json", c)
	if c.Paired || c.Primaries != 6 || c.Comparisons[0].Verdict != Different {
		t.Errorf("%v %d %+v", c.Paired, c.Primaries, c.Comparisons[0])
	}
	for _, r := range c.Comparisons {
		if !strings.Contains(r.Sentence, "unpaired") {
			t.Errorf("not labelled unpaired: %q", r.Sentence)
		}
	}
}

func TestUnpairedFewRuns(t *testing.T) {
	few := func(n int, name string) result.Results {
		w := newWorld(n, name)
		w.e.ID = name
		w.addCase(rr, result.Primary, "p50")
		for b := 1; b <= n; b++ {
			w.add(b, rr, name, p50(float64(len(name))+noise(b)))
		}
		return result.Results{Experiment: w.e, Runs: w.runs}
	}
	for _, c := range []struct {
		n    int
		want Verdict
	}{{1, Undecided}, {5, Undecided}, {6, Different}} {
		got, err := compareSeveral(few(9, "gke"), few(c.n, "constellation"))
		if err != nil {
			t.Fatal(err)
		}
		r := got.Comparisons[0]
		if r.Verdict != c.want || r.Baseline != "gke (gke)" || r.Target != "constellation (constellation)" {
			t.Errorf("%d runs: %s of %s against %s", c.n, r.Verdict, r.Target, r.Baseline)
		}
		if below := contains(r.Warnings, Warning{Code: FewRuns, Count: 9, Of: c.n, Needed: 6}); below != (c.n < 6) {
			t.Errorf("%d runs: %+v", c.n, r.Warnings)
		}
	}
}

// FuzzCompare checks, for experiments built from bytes, that the result is an error, or a comparison that can be
// written, read again and rendered.
func FuzzCompare(f *testing.F) {
	f.Add([]byte("a small experiment of two targets and one case"), uint8(3))
	f.Add(slices.Repeat([]byte{7, 1, 33, 200, 250}, 80), uint8(9))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, shape uint8) {
		if len(data) > 600 {
			data = data[:600]
		}
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		w := newWorld(int(shape%13), "a", "b", "c")
		w.addCase("one", []result.Role{result.Primary, result.Exploratory, result.Bound, "odd"}[next()%4], "p50")
		w.addCase("two", result.Primary, "p50")
		w.e.Cases[1].Bound = []string{"", "one", "two", "none"}[next()%4]
		w.e.Design.Delta = float64(1+next()%99) / 100
		w.e.Gates = []string{"* <= +5%", "two x >= -3%", "* p50 <= 2 on ?", "one <= 3 Gbit/s"}
		flags := next()
		w.e.Design.AllPairs = flags&1 == 1
		if flags&2 != 0 {
			w.e.Imported = "csv"
		}
		if flags&4 != 0 {
			w.e.Gates = []string{"* <= +5%", "o* p50 >= 2"}
		}
		for len(data) > 0 {
			r := w.add(next()%12, []string{"one", "two", "three"}[next()%3],
				[]string{"a", "b", "c"}[next()%3], p50(oddValue(next())))
			r.Attempt, r.Slot = next()%3, next()%4-1
			if next()%5 == 0 {
				r.Invalid = []result.Warning{{Code: "gate", Text: "gate"}}
			}
			if next()%3 == 0 {
				r.Values = append(r.Values, result.Value{Metric: "p50",
					Unit: unit.Byte, Better: metric.Higher, Number: oddValue(next())},
					result.Value{Metric: "x", Unit: unit.Ratio, Better: []metric.Better{metric.Higher,
						metric.Lower, "", "odd"}[next()%4], Number: oddValue(next())})
			}
		}
		facts := map[string][]result.Fact{"a": {{Name: "mtu", Value: fmt.Sprint(next() % 2)}},
			"b": {{Name: "mtu", Value: fmt.Sprint(next() % 2)}}}
		paired, err := Compare(result.Results{Experiment: w.e, Runs: w.runs, Facts: facts})
		sane(t, paired, err)
		half := len(w.runs) / 2
		unpaired, err := compareSeveral(result.Results{Experiment: w.e, Runs: w.runs[:half], Facts: facts},
			result.Results{Experiment: w.e, Runs: w.runs[half:], Facts: nil})
		sane(t, unpaired, err)
	})
}

func oddValue(b int) float64 {
	switch {
	case b < 200:
		return float64(b) - 5
	case b < 230:
		return math.Pow(10, float64(b-215)*20)
	case b < 250:
		return math.MaxFloat64
	}
	return []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}[b%4]
}

func sane(t *testing.T, c Comparison, err error) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrExperiment) {
			t.Errorf("an error of another kind: %v", err)
		}
		return
	}
	if _, err := json.Marshal(c); err != nil {
		t.Errorf("cannot be written: %v", err)
	}
	for _, g := range c.Groups {
		for _, m := range g.Members {
			if m.Letters == "" || g.Conclusion == "" || !c.Paired && g.Declared {
				t.Errorf("group %+v", g)
			}
		}
	}
	lettersAgree(t, c)
	for _, b := range c.Boxes {
		if !(b.Lowest <= b.Q1 && b.Q1 <= b.Median && b.Median <= b.Q3 && b.Q3 <= b.Highest) || b.Runs < 1 {
			t.Errorf("box %+v", b)
		}
	}
	for _, g := range c.Gates {
		if g.Sentence == "" || g.Outcome != Open && !g.CI.Bounded() ||
			strings.Contains(g.Sentence, "NaN") || strings.Contains(g.Sentence, "Inf") {
			t.Errorf("gate %+v", g)
		}
	}
	for _, r := range c.Comparisons {
		if r.Sentence == "" || strings.Contains(r.Sentence, "no difference") ||
			strings.Contains(r.Sentence, "NaN") || strings.Contains(r.Sentence, "Inf") {
			t.Errorf("sentence %q", r.Sentence)
		}
		excludes := r.CI.Excludes(0)
		if (r.Verdict == Different) && !excludes || r.Verdict == Equivalent &&
			!r.CI.Within(c.Delta) || r.Verdict == Undecided && r.Direction != None {
			t.Errorf("%s %s with %+v", r.Verdict, r.Direction, r.CI)
		}
		if _, withheld := r.Withheld(); withheld != r.undecidedBeyondZero() {
			t.Errorf("undecided without a reason: %+v", r)
		}
		if !r.CI.Bounded() && len(r.Warnings) == 0 {
			t.Errorf("an end without bound and no warning: %+v", r)
		}
	}
}

// TestOutside checks the p of not being equivalent against values counted by hand, and that it agrees with the
// interval.
func TestOutside(t *testing.T) {
	powers := func(logs []float64) (values []float64) {
		for _, v := range logs {
			values = append(values, math.Exp(v))
		}
		return values
	}
	ones := []float64{1, 1, 1, 1, 1, 1}
	inside := sides{blocks: []int{1, 2, 3, 4, 5, 6}, baseline: ones, look: stats.OneLook{},
		target: powers([]float64{-0.003, -0.002, 0.001, 0.0025, 0.0031, 0.0047})}
	if p := inside.equivalenceP(0.001, 0.02); p != 2.0/64 {
		t.Errorf("six pairs well inside: p %v, want 1/32", p)
	}
	if p := inside.equivalenceP(0.001, 0.0026); p <= 2.0/64 {
		t.Errorf("six pairs about a narrow margin: p %v", p)
	}
	for _, shift := range []float64{0.02, -0.03, math.NaN()} {
		if p := inside.equivalenceP(shift, 0.02); p != 1 {
			t.Errorf("a shift of %v: p %v, want 1", shift, p)
		}
	}
	// Neither side rises or falls from run to run, which would widen the test.
	unpaired := sides{baseline: powers([]float64{0.0004, 0.0001, 0.0006, 0.0002, 0.0005, 0.0003}),
		target: powers([]float64{0.0025, -0.003, 0.0047, -0.002, 0.0031, 0.001})}
	if p := unpaired.equivalenceP(0.001, 0.02); math.Abs(p-2.0/924) > 1e-12 {
		t.Errorf("six runs each well inside: p %v, want 2/924", p)
	}
	if p := unpaired.equivalenceP(0.02, 0.02); p != 1 {
		t.Errorf("a shift at the margin: p %v, want 1", p)
	}
	w := typical()
	for _, r := range compare(t, w, nil).Comparisons {
		if r.Role == result.Primary && (r.Verdict == Equivalent) != (r.equivalenceP <= 1-r.Level) {
			t.Errorf("%s on %s is %s, but p outside is %v", r.Case, r.Target, r.Verdict, r.equivalenceP)
		}
	}
}

// TestExploratoryEquivalence checks that exploratory verdicts of equivalent are corrected for their number.
func TestExploratoryEquivalence(t *testing.T) {
	w := newWorld(6, "a", "b")
	for k := range 8 {
		name := fmt.Sprint("case", k)
		w.addCase(name, result.Exploratory, "p50")
		for b := 1; b <= 6; b++ {
			change := 0.5 * noise(b)
			if k > 0 {
				change = 20 * noise(b+k)
			}
			w.add(b, name, "a", p50(1))
			w.add(b, name, "b", p50(1+change))
		}
	}
	if r := compare(t, w, nil).Comparisons[0]; !r.CI.Within(w.e.Design.Delta) ||
		r.Verdict != Undecided || !contains(r.Warnings, Warning{Code: OneOfMany, Verdict: Equivalent, Count: 8}) {
		t.Errorf("one of eight: %+v", r)
	}
	w.e.Cases = w.e.Cases[:1]
	if r := compare(t, w, nil).Comparisons[0]; r.Verdict != Equivalent || r.Direction != None {
		t.Errorf("one of one: %+v", r)
	}
}

func TestWarningsOfOtherMetricsAreNotARowsOwn(t *testing.T) {
	got := warningsAbout("p99", []result.Warning{
		{Code: result.FewSamples, Metric: "p99.9", Text: "p99.9 needs 3688 operations, there were 9: left out"},
		{Code: result.FewSamples, Metric: "p99", Text: "p99 needs 368 operations"},
		{Code: result.SomeFailed, Text: "p99.9 of the requests"},
	})
	want := []result.Warning{
		{Code: result.FewSamples, Metric: "p99", Text: "p99 needs 368 operations"},
		{Code: result.SomeFailed, Text: "p99.9 of the requests"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
