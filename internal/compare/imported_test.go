package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// imported returns a table of another tool's numbers: some runs of each target, all with the given block.
func imported(runs, block int, levels ...float64) *world {
	w := levelled(runs, result.Exploratory, levels...)
	w.e.ID, w.e.Imported, w.e.Design = "theirs", "csv", result.Design{Alpha: 0.05, Delta: 0.02}
	for i := range w.runs {
		w.runs[i].Block, w.runs[i].Attempt = block, 0
	}
	for i := range w.e.Targets {
		w.e.Targets[i].Spec = result.SpecOf("table.csv")
	}
	return w
}

// TestImportedLosesNoRun checks that runs without a block, or all with the same one, count one by one.
func TestImportedLosesNoRun(t *testing.T) {
	for _, block := range []int{0, 1} {
		c := compare(t, imported(9, block, 1, 1.3, 1.301, 0.7), nil)
		if c.Paired || len(c.Comparisons) != 3 || len(c.Placebos) != 0 ||
			!contains(c.Warnings, Warning{Code: Imported, Tool: "csv"}) {
			t.Fatalf("block %d: %+v", block, c)
		}
		if len(c.Warnings) != 1 {
			t.Errorf("block %d: %+v", block, c.Warnings)
		}
		for _, r := range c.Comparisons {
			if r.Blocks != 9 || r.Verdict != Different || len(r.Pairs) != 0 || r.Spread.Known() || r.Detectable.Known() {
				t.Errorf("block %d: %+v", block, r)
			}
			if !strings.Contains(r.Sentence, "unpaired, at least 9 runs each") || !strings.HasPrefix(r.Sentence, "Exploratory") {
				t.Errorf("%q", r.Sentence)
			}
		}
		if g := c.Groups[0]; g.Declared || g.Members[0].Blocks != 9 ||
			!strings.HasSuffix(g.Conclusion, "; then A; D least (exploratory)") || !strings.Contains(g.Conclusion, "B") {
			t.Errorf("block %d: %+v", block, g)
		}
		if len(c.Boxes) != 4 || c.Boxes[0].Runs != 9 {
			t.Errorf("block %d: %+v", block, c.Boxes)
		}
	}
}

func TestImportedWithFewRuns(t *testing.T) {
	for _, runs := range []int{1, 5} {
		w := imported(runs, 0, 1, 2, 3)
		w.e.Cases[0].Role, w.e.Design.AllPairs = result.Primary, true
		c := compare(t, w, nil)
		if c.Primaries != 3 || len(c.Comparisons) != 3 {
			t.Errorf("%d runs: %d of %d rows", runs, len(c.Comparisons), c.Primaries)
		}
		for _, r := range c.Comparisons {
			if r.Verdict != Undecided || !contains(r.Warnings, Warning{Code: FewRuns, Count: runs, Of: runs, Needed: 6}) {
				t.Errorf("%d runs: %+v", runs, r)
			}
		}
		if g := c.Groups[0]; g.Declared || g.Conclusion != "too few runs to tell anything apart (exploratory)" ||
			g.Members[2].Letters != "a" {
			t.Errorf("%d runs: %+v", runs, g)
		}
	}
	if c := compare(t, imported(1, 0, 1, 2), nil); !strings.Contains(c.Comparisons[0].Sentence, "at least 1 run each") {
		t.Errorf("%q", c.Comparisons[0].Sentence)
	}
}

// TestImportedGatesAreUnpaired checks that runs with equal numbers are not taken as pairs: here the pairs would have a
// constant ratio, while the runs vary widely.
func TestImportedGatesAreUnpaired(t *testing.T) {
	w := newWorld(8, "a", "b")
	w.e.Imported = "csv"
	w.addCase(rr, result.Primary, "p50")
	for b := 1; b <= 8; b++ {
		w.add(b, rr, "a", p50(float64(1+b*5%8)))
		w.add(b, rr, "b", p50(float64(1+b*5%8)*1.001))
	}
	w.e.Gates = []string{rr + " p50 <= +5%"}
	c := compare(t, w, nil)
	if len(c.Gates) != 1 || c.Gates[0].Outcome != Open || c.Comparisons[0].Verdict != Undecided {
		t.Errorf("%+v %+v", c.Gates, c.Comparisons[0])
	}
	for i := range w.runs {
		if w.runs[i].Target == "b" {
			w.runs[i].Values[0].Number /= 20
		}
	}
	if c := compare(t, w, nil); c.Gates[0].Outcome != Passed || c.Comparisons[0].Verdict != Different {
		t.Errorf("%+v %+v", c.Gates, c.Comparisons[0])
	}
}

