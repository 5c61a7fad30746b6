package compare

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// compareSeveral compares experiments under their ids, made unique.
func compareSeveral(all ...result.Results) (Comparison, error) {
	j, err := Join(partsOf(all...)...)
	if err != nil {
		return Comparison{}, err
	}
	return j.Compare()
}

func partsOf(all ...result.Results) []Part {
	var parts []Part
	for _, r := range all {
		label := r.Experiment.ID
		for slices.ContainsFunc(parts, func(p Part) bool { return p.Label == label }) {
			label += "'"
		}
		parts = append(parts, Part{Results: r, Label: label})
	}
	return parts
}

// directory returns an experiment of one target, called a, with the given latency ratio and noise of 1 %.
func directory(id string, seed uint64, ratio float64, runs int) *world {
	random := rand.New(rand.NewPCG(seed, 7))
	w := newWorld(runs, "a")
	w.e.ID = id
	w.addCase(rr, result.Primary, "p50")
	for b := 1; b <= runs; b++ {
		w.add(b, rr, "a", p50(1e-4*ratio*(1+0.01*random.NormFloat64())))
	}
	return w
}

// six returns six experiments of which the fourth is slower.
func six(seed uint64, slower float64) []result.Results {
	var all []result.Results
	for i, id := range []string{"A", "B", "C", "D", "E", "F"} {
		ratio := 1.0
		if id == "D" {
			ratio = slower
		}
		all = append(all, results(directory(id, seed*100+uint64(i), ratio, 12)))
	}
	return all
}

