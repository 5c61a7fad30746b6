package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// minUnpaired is the number of runs on each side below which an unpaired comparison has no verdict.
const minUnpaired = 6

// CompareUnpaired compares two results directories, where no blocks pair the runs: by Mann-Whitney
// and its shift interval on the logarithms. A target of b is compared with the target of the same
// name in a, else with a's baseline; names carry the experiment's id. Runs of another tool are
// compared with our own where case, metric and unit are the same. Drift between the two times of
// measurement is part of every difference, which the warnings say, with whatever has no counterpart.
// Gates are those of both.
func CompareUnpaired(a, b result.Results) (Comparison, error) {
	for _, x := range []result.Results{a, b} {
		if err := check(x.Experiment); err != nil {
			return Comparison{}, fmt.Errorf("experiment %s: %w", x.Experiment.ID, err)
		}
	}
	gates, err := parseGates(slices.Concat(a.Experiment.Gates, b.Experiment.Gates)...)
	if err != nil {
		return Comparison{}, err
	}
	u := newUnpaired(audited(numbered(a)), audited(numbered(b)))
	cases := u.cases()
	u.primaries = primaryCases(cases) * len(b.Experiment.Targets)
	c := u.comparison()
	var contests []versus
	for _, target := range b.Experiment.Targets {
		contests = append(contests, versus{u.counterpart(target.Name), target.Name})
	}
	for _, rc := range cases {
		for _, of := range contests {
			c.Comparisons = append(c.Comparisons, u.compareCase(rc, of)...)
		}
	}
	c.Warnings = append(c.Warnings, selections(cases, contests, u.losses)...)
	for _, of := range contests {
		x, y := placeFacts(cases, of, u.a, u.b)
		c.addDifferences(u.nameB(of.target), slices.Concat(a.Facts[of.baseline], x), slices.Concat(b.Facts[of.target], y))
	}
	facts := map[string][]result.Fact{}
	for i, x := range []result.Results{a, b} {
		c.addSide(u.sides()[i], x)
		for _, t := range x.Experiment.Targets {
			if name := u.sides()[i].name(t.Name); facts[name] == nil {
				facts[name] = x.Facts[t.Name]
			}
		}
	}
	c.Warnings = append(c.Warnings, u.unmatched()...)
	c.Gates = judgeAll(gates, plannedCases(cases), u.subjects(), u.design.Alpha)
	own, _ := exploratory(c.Comparisons, cases)
	decideTogether(own, c.Alpha)
	c.finish(scope(verdictsSpeak, slices.Concat(u.a.starts(), u.b.starts()), u.primaries, u.design.Alpha), cases)
	c.addPrices(u.a.e, func(target string) []result.Fact { return facts[target] })
	return c, nil
}

// A side is one of two trials, with the names that its targets have in the comparison.
type side struct {
	*trial
	name func(target string) string
}

func (u unpaired) sides() [2]side { return [2]side{{u.a, u.nameA}, {u.b, u.nameB}} }

// addSide adds what is told of one experiment by itself.
func (c *Comparison) addSide(of side, r result.Results) {
	for _, s := range sessionsOf(r) {
		if s.Sentence != "" {
			s.Sentence = "Experiment " + of.e.ID + ": " + s.Sentence
		}
		c.Sessions = append(c.Sessions, s)
	}
	for _, v := range visitsOf(r) {
		v.Sentence = "Experiment " + of.e.ID + ": " + v.Sentence
		c.Visits = append(c.Visits, v)
	}
	for _, text := range siteDoubts(r.Sites) {
		c.Warnings = append(c.Warnings, "Experiment "+of.e.ID+": "+text)
	}
	for _, f := range of.findings {
		if f.Target != "" {
			f.Target = of.name(f.Target)
		}
		c.Findings = append(c.Findings, f)
	}
	for _, box := range of.boxes() {
		box.Target = of.name(box.Target)
		c.Boxes = append(c.Boxes, box)
	}
}

// unpaired is two trials that are compared, or one with itself: then each of its targets is compared
// with another one.
type unpaired struct {
	a, b      *trial
	one       bool
	design    result.Design
	primaries int
	alone     map[string]bool // metrics that one side does not have, as sentences name them
}

func newUnpaired(a, b *trial) unpaired {
	u := unpaired{a: a, b: b, design: a.e.Design, alone: map[string]bool{}}
	u.design.Alpha = math.Min(u.design.Alpha, b.e.Design.Alpha)
	u.design.Delta = math.Min(u.design.Delta, b.e.Design.Delta)
	return u
}

// numbered gives runs of another tool, which has no blocks, a number each among those of its case and
// target, so that all of them count.
func numbered(r result.Results) result.Results {
	if r.Experiment.Imported == "" {
		return r
	}
	r.Runs = slices.Clone(r.Runs)
	next := map[[2]string]int{}
	for i := range r.Runs {
		run := &r.Runs[i]
		at := [2]string{run.Case, run.Target}
		next[at]++
		run.Block, run.Attempt, run.Slot = next[at], 1, 0
	}
	return r
}