// TestImportedAgainstOurs checks that an imported table is compared with a results directory by case, metric and unit.
func TestImportedAgainstOurs(t *testing.T) {
	ours, theirs := typical(), newWorld(0, "cilium")
	theirs.e.ID, theirs.e.Imported, theirs.e.Design = "theirs", "csv", result.Design{Alpha: 0.05, Delta: 0.02}
	theirs.addCase(rr, result.Exploratory, "p50")
	theirs.addCase(stream, result.Exploratory, "throughput")
	theirs.addCase("pod-pod/same/tcp-rr", result.Exploratory, "p50")
	for i := range 7 {
		r := theirs.add(0, rr, "cilium", p50(80e-6*(1+noise(i))))
		r.Values[0].Better = metric.Neutral // a table need not say it
		r.Values = append(r.Values,
			result.Value{Metric: "mean", Unit: unit.Second, Better: metric.Lower, Number: 1e-3},
			result.Value{Metric: "p99", Unit: unit.PerSecond, Better: metric.Higher, Number: 1})
		theirs.add(0, stream, "cilium", result.Value{Metric: "throughput",
			Unit: unit.PerSecond, Better: metric.Higher, Number: 3})
	}
	c, err := compareSeveral(results(ours), results(theirs))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Comparisons) != 1 || len(c.Groups) != 1 || len(c.Groups[0].Members) != 4 {
		t.Fatalf("%+v", c.Comparisons)
	}
	r := c.Comparisons[0]
	if r.Metric != "p50" || r.Verdict != Different || r.Direction != WorseThan ||
		r.Blocks != 7 || r.Baseline != "lab:native (2026-12-01-a1b2)" {
		t.Errorf("%+v", r)
	}
	if u := r.UpperBound; u == nil || u.Case != bound ||
		u.TargetShare.Known() || !(u.BaselineShare > 0.6 && u.BaselineShare < 0.9) {
		t.Errorf("%+v", u)
	}
	i := slices.IndexFunc(c.Warnings, func(w Warning) bool { return w.Code == UnmatchedMetrics })
	if i < 0 || !slices.Equal(c.Warnings[i].Unmatched[:2], []Unmatched{{rr, "mean", "s"}, {rr, "p99", "op/s"}}) {
		t.Errorf("metrics without a counterpart: %+v", c.Warnings)
	}
	for _, want := range []Warning{
		{Code: OtherTool, Experiments: []string{"theirs"}, Tool: "csv"},
		{Code: OnlyInOne, Experiments: []string{"2026-12-01-a1b2"}, Cases: []string{"node-node/tcp-rr"}},
		{Code: OnlyInOne, Experiments: []string{"theirs"}, Cases: []string{"pod-pod/same/tcp-rr"}},
		{Code: NoNamesake, Targets: []string{"lab:vxlan (2026-12-01-a1b2)", "lab:again (2026-12-01-a1b2)"}},
	} {
		if !contains(c.Warnings, want) {
			t.Errorf("no warning %+v in %+v", want, c.Warnings)
		}
	}
	if warned(c.Warnings, DurationsDiffer) {
		t.Error("the window of another tool's runs is not known, and not other than ours")
	}
	turned, err := compareSeveral(results(theirs), results(ours))
	if err != nil || len(turned.Comparisons) != 3 || turned.Comparisons[0].Direction != BetterThan ||
		turned.Comparisons[0].Better != metric.Lower {
		t.Errorf("%v %+v", err, turned.Comparisons)
	}
}

func results(w *world) result.Results { return result.Results{Experiment: w.e, Runs: w.runs} }