// TestSixExperiments checks that verdicts, letters and headline find the experiment that is 20 % slower.
func TestSixExperiments(t *testing.T) {
	parts := partsOf(six(1, 1.2)...)
	for i := range parts {
		parts[i].Named = true
	}
	j, err := Join(parts...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := j.Compare()
	if err != nil {
		t.Fatal(err)
	}
	if c.Paired || c.Primaries != 5 || len(c.Comparisons) != 5 || c.Baseline != "A" || c.Experiment != "A B C D E F" {
		t.Errorf("%v %d %d %s %s", c.Paired, c.Primaries, len(c.Comparisons), c.Baseline, c.Experiment)
	}
	for _, r := range c.Comparisons {
		if (r.Verdict == Different) != (r.Target == "D") || r.Level != 1-0.05/5 || r.Baseline != "A" {
			t.Errorf("%s against %s: %s at %v", r.Target, r.Baseline, r.Verdict, r.Level)
		}
	}
	if len(c.Groups) != 1 {
		t.Fatalf("groups %+v", c.Groups)
	}
	for _, m := range c.Groups[0].Members {
		if want := map[bool]string{true: "b", false: "a"}[m.Target == "D"]; m.Letters != want {
			t.Errorf("%s has %s", m.Target, m.Letters)
		}
	}
	lettersAgree(t, c)
	if !strings.Contains(c.Headline, "D is slower than A") {
		t.Errorf("headline %q", c.Headline)
	}
	if !contains(c.Warnings, Warning{Code: NotPaired, Count: 6}) {
		t.Errorf("%+v", c.Warnings)
	}
	j.Experiment.Design.AllPairs = true
	if c, err = j.Compare(); err != nil {
		t.Fatal(err)
	}
	if c.Primaries != 15 || len(c.Comparisons) != 15 || c.Against()["F"] != "A" ||
		!strings.Contains(c.Headline, "than A") || strings.Contains(c.Headline, "than B") {
		t.Errorf("of all pairs: %d, against %v: %s", c.Primaries, c.Against(), c.Headline)
	}
}

// TestAccuracySixEqualExperiments checks that of many sets of six experiments of one distribution anything differs in
// at most alpha: this bounds the error of all five comparisons together.
func TestAccuracySixEqualExperiments(t *testing.T) {
	const sets = 400
	wrong := 0
	for seed := range uint64(sets) {
		c, err := compareSeveral(six(1000+seed, 1)...)
		if err != nil {
			t.Fatal(err)
		}
		if different(c.Comparisons) {
			wrong++
		}
	}
	// Of 400 sets at 5 %, 20 are expected; more than 34 occur once in a thousand times.
	if wrong > 34 {
		t.Errorf("%d of %d sets differ", wrong, sets)
	}
}

// TestExperimentsWithOtherCases checks that only common cases are compared; missing ones are named, and do not count in
// the error probability of the rest.
func TestExperimentsWithOtherCases(t *testing.T) {
	all := []*world{directory("x", 1, 1, 8), directory("y", 2, 1, 8), directory("z", 3, 1.5, 8)}
	for _, w := range all[1:] {
		w.addCase("late", result.Primary, "p50")
	}
	all[2].addCase("alone", result.Primary, "p50")
	all[1].e.Cases = all[1].e.Cases[1:] // y lacks rr
	for _, w := range all {
		w.e.NotMeasured = []result.NotMeasured{{Target: "*", Case: "never", Reason: "no"}}
	}
	c, err := compareSeveral(results(all[0]), results(all[1]), results(all[2]))
	if err != nil {
		t.Fatal(err)
	}
	if c.Primaries != 1 || len(c.Comparisons) != 1 || c.Comparisons[0].Target != "a (z)" ||
		c.Comparisons[0].Level != 0.95 {
		t.Errorf("%d primaries, %+v", c.Primaries, c.Comparisons)
	}
	want := []result.NotMeasured{
		{Target: "*", Case: "never", Reason: "no"},
		{Target: "a (y)", Case: rr, Reason: "y does not have this case"},
		{Target: "a (x)", Case: "late", Reason: "x does not have this case"},
	}
	if diff := cmp.Diff(want, c.NotMeasured); diff != "" {
		t.Errorf("not measured (-want +got)\n%s", diff)
	}
	for _, want := range []Warning{
		{Code: OnlyInOne, Experiments: []string{"z"}, Cases: []string{"alone"}},
		{Code: MissingInFirst, Experiments: []string{"x"}, Cases: []string{"late"}},
	} {
		if !contains(c.Warnings, want) {
			t.Errorf("no %+v in %+v", want, c.Warnings)
		}
	}
}

// TestExperimentsDifferInDesign checks that the smallest alpha and delta count, and that warnings name the experiments.
func TestExperimentsDifferInDesign(t *testing.T) {
	all := six(1, 1)
	all[2].Experiment.Design.Alpha, all[3].Experiment.Design.Delta = 0.01, 0.005
	c, err := compareSeveral(all...)
	if err != nil {
		t.Fatal(err)
	}
	if c.Alpha != 0.01 || c.Delta != 0.005 || c.Comparisons[0].Level != 1-0.01/5 {
		t.Errorf("alpha %v, delta %v, %+v", c.Alpha, c.Delta, c.Comparisons[0])
	}
	for _, want := range []Warning{
		{Code: AlphasDiffer, Values: []PropertyValue{{"0.05", []string{"A", "B", "D", "E", "F"}}, {"0.01", []string{"C"}}}},
		{Code: DeltasDiffer, Values: []PropertyValue{{"0.02", []string{"A", "B", "C", "E", "F"}}, {"0.005", []string{"D"}}}},
	} {
		if !contains(c.Warnings, want) {
			t.Errorf("no %+v in %+v", want, c.Warnings)
		}
	}
}

// TestAttemptsOfExperiments checks that a block that one experiment repeated does not affect the blocks of others.
func TestAttemptsOfExperiments(t *testing.T) {
	a, b, c := directory("x", 1, 1, 8), directory("y", 2, 1, 8), directory("z", 3, 1, 8)
	b.runs[0].Invalid = []result.Warning{{Code: "gate", Text: "gate"}}
	b.add(1, rr, "a", p50(1e-4)).Attempt = 2
	got, err := compareSeveral(results(a), results(b), results(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Groups[0].Members {
		if m.Blocks != 8 {
			t.Errorf("%s has %d runs", m.Target, m.Blocks)
		}
	}
	j, err := Join(partsOf(results(a), results(b), results(c))...)
	if err != nil {
		t.Fatal(err)
	}
	last := result.LastAttempts(j.Runs)
	superseded := 0
	for i := range j.Runs {
		if !last(&j.Runs[i]) {
			superseded++
		}
	}
	if superseded != 1 {
		t.Errorf("%d runs are superseded", superseded)
	}
}

// TestImportsAmongOurs checks the comparison of a measured experiment with two tables, one of which does not record the
// better direction.
func TestImportsAmongOurs(t *testing.T) {
	table := func(id string, seed uint64, ratio float64) *world {
		w := directory(id, seed, ratio, 9)
		w.e.Imported, w.e.Design = "csv", result.Design{Alpha: 0.05, Delta: 0.02}
		for i := range w.runs {
			w.runs[i].Block = 0
		}
		return w
	}
	silent := table("silent", 2, 1.2)
	each(silent, func(v *result.Value) { v.Better = "" })
	c, err := compareSeveral(results(directory("ours", 1, 1, 9)), results(silent), results(table("theirs", 3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Comparisons) != 2 || c.Comparisons[0].Verdict != Different || c.Comparisons[1].Verdict == Different {
		t.Errorf("%+v", c.Comparisons)
	}
	if !contains(c.Warnings, Warning{Code: OtherTool, Experiments: []string{"silent", "theirs"}, Tool: "csv"}) {
		t.Errorf("%+v", c.Warnings)
	}
	if len(c.Groups) != 1 || len(c.Groups[0].Members) != 3 || c.Groups[0].Members[2].Letters != "b" {
		t.Errorf("groups %+v", c.Groups)
	}
}

// TestJoinRefusesEqualNames checks that the error names the targets to label.
func TestJoinRefusesEqualNames(t *testing.T) {
	a, b := results(directory("x", 1, 1, 8)), results(directory("y", 2, 1, 8))
	_, err := Join(Part{Results: a, Label: "one"}, Part{Results: b, Label: "one"})
	if !errors.Is(err, ErrExperiment) || !strings.Contains(err.Error(), `"a (one)"`) {
		t.Errorf("error %v", err)
	}
	b.Experiment.Design.Alpha = 2
	if _, err = Join(Part{Results: a, Label: "one"}, Part{Results: b, Label: "two"}); !errors.Is(err, ErrExperiment) ||
		!strings.HasPrefix(err.Error(), "two: ") {
		t.Errorf("error %v", err)
	}
}

// TestSameCaseDefinedTwice checks the warning about cases with the same name and different definitions.
func TestSameCaseDefinedTwice(t *testing.T) {
	a, b := directory("x", 1, 1, 8), directory("y", 2, 1, 8)
	a.e.Cases[0].Definition, b.e.Cases[0].Definition = "bs=4k", "bs=8k"
	c, err := compareSeveral(results(a), results(b))
	if err != nil || !contains(c.Warnings, Warning{Code: DefinitionsDiffer, Cases: []string{rr}}) {
		t.Errorf("%v %+v", err, c.Warnings)
	}
}

// TestJobsOfOneName checks that an imported job named by its options is compared with the user's own job of the same
// name, and with the case of its options if another part has that.
func TestJobsOfOneName(t *testing.T) {
	const own, options = "storage/job/read_iops", "storage/randread-4k-qd128"
	part := func(id, name, synonym, metric string) result.Results {
		w := newWorld(8, "disk")
		w.e.ID = id
		w.addCase(name, result.Primary, metric)
		w.e.Cases[0].Synonym = synonym
		for b := range 8 {
			r := w.add(b+1, name, "disk", throughput(1e8+float64(b)))
			r.Values = append(r.Values, result.Value{Metric: "rate", Unit: unit.PerSecond, Better: "higher", Number: 900})
		}
		return results(w)
	}
	ours, theirs := part("ours", own, "", "throughput"), part("theirs", options, own, "rate")
	suite := part("suite", options, "", "rate")
	for _, test := range []struct {
		parts []result.Results
		name  string
		rows  int
	}{
		{[]result.Results{ours, theirs}, own, 1},
		{[]result.Results{theirs, ours}, own, 1},
		{[]result.Results{ours, theirs, part("more", options, own, "rate")}, own, 2},
		{[]result.Results{suite, theirs}, options, 1},
		{[]result.Results{suite, theirs, ours}, options, 1},
		{[]result.Results{theirs, part("more", options, own, "rate")}, options, 1},
	} {
		c, err := compareSeveral(test.parts...)
		if err != nil {
			t.Fatal(err)
		}
		primary := c.Primary()
		if len(primary) != test.rows || c.Primaries != test.rows {
			t.Fatalf("%d primary rows of %d primaries, want %d: %+v", len(primary), c.Primaries, test.rows, primary)
		}
		for _, r := range primary {
			if r.Case != test.name || (test.name == own) != (r.Metric == "throughput") {
				t.Errorf("%s %s, want %s", r.Case, r.Metric, test.name)
			}
		}
	}
	if theirs.Runs[0].Case != options || theirs.Experiment.Cases[0].Name != options {
		t.Error("Join has changed the results that it was given")
	}
	// A part with both names shows that they are two cases.
	both := part("both", own, "", "throughput")
	both.Experiment.Cases = append(both.Experiment.Cases, theirs.Experiment.Cases...)
	both.Runs = append(both.Runs, theirs.Runs...)
	j, err := Join(partsOf(ours, both)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, has := j.Experiment.Case(options); !has || len(j.Experiment.Cases) != 2 {
		t.Errorf("cases %+v", j.Experiment.Cases)
	}
}
