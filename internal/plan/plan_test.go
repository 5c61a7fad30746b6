package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func planned() result.Experiment {
	d := runner.DefaultDesign()
	d.Duration, d.Warmup = 1, 0
	return reporttest.Planned(d)
}

// measuredBefore returns runs of the first primary case, in which the logarithm of b / a has the given standard
// deviation and that of c / a twice as much. A run took two seconds.
func measuredBefore(blocks int, spread float64) []result.Run {
	var runs []result.Run
	for block := 1; block <= blocks; block++ {
		// Alternating ± x has the sample standard deviation x sqrt(n / (n-1)).
		x := spread * math.Sqrt(float64(blocks-1)/float64(blocks))
		if block%2 == 0 {
			x = -x
		}
		for name, v := range map[string]float64{"a": 1, "b": math.Exp(x + 0.1), "c": math.Exp(2 * x)} {
			runs = append(runs, result.Run{
				Schema: result.RunSchema, ID: fmt.Sprintf("%s%d", name, block),
				Case: "pod-pod/other/tcp-rr", Target: name, Block: block, Attempt: 1,
				Setup: 0.98, Window: 1, Tool: "native",
				Values: []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: v}},
			})
		}
	}
	return runs
}

// from returns these runs as earlier results, with a site of each target that took a second and a half.
func from(e result.Experiment, runs []result.Run) plan.EarlierResults {
	var sites []result.Site
	for _, t := range e.Targets {
		sites = append(sites, result.Site{Target: t.Name, Setup: 1, Cleanup: 0.5})
	}
	return plan.EarlierResults{
		Source:  plan.Source{Kind: "directory", Directory: "before", Blocks: 4},
		Results: result.Results{Experiment: e, Runs: runs, Sites: sites},
	}
}

func predicted(t *testing.T, e result.Experiment, k plan.EarlierResults) *plan.Document {
	t.Helper()
	d := plan.Document{Experiment: e}
	if err := d.Predict(k, nil); err != nil {
		t.Fatal(err)
	}
	return &d
}

func near(a compare.Number, b float64) bool { return math.Abs(float64(a)-b) <= 1e-9*math.Abs(b) }

// TestForecast checks that the forecast is computed from the measured spread, at each comparison's share of alpha.
func TestForecast(t *testing.T) {
	t.Parallel()
	e := planned()
	f := predicted(t, e, from(e, measuredBefore(6, 0.02))).Forecast
	if len(f.Comparisons) != 4 {
		t.Fatalf("%d comparisons, want 4", len(f.Comparisons))
	}
	looks, err := stats.NewGroupSequential(e.Design.Looks)
	if err != nil {
		t.Fatal(err)
	}
	margin, alpha := math.Log1p(0.02), 0.05/4
	for i, spread := range []float64{0.02, 0.04} {
		c := f.Comparisons[i]
		if c.Case != "pod-pod/other/tcp-rr" || c.Target != string("bc"[i]) ||
			c.Baseline != "a" || c.Pairs != 6 || !near(c.Spread, spread) {
			t.Errorf("comparison %d is %+v", i, c)
		}
		alike := stats.ExpectedPairs(spread, 0, margin, alpha, looks)
		differ := stats.ExpectedPairs(spread, margin, margin, alpha, looks)
		shift := stats.DetectableShift(30, alpha, 0.8, looks)
		if math.Abs(float64(c.BlocksAlike)-alike) > 0.1 ||
			math.Abs(float64(c.BlocksDifferent)-differ) > 0.1 || !near(c.Change, math.Expm1(spread*shift)) {
			t.Errorf("spread %g: %v and %v blocks, change %v; want %v, %v, %v",
				spread, c.BlocksAlike, c.BlocksDifferent, c.Change, alike, differ, math.Expm1(spread*shift))
		}
		// A block of the case is three runs of two seconds.
		if !near(c.SecondsAlike, 6*float64(c.BlocksAlike)) || !near(c.SecondsDifferent, 6*float64(c.BlocksDifferent)) {
			t.Errorf("%v s if alike, %v s if not, for %v and %v blocks",
				c.SecondsAlike, c.SecondsDifferent, c.BlocksAlike, c.BlocksDifferent)
		}
	}
	for _, c := range f.Comparisons[2:] {
		if c.Case != "pod-pod/other/tcp-crr" || c.Spread.Known() ||
			c.Change.Known() || c.BlocksAlike.Known() || c.SecondsAlike.Known() {
			t.Errorf("of what was not measured: %+v", c)
		}
	}
	if len(f.Missing) != 2 || !strings.Contains(f.Missing[0],
		"pod-pod/other/tcp-crr differ between a and b is not known") {
		t.Errorf("missing: %q", f.Missing)
	}
	// A case without a forecast needs all 30 blocks, and so do the exploratory cases then; the bound needs as many as
	// its case. Sites are opened as long as any case continues.
	first := float64(max(f.Comparisons[0].BlocksAlike, f.Comparisons[1].BlocksAlike))
	if want := 6*first + 6*30 + 6*30 + 2*first + 1.5*30; math.Abs(f.SecondsAlike-want) > 1e-6 {
		t.Errorf("in all %g s, want %g", f.SecondsAlike, want)
	}
}