// TestUnpairedBounds checks that each side is compared with the bound of its own experiment.
func TestUnpairedBounds(t *testing.T) {
	a, b := typical(), typical()
	b.e.ID = "second"
	each(b, func(v *result.Value) { v.Number *= 3 })
	c, err := compareSeveral(results(a), results(b))
	if err != nil {
		t.Fatal(err)
	}
	bounded := 0
	for _, r := range c.Comparisons {
		u := r.UpperBound
		if (u != nil) != (r.Case == rr && r.Metric == "p50") {
			t.Errorf("%s %s: bound %+v", r.Case, r.Metric, u)
		}
		if u == nil {
			continue
		}
		bounded++
		if u.BaselineShare < u.TargetShare*0.999 || u.BaselineShare > u.TargetShare*1.001 || u.TargetShare > 1 {
			t.Errorf("%+v", u)
		}
	}
	names := []string{}
	for _, x := range c.Boxes {
		names = append(names, x.Target)
	}
	if bounded != 3 || len(names) != 14 || !slices.Contains(names, "lab:vxlan (second)") ||
		!slices.Contains(names, "lab:vxlan (2026-12-01-a1b2)") {
		t.Errorf("%d bounds, boxes %q", bounded, names)
	}
}

// TestUnpairedPrimaryWithoutCommonUnit checks that a planned verdict is in the table if nothing can be compared.
func TestUnpairedPrimaryWithoutCommonUnit(t *testing.T) {
	a, b := levelled(8, result.Primary, 1), levelled(8, result.Primary, 1)
	each(b, func(v *result.Value) { v.Unit = unit.PerSecond })
	c, err := compareSeveral(results(a), results(b))
	if err != nil || len(c.Comparisons) != 1 || c.Primaries != 1 {
		t.Fatalf("%v %+v", err, c.Comparisons)
	}
	if r := c.Comparisons[0]; r.Role != result.Primary || r.Verdict != Undecided ||
		!contains(r.Warnings, Warning{Code: MetricNotShared, Metrics: []string{"throughput"}}) {
		t.Errorf("%+v", r)
	}
	if !contains(c.Warnings, Warning{Code: UnmatchedMetrics,
		Unmatched: []Unmatched{{stream, "throughput", "bit/s"}, {stream, "throughput", "op/s"}}}) {
		t.Errorf("%+v", c.Warnings)
	}
	w := imported(8, 0, 1, 2)
	each(w, func(v *result.Value) { v.Better = metric.Neutral })
	c = compare(t, w, nil)
	if len(c.Comparisons) != 0 || !contains(c.Warnings, Warning{Code: UnmatchedMetrics,
		Unmatched: []Unmatched{{stream, "throughput", "bit/s"}}}) {
		t.Errorf("%+v %+v", c.Comparisons, c.Warnings)
	}
}

// TestUnpairedDoubts checks that rows have the warnings of their runs, and that differences between the sites are
// listed.
func TestUnpairedDoubts(t *testing.T) {
	made := func(id, loop, mtu string) *world {
		w := levelled(8, result.Exploratory, 1)
		w.e.ID = id
		for i := range w.runs {
			w.runs[i].Facts = []result.Fact{{Name: "loop", Value: loop},
				{Name: "path-mtu", Value: mtu}, {Name: "generator.limited", Value: "yes"}}
		}
		w.runs[2].Warnings = []result.Warning{{Code: "clock", Text: "the clock jumped"}}
		return w
	}
	c, err := compareSeveral(results(made("x", "closed", "1500")), results(made("y", "open", "1450")))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Comparisons[0]
	for _, want := range []Warning{
		{Code: LoopsDiffer, Loops: []string{"closed", "open"}},
		{Code: GeneratorLimit, Counts: []TargetCount{{"A (x)", 8, 8}, {"A (y)", 8, 8}}},
		{Code: RunsWarn, Counts: []TargetCount{{"A (x)", 1, 8}, {"A (y)", 1, 8}},
			Recorded: &result.Warning{Code: "clock", Text: "the clock jumped"}},
	} {
		if !contains(r.Warnings, want) {
			t.Errorf("no warning %+v in %+v", want, r.Warnings)
		}
	}
	if got := c.AlsoDiffers["A (y)"]; !slices.Equal(got, []string{"loop", "path-mtu"}) {
		t.Errorf("also differs: %q", got)
	}
	c, err = compareSeveral(results(made("x", "closed", "1500")), results(made("y", "closed", "1500")))
	if err != nil || !warned(c.Warnings, ClosedLoop) || warned(c.Comparisons[0].Warnings, ClosedLoop) ||
		warned(c.Comparisons[0].Warnings, LoopsDiffer) || len(c.AlsoDiffers["A (y)"]) != 0 {
		t.Errorf("%v %+v %+v", err, c.Warnings, c.Comparisons[0].Warnings)
	}
}
