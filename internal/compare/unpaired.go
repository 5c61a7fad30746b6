package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// MinUnpaired is the number of runs on each side below which an unpaired comparison has no verdict.
const MinUnpaired = 6

// CompareUnpaired compares two results directories, where no blocks pair the runs: by Mann-Whitney
// and its shift interval on the logarithms. A target of b is compared with the target of the same
// name in a, else with a's baseline; names carry the experiment's id. Drift between the two times of
// measurement is part of every difference, which the warnings say.
func CompareUnpaired(a, b result.Results) (Comparison, error) {
	for _, x := range []result.Results{a, b} {
		if err := check(x.Experiment); err != nil {
			return Comparison{}, fmt.Errorf("experiment %s: %w", x.Experiment.ID, err)
		}
	}
	u := unpaired{a: newTrial(a.Experiment, a.Runs), b: newTrial(b.Experiment, b.Runs)}
	u.design = a.Experiment.Design
	u.design.Alpha = math.Min(u.design.Alpha, b.Experiment.Design.Alpha)
	u.design.Delta = math.Min(u.design.Delta, b.Experiment.Design.Delta)
	cases := u.cases()
	u.primaries = primaryCases(cases) * len(b.Experiment.Targets)
	c := u.comparison()
	for _, rc := range cases {
		for _, target := range b.Experiment.Targets {
			c.Comparisons = append(c.Comparisons, u.compareCase(rc, target.Name)...)
		}
	}
	for _, target := range b.Experiment.Targets {
		c.addDifferences(u.nameB(target.Name), a.Facts[u.counterpart(target.Name)], b.Facts[target.Name])
	}
	c.finish(scope(slices.Concat(a.Runs, b.Runs), u.primaries, u.design.Alpha))
	return c, nil
}

// unpaired is two trials that are compared.
type unpaired struct {
	a, b      *trial
	design    result.Design
	primaries int
}

func (u unpaired) nameA(target string) string { return target + " (" + u.a.e.ID + ")" }
func (u unpaired) nameB(target string) string { return target + " (" + u.b.e.ID + ")" }

// counterpart is the target of a that a target of b is compared with.
func (u unpaired) counterpart(target string) string {
	if slices.ContainsFunc(u.a.e.Targets, func(t result.Target) bool { return t.Name == target }) {
		return target
	}
	return u.a.e.Baseline
}

// cases lists the cases that both experiments have. A case is primary if it is so in both, about the
// same metric.
func (u unpaired) cases() []result.Case {
	var both []result.Case
	for _, x := range u.a.e.Cases {
		i := slices.IndexFunc(u.b.e.Cases, func(y result.Case) bool { return y.Name == x.Name })
		if i < 0 || x.Role == result.Bound && u.b.e.Cases[i].Role == result.Bound {
			continue
		}
		if y := u.b.e.Cases[i]; x.Role != result.Primary || y.Role != result.Primary || x.Metric != y.Metric {
			x.Role = result.Exploratory
		}
		x.Bound = ""
		both = append(both, x)
	}
	return both
}

// comparison is the frame of the result, with what is said of it as a whole.
func (u unpaired) comparison() Comparison {
	c := newComparison(u.a.e)
	c.Experiment = u.a.e.ID + " " + u.b.e.ID
	c.Baseline = u.nameA(u.a.e.Baseline)
	c.Alpha, c.Delta, c.Primaries = u.design.Alpha, u.design.Delta, u.primaries
	for i := range c.NotMeasured {
		c.NotMeasured[i].Target = u.nameA(c.NotMeasured[i].Target)
	}
	for _, n := range u.b.e.NotMeasured {
		n.Target = u.nameB(n.Target)
		c.NotMeasured = append(c.NotMeasured, n)
	}
	for _, r := range u.a.targetRuns() {
		r.Name = u.nameA(r.Name)
		c.Targets = append(c.Targets, r)
	}
	for _, r := range u.b.targetRuns() {
		r.Name = u.nameB(r.Name)
		c.Targets = append(c.Targets, r)
	}
	c.Warnings = append(c.Warnings, "The two experiments are not paired: what changed between the two times of measurement is part of every difference.")
	c.Warnings = append(c.Warnings, u.inequalities()...)
	for _, t := range []*trial{u.a, u.b} {
		c.Warnings = append(c.Warnings, t.warnings...)
	}
	for _, text := range u.a.common.sentences() {
		c.Warnings = append(c.Warnings, "Experiment "+u.a.e.ID+": "+text)
	}
	for _, text := range u.b.common.sentences() {
		c.Warnings = append(c.Warnings, "Experiment "+u.b.e.ID+": "+text)
	}
	return c
}