// TestForecastOfAllPairs checks that all pairs of targets are forecast if all will be compared, at their share of
// alpha.
func TestForecastOfAllPairs(t *testing.T) {
	t.Parallel()
	e := planned()
	e.Design.AllPairs = true
	f := predicted(t, e, from(e, measuredBefore(6, 0.02))).Forecast
	if len(f.Comparisons) != 6 {
		t.Fatalf("%+v", f.Comparisons)
	}
	looks, err := stats.NewGroupSequential(e.Design.Looks)
	if err != nil {
		t.Fatal(err)
	}
	if c := f.Comparisons[0]; !near(c.Change, math.Expm1(0.02*stats.DetectableShift(30, 0.05/6, 0.8, looks))) {
		t.Errorf("the smallest change is %v, at another alpha than a sixth", c.Change)
	}
	last := f.Comparisons[2]
	if last.Baseline != "b" || last.Target != "c" || !near(last.Spread, 0.02) {
		t.Errorf("b against c: %+v", last)
	}
}

// TestForecastOfFixedBlocks checks that nothing stops early with a number of blocks fixed beforehand, however small the
// spread.
func TestForecastOfFixedBlocks(t *testing.T) {
	t.Parallel()
	e := planned()
	e.Design.Looks, e.Design.Blocks = nil, 12
	d := predicted(t, e, from(e, measuredBefore(6, 0.0001)))
	if c := d.Forecast.Comparisons[0]; !near(c.BlocksAlike, 12) || !near(c.BlocksDifferent, 12) {
		t.Errorf("%+v", c)
	}
	if math.Abs(d.Forecast.SecondsAlike-d.Seconds) > 1e-6 {
		t.Errorf("in all %g s, the plan says %g", d.Forecast.SecondsAlike, d.Seconds)
	}
}

func TestForecastInBudget(t *testing.T) {
	t.Parallel()
	e := planned()
	// A block of all cases takes 3 x 6 s, 2 s of the bound and 1.5 s of the sites.
	for _, test := range []struct {
		budget float64
		blocks int
		text   string
	}{
		{0, 0, ""},
		{21, 0, "The budget of 0:21 does not pay for one block"},
		{110, 5, "pays for 5 blocks of all cases, too few"},
		{260, 12, "pays for 12 blocks of all cases:"},
		{6000, 30, "pays for 30 blocks of all cases:"},
	} {
		e.Design.Budget = test.budget
		d := predicted(t, e, from(e, measuredBefore(6, 0.02)))
		c := d.Forecast.Comparisons[0]
		if d.Forecast.BudgetBlocks != test.blocks || c.ChangeInBudget.Known() != (test.blocks >= 12) ||
			test.blocks == 30 && !near(c.ChangeInBudget, float64(c.Change)) {
			t.Errorf("budget %g: %d blocks, change %v", test.budget, d.Forecast.BudgetBlocks, c.ChangeInBudget)
		}
		if test.blocks == 12 && !(c.ChangeInBudget > c.Change) {
			t.Errorf("12 blocks show %v, 30 show %v", c.ChangeInBudget, c.Change)
		}
		if text := printed(t, d); !strings.Contains(text, test.text) {
			t.Errorf("budget %g: no %q in\n%s", test.budget, test.text, text)
		}
	}
}