func (u unpaired) nameA(target string) string { return u.name(target, u.a.e) }
func (u unpaired) nameB(target string) string { return u.name(target, u.b.e) }

func (u unpaired) name(target string, of result.Experiment) string {
	if u.one {
		return target
	}
	return target + " (" + of.ID + ")"
}

// counterpart is the target of a that a target of b is compared with.
func (u unpaired) counterpart(target string) string {
	if !u.one && slices.ContainsFunc(u.a.e.Targets, func(t result.Target) bool { return t.Name == target }) {
		return target
	}
	return u.a.e.Baseline
}

// comparison is the frame of the result, with what is said of it as a whole.
func (u unpaired) comparison() Comparison {
	c := newComparison(u.a.e)
	c.Experiment = u.a.e.ID + " " + u.b.e.ID
	c.Baseline = u.nameA(u.a.e.Baseline)
	c.Alpha, c.Delta, c.Primaries = u.design.Alpha, u.design.Delta, u.primaries
	c.Placebos = []string{}
	for i := range c.NotMeasured {
		c.NotMeasured[i].Target = u.nameA(c.NotMeasured[i].Target)
	}
	for _, n := range u.b.e.NotMeasured {
		n.Target = u.nameB(n.Target)
		c.NotMeasured = append(c.NotMeasured, n)
	}
	for _, side := range u.sides() {
		for _, r := range side.targetRuns() {
			r.Name = side.name(r.Name)
			c.Targets = append(c.Targets, r)
		}
	}
	c.Warnings = append(c.Warnings, asSentences(u.b.e.Warnings)...)
	c.Warnings = append(c.Warnings, "The two experiments are not paired: what changed between the two times of "+
		"measurement is part of every difference.")
	c.Warnings = append(c.Warnings, u.inequalities()...)
	for _, t := range []*trial{u.a, u.b} {
		if t.e.Imported != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("Experiment %s is numbers of another tool (%s), which may mean "+
				"something else by the same names.", t.e.ID, t.e.Imported))
		}
		c.Warnings = append(c.Warnings, t.warnings...)
	}
	if u.a.closed && u.b.closed {
		c.Warnings = append(c.Warnings, closedWords)
	}
	for _, t := range []*trial{u.a, u.b} {
		texts := t.common.ofAllRuns()
		if t.oneMachine() {
			texts = append(texts, oneMachineWords)
		}
		for _, text := range texts {
			c.Warnings = append(c.Warnings, "Experiment "+t.e.ID+": "+text)
		}
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
	if x.Imported == "" && y.Imported == "" { // another tool's are not known
		differ("the seconds of a run", x.Design.Duration, y.Design.Duration)
		differ("the seconds of warm-up", x.Design.Warmup, y.Design.Warmup)
	}
	differ("alpha, of which the smaller counts", x.Design.Alpha, y.Design.Alpha)
	differ("delta, of which the smaller counts", x.Design.Delta, y.Design.Delta)
	if x.ID == y.ID {
		said = append(said, "Both experiments have the same id; they may be the same data.")
	}
	return said
}

// compareCase returns a row for each metric that two targets have of a case.
func (u unpaired) compareCase(rc result.Case, of versus) []Row {
	a, b := u.a.valid(rc.Name, of.baseline), u.b.valid(rc.Name, of.target)
	given := !isMeasured(u.a.e, rc.Name, of.baseline) || !isMeasured(u.b.e, rc.Name, of.target)
	if (given || u.one && rc.Role != result.Primary) && (len(a) == 0 || len(b) == 0) {
		return nil
	}
	found, alone := shared(rc.Metric, a, b)
	found = withPlanned(rc, found)
	if len(a) > 0 && len(b) > 0 {
		for _, v := range alone {
			u.alone[fmt.Sprintf("%s %s in %q", rc.Name, v.Metric, v.Unit)] = true
		}
	}
	var rows []Row
	for _, v := range found {
		r := newRow(u.design, rc, v, versus{u.nameA(of.baseline), u.nameB(of.target)})
		if v.Better == metric.Neutral {
			r.warn("The two sides do not both have %s in one unit, or neither says what is better; nothing is compared.",
				v.Metric)
		} else {
			r.fillUnpaired(v, a, b, r.alpha(u.design, u.primaries))
		}
		if v.Metric == rc.Metric {
			r.UpperBound = upperBound(rc, r, of, u.a, u.b)
			u.doubt(&r, a, b)
		}
		words := append(u.a.auditWords(rc.Name, v.Metric, u.nameA(of.baseline), of.baseline),
			u.b.auditWords(rc.Name, v.Metric, u.nameB(of.target), of.target)...)
		r.Warnings = append(r.Warnings, slices.Compact(words)...)
		rows = append(rows, r)
	}
	return rows
}