// inequalities says in what the two experiments were not made alike.
func (u unpaired) inequalities() []string {
	x, y := u.a.e, u.b.e
	var said []string
	differ := func(what string, one, two any) {
		if one != two {
			said = append(said, fmt.Sprintf("The experiments differ in %s: %v and %v.", what, one, two))
		}
	}
	differ("the tool", x.Tool, y.Tool)
	differ("the version of knotmeter", x.Version, y.Version)
	differ("the seconds of a run", x.Design.Duration, y.Design.Duration)
	differ("the seconds of warm-up", x.Design.Warmup, y.Design.Warmup)
	differ("alpha, of which the smaller counts", x.Design.Alpha, y.Design.Alpha)
	differ("delta, of which the smaller counts", x.Design.Delta, y.Design.Delta)
	if x.ID == y.ID {
		said = append(said, "Both experiments have the same id; they may be the same data.")
	}
	return said
}

// compareCase returns a row for each metric of a case, on a target of b.
func (u unpaired) compareCase(rc result.Case, target string) []Row {
	from := u.counterpart(target)
	if !isMeasured(u.a.e, rc.Name, from) || !isMeasured(u.b.e, rc.Name, target) {
		return nil
	}
	a, b := u.a.valid(rc.Name, from), u.b.valid(rc.Name, target)
	found := metrics(rc.Metric, a, b)
	if rc.Role == result.Primary && (len(found) == 0 || found[0].Metric != rc.Metric) {
		found = append([]result.Value{{Metric: rc.Metric}}, found...)
	}
	var rows []Row
	for _, v := range found {
		r := newRow(u.design, rc, v, versus{u.nameA(from), u.nameB(target)})
		r.fillUnpaired(v, a, b, r.alpha(u.design, u.primaries))
		rows = append(rows, r)
	}
	return rows
}

// fillUnpaired computes everything that the values of a metric say.
func (r *Row) fillUnpaired(v result.Value, a, b map[int]result.Run, alpha float64) {
	var s sides
	var okA, okB bool
	s.baseline, okA = r.values(v, a)
	s.target, okB = r.values(v, b)
	if !okA || !okB {
		return
	}
	r.describe(s)
	if r.Blocks < MinUnpaired {
		r.warn("There are %d and %d runs; below %d on each side there is no verdict.", len(s.baseline), len(s.target), MinUnpaired)
	}
	if r.Blocks == 0 {
		return
	}
	if notPositive(s.baseline)+notPositive(s.target) > 0 {
		r.noRatio(s, stats.Unpaired(s.baseline, s.target, alpha), alpha)
		return
	}
	x, y := logarithms(s.baseline), logarithms(s.target)
	e := stats.Unpaired(x, y, alpha)
	r.estimate(e, alpha)
	if r.Blocks < MinUnpaired {
		r.P = Missing()
		return
	}
	r.decidePrimary()
	r.outside = outsideUnpaired(x, y, e.Shift, r.Delta)
}

// values collects a metric from runs in order of blocks. It is not ok if its unit is another.
func (r *Row) values(v result.Value, runs map[int]result.Run) (values []float64, ok bool) {
	for _, n := range blocks(runs, runs) {
		x, has := runs[n].Value(v.Metric)
		switch {
		case !has || !usable(x.Number):
			r.warn("Run %s has no usable %s and is left out.", runs[n].ID, v.Metric)
		case !alike(x, v):
			r.warn("Run %s has %s in %q, others in %q, or they disagree on what is better; nothing is compared.", runs[n].ID, v.Metric, x.Unit, v.Unit)
			return nil, false
		default:
			values = append(values, x.Number)
		}
	}
	return values, true
}

func logarithms(values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return logs
}

// outsideUnpaired is outside for two samples of logarithms.
func outsideUnpaired(x, y []float64, shift, delta float64) float64 {
	p := 0.0
	if !(shift > math.Log1p(-delta) && shift < math.Log1p(delta)) {
		return 1
	}
	for _, at := range []float64{math.Log1p(delta), math.Log1p(-delta)} {
		moved := make([]float64, len(y))
		for i, v := range y {
			moved[i] = v - at
		}
		p = math.Max(p, stats.Unpaired(x, moved, 0.5).P)
	}
	return p
}