// TestForecastThatMissesDelta checks that the plan reports that the planned blocks cannot detect delta, with the
// remedies, and that the number of blocks that it recommends is the smallest.
func TestForecastThatMissesDelta(t *testing.T) {
	t.Parallel()
	e := planned()
	d := predicted(t, e, from(e, measuredBefore(6, 0.1)))
	c := d.Forecast.Comparisons[0]
	n, shift := int(c.BlocksEnough), func(n int) float64 { return stats.DetectableShift(n, 0.05/4, 0.8, stats.OneLook{}) }
	if n <= 30 || 0.1*shift(n) > math.Log1p(0.02) || 0.1*shift(n-1) <= math.Log1p(0.02) {
		t.Errorf("%d blocks are said to be enough: they show %.4f, one less %.4f", n, 0.1*shift(n), 0.1*shift(n-1))
	}
	text := printed(t, d)
	for _, want := range []string{
		"30 blocks are too few to decide with that probability on a delta of 2 %:",
		fmt.Sprintf("pod-pod/other/tcp-rr, b: it would take --blocks %d, or --delta ", n),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// If no number of blocks detects delta, none is recommended.
	e.Design.Delta = 1e-5
	if c := predicted(t, e, from(e, measuredBefore(6, 0.1))).Forecast.Comparisons[0]; c.BlocksEnough.Known() {
		t.Errorf("%v blocks show a change of 0.001 %%", c.BlocksEnough)
	}
	// If the planned blocks detect delta, none is recommended either.
	e.Design.Delta = 0.5
	d = predicted(t, e, from(e, measuredBefore(6, 0.1)))
	if strings.Contains(printed(t, d), "too few") || d.Forecast.Comparisons[0].BlocksEnough.Known() {
		t.Error("a delta of 50 % is said to be missed")
	}
}

func printed(t *testing.T, d *plan.Document) string {
	t.Helper()
	var b strings.Builder
	if err := report.Plan(&b, *d); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	return b.String()
}

// TestEarlier checks that targets of earlier results are matched by their spec, else by their name; the rest is left
// out.
func TestEarlier(t *testing.T) {
	e := planned()
	before := planned()
	before.Targets = []result.Target{{Name: "old", Spec: result.SpecOf("lab:a")},
		{Name: "b", Spec: result.SpecOf("lab:b?mtu=9000")}, {Name: "x", Spec: result.SpecOf("lab:x")}}
	before.Baseline = "old"
	before.Cases = append(before.Cases, result.Case{Name: "pod-svc/other/tcp-rr", Role: result.Primary, Metric: "p50"})
	runs := measuredBefore(4, 0.03)
	for i, r := range runs {
		runs[i].Target = map[string]string{"a": "old", "b": "b", "c": "x"}[r.Target]
	}
	k, err := plan.Earlier("results", result.Results{Experiment: before, Runs: runs}, e)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, r := range k.Results.Runs {
		names[r.Target]++
	}
	if len(names) != 2 || names["a"] != 4 || names["b"] != 4 {
		t.Errorf("runs by target: %v", names)
	}
	f := predicted(t, e, k).Forecast
	if c := f.Comparisons[0]; c.Target != "b" || !near(c.Spread, 0.03) {
		t.Errorf("%+v", c)
	}
	if c := f.Comparisons[1]; c.Target != "c" || c.Spread.Known() {
		t.Errorf("%+v", c)
	}
	e.Targets = []result.Target{{Name: "q", Spec: result.SpecOf("lab:q")}}
	if _, err := plan.Earlier("results", result.Results{Experiment: before, Runs: runs}, e); err == nil ||
		!strings.HasPrefix(err.Error(), "results has no run") {
		t.Errorf("without anything in common: %v", err)
	}
}

// TestPlanDocumentIsJSON checks that a plan document survives its JSON form, with null for unknown numbers.
func TestPlanDocumentIsJSON(t *testing.T) {
	e := planned()
	text, err := json.Marshal(predicted(t, e, from(e, measuredBefore(2, 0.02))))
	if err != nil {
		t.Fatal(err)
	}
	var again plan.Document
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if again.Forecast == nil || again.Forecast.Comparisons[2].Spread.Known() ||
		!again.Forecast.Comparisons[0].Spread.Known() {
		t.Errorf("%s", text)
	}
}

// TestTooFew checks that the warning names the smallest number of blocks with which a comparison can be decided: the
// probability that n pairs all point the same way by chance is 2^(1-n).
func TestTooFew(t *testing.T) {
	for _, test := range []struct {
		blocks  int
		looks   []int
		targets int
		alpha   float64
		want    string
	}{
		{3, nil, 2, 0.05, "3 blocks cannot give a verdict on any of the 2 primary comparisons, which share alpha; " +
			"it takes --blocks 7 or more"},
		{6, nil, 2, 0.05, "6 blocks"}, {7, nil, 2, 0.05, ""},
		{7, nil, 3, 0.05, "any of the 4 primary comparisons, which share alpha; it takes --blocks 8"}, {8, nil, 3, 0.05, ""},
		{6, []int{3, 6}, 2, 0.05, "; it takes a last look after 7 or more"},
		{7, []int{3, 7}, 2, 0.05, ""}, {30, []int{8, 11, 15, 21, 30}, 2, 0.05, ""},
		{1, nil, 2, 0.05, "1 block cannot"},
		{200, nil, 2, 1e-60, "no number of blocks"},
		{1, nil, 1, 0.05, ""}, // nothing is compared
	} {
		e := planned()
		e.Targets = e.Targets[:test.targets]
		e.Design.Blocks, e.Design.Looks, e.Design.Alpha = test.blocks, test.looks, test.alpha
		got, err := plan.TooFew(e)
		if err != nil || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