// doubt adds what the runs say against believing a row.
func (u unpaired) doubt(r *Row, a, b map[int]*result.Run) {
	x, y := steady(a)[factLoop], steady(b)[factLoop]
	switch {
	case x != "" && y != "" && x != y:
		r.warn("The loop of one side is %s and that of the other %s: their latencies do not mean the same.", x, y)
	case x == "closed" && !(u.a.closed && u.b.closed):
		r.Warnings = append(r.Warnings, closedWords)
	}
	doubtLimit(r, a, b)
	both := maps.Clone(u.a.common)
	maps.DeleteFunc(both, func(kind result.Kind, _ heard) bool { return u.b.common[kind].n == 0 })
	r.Warnings = append(r.Warnings, (&trial{common: both}).runDoubts(*r, a, b)...)
}

// upperBound relates a row of a case's own metric to what bounds the case, each side to the bound on its own underlay
// in its own experiment; nil if neither has one. Other metrics are no share of a bound: retransmits may well be fewer
// on a slower path.
func upperBound(rc result.Case, r Row, of versus, a, b *trial) *UpperBound {
	if r.Metric != rc.Metric {
		return nil
	}
	nameA, boundA := a.boundOf(r, of.baseline)
	nameB, boundB := b.boundOf(r, of.target)
	if len(boundA)+len(boundB) == 0 {
		return nil
	}
	bound := UpperBound{Case: cmp.Or(nameA, nameB), Median: Number(stats.Median(boundA)),
		TargetMedian: Number(stats.Median(boundB))}
	bound.BaselineShare = share(r.Better, r.BaselineMedian, stats.Median(boundA))
	bound.TargetShare = share(r.Better, r.TargetMedian, stats.Median(boundB))
	return &bound
}

// share is the share of a bound that a median reaches.
func share(better metric.Better, median Number, bound float64) Number {
	if better == metric.Lower {
		return Number(bound / float64(median))
	}
	return Number(float64(median) / bound)
}

// boundOf returns the case that bounds the row's, and its values above 0 that hold for a target.
func (t *trial) boundOf(r Row, target string) (name string, values []float64) {
	rc, _ := t.e.Case(r.Case)
	runs := t.valid(rc.Bound, t.e.BoundsOf(target))
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		v, has := valueIn(runs[n], result.Value{Metric: r.Metric, Unit: r.Unit})
		if has && v.Unit == r.Unit && v.Usable() && v.Number > 0 {
			values = append(values, v.Number)
		}
	}
	return rc.Bound, values
}

// fillUnpaired computes everything that the values of a metric say.
func (r *Row) fillUnpaired(v result.Value, a, b map[int]*result.Run, alpha float64) {
	s, ok := r.samples(v, a, b)
	if !ok {
		return
	}
	r.describe(s)
	if r.Blocks < minUnpaired {
		r.warn("There are %d and %d runs; below %d on each side there is no verdict.",
			len(s.baseline), len(s.target), minUnpaired)
	}
	if r.Blocks == 0 {
		return
	}
	e, ok := s.ratio(alpha)
	if !ok {
		r.noRatio(s, stats.Unpaired(s.baseline, s.target, alpha), alpha)
		return
	}
	r.estimate(e, alpha)
	if r.Blocks < minUnpaired {
		r.P = Missing()
		return
	}
	r.decidePrimary()
	r.outside = outsideUnpaired(logarithms(s.baseline), logarithms(s.target), e.Shift, r.Delta)
}

// samples collects a metric from the runs of both sides. It is not ok if they do not measure the same thing.
func (r *Row) samples(v result.Value, a, b map[int]*result.Run) (s sides, ok bool) {
	x, okX := r.values(v, a)
	y, okY := r.values(v, b)
	s = sides{baseline: x, target: y}.settled()
	r.step = stepOf(stepsOf(v, a, b), s.baseline, s.target)
	return s, okX && okY
}

// values collects a metric from runs in order of blocks. It is not ok if its unit is another.
func (r *Row) values(v result.Value, runs map[int]*result.Run) (values []float64, ok bool) {
	var without []string
	for _, n := range blocks(runs, runs) {
		x, has := valueIn(runs[n], v)
		switch {
		case !has || !x.Usable():
			without = append(without, runs[n].ID)
		case !matches(x, v):
			r.warn("Run %s has %s in %q, others in %q, or they disagree on what is better; nothing is compared.",
				runs[n].ID, v.Metric, x.Unit, v.Unit)
			return nil, false
		default:
			values = append(values, x.Number)
		}
	}
	if len(without) > 0 {
		r.warn("%s without a usable %s, left out: %s.", unit.Plural(len(without), "run"), v.Metric, prose.Some(without))
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
