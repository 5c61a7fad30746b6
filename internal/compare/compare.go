package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// ErrExperiment is wrapped by every error about the plan of an experiment.
var ErrExperiment = errors.New("the experiment cannot be compared")

// Compare compares every target with the baseline, or all pairs of targets if the design asks for that: paired by
// blocks, and unpaired for imported runs. Invalid runs, runs without a usable value and runs in which the audit finds
// an error are left out, with warnings. An error wraps [ErrExperiment] and describes what is wrong with the plan
// itself.
//
// Of each block the last attempt counts, and a pair is one valid run on each side. The intervals of primary comparisons
// have the confidence 1 - alpha / m, where m counts all primary comparisons planned, measured or not. The other
// intervals have 1 - alpha, and their verdicts are under false discovery rate control. All gates together share one
// further alpha. If the design has looks, all intervals are repeated confidence intervals, which hold at whichever look
// a case stopped. The facts are those of all sessions; what changed between sessions is in the comparison.
func Compare(r result.Results) (Comparison, error) {
	p, err := newAnalysisPlan(r.Experiment)
	if err != nil {
		return Comparison{}, err
	}
	return p.compare(r), nil
}

// compare compares the results of p's experiment. Imported runs have no blocks and are compared unpaired.
func (p analysisPlan) compare(r result.Results) Comparison {
	t := auditedRuns(numberRuns(r))
	c := newComparison(r.Experiment)
	c.Sessions, c.Visits = sessionsOf(r), visitsOf(r)
	var intro []Warning
	if c.Paired = r.Experiment.Imported == ""; c.Paired {
		t.look, t.detectableShifts = p.look, p.detectableShifts
		t.stoppedAfter = p.replayLooks(asPlanned(t.e), t.lastBlockOfAll(), r.Runs, t.auditErrors)
	} else {
		intro = append(intro, Warning{Code: Imported, Tool: r.Experiment.Imported})
	}
	c.fill(t, p, r.Facts, append(intro, t.warnings...),
		slices.Concat(t.sharedWarnings.warnings(), siteWarnings(r.Sites), t.designWarnings()))
	return c
}

// fill compares the targets of t and sets the fields of c. The warnings before and after go around those that it finds
// itself.
func (c *Comparison) fill(t *runTable, p analysisPlan, facts map[string][]result.Fact, before, after []Warning) {
	c.Primaries = t.primaries
	for _, rc := range t.e.Cases {
		for _, v := range t.targetPairs {
			if rc.Role != result.Bound && t.hasCase(rc, v) {
				c.Comparisons = append(c.Comparisons, t.compareCase(rc, v)...)
			}
		}
	}
	family := t.exploratoryFamily(c.Comparisons)
	decideTogether(family, c.Alpha, c.Delta)
	c.Findings = append(c.Findings, t.findings...)
	t.addDetectable(c.Comparisons)
	c.Groups = t.groups(c.Comparisons, family)
	c.Boxes = t.boxes()
	if c.Paired {
		c.Slopes = t.slopes()
	}
	c.addMedians(t)
	c.Targets = t.targetRuns()
	c.Warnings = append(c.Warnings, slices.Concat(t.interruption(c.Comparisons), t.driftWarnings(c.Comparisons), before,
		t.selectionWarnings(), t.unmatchedMetrics(), after)...)
	for _, v := range t.targetPairs {
		if v.baseline == t.baselineOf(v.target) {
			a, b := t.constantRunFacts(v)
			c.addDifferences(v.target, slices.Concat(facts[v.baseline], a), slices.Concat(facts[v.target], b))
		}
	}
	c.Gates = t.judgeGates(p.gates)
	c.finish(t.scope(), t.e.Cases)
	c.addPrices(t.e, func(target string) []result.Fact { return facts[target] })
	c.Limits, c.Objectives, c.Leaks = t.limits(facts), t.objectives(), t.leaks()
}

// driftWarnings returns a warning about the cases in which a row of the case's own metric drifts, if there are any.
func (t *runTable) driftWarnings(rows []Row) []Warning {
	var names []string
	for _, r := range rows {
		if rc, _ := t.e.Case(r.Case); r.drifts && r.Metric == rc.Metric {
			names = append(names, r.Case)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Warning{{Code: Trend, Cases: distinct(names)}}
}

// designWarnings returns warnings about how all runs were measured.
func (t *runTable) designWarnings() []Warning {
	var list []Warning
	for _, w := range []struct {
		holds bool
		code  Code
	}{
		{t.closedLoop, ClosedLoop}, {t.e.Design.Parallel, Parallel}, {t.e.InTurn(), InTurn}, {t.oneMachine(), OneMachine},
	} {
		if w.holds {
			list = append(list, Warning{Code: w.code})
		}
	}
	return list
}

// newComparison returns a comparison of e without rows.
func newComparison(e result.Experiment) Comparison {
	return Comparison{
		Schema: Schema, Experiment: e.ID, Seed: e.Seed, Baseline: e.Baseline, Alpha: e.Design.Alpha, Delta: e.Design.Delta,
		Comparisons: []Row{}, NotMeasured: append([]result.NotMeasured{}, e.NotMeasured...),
		AlsoDiffers: map[string][]string{}, Differences: map[string][]Difference{},
		Placebos: placebos(e), Groups: []Group{}, Boxes: []Box{}, Gates: []Gated{},
		Findings: []audit.Finding{}, Targets: []TargetRuns{}, Warnings: experimentWarnings(e),
	}
}

// finish sets what depends on all rows: the verdicts on metrics other than their case's own, the order of rows, and the
// sentences.
func (c *Comparison) finish(scope string, cases []result.Case) {
	_, others := exploratory(c.Comparisons, cases)
	decideTogether(others, c.Alpha, c.Delta)
	c.judgeReferences()
	slices.SortStableFunc(c.Comparisons, func(a, b Row) int { return rank(a.Role) - rank(b.Role) })
	for i := range c.Comparisons {
		c.Comparisons[i].Sentence = sentence(c.Comparisons[i], c.Paired, c.Delta)
	}
	c.Headline, c.Summary = headline(*c, cases), summary(*c)
	c.Subjects = subjects(*c, cases)
	c.Scope = scope + c.confidence()
}

func rank(r result.Role) int {
	if r == result.Primary {
		return 0
	}
	return 1
}

// check returns an error that wraps ErrExperiment if the plan allows no comparison.
func check(e result.Experiment) error {
	names := map[string]bool{}
	for _, t := range e.Targets {
		if names[t.Name] {
			return fmt.Errorf("%w: two targets are named %q; label one of them", ErrExperiment, t.Name)
		}
		names[t.Name] = true
	}
	cases := map[string]bool{}
	for _, rc := range e.Cases {
		if cases[rc.Name] {
			return fmt.Errorf("%w: the case %q is in the plan twice", ErrExperiment, rc.Name)
		}
		cases[rc.Name] = true
	}
	if !names[e.Baseline] {
		return fmt.Errorf("%w: the baseline %q is not among its targets", ErrExperiment, e.Baseline)
	}
	if err := e.Design.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrExperiment, err)
	}
	_, err := parseGates(e.Gates...)
	return err
}

// countPrimaryPlanned returns the number of primary comparisons in the plan.
func countPrimaryPlanned(e result.Experiment) int {
	return countPrimaryCases(e.Cases) * len(plannedPairs(e))
}

// countPlanned returns the number of planned comparisons of cases by their own metric, primary or not.
func countPlanned(e result.Experiment) int {
	n := 0
	for _, rc := range e.Cases {
		if rc.Role != result.Bound {
			n += len(plannedPairs(e))
		}
	}
	return n
}

func countPrimaryCases(cases []result.Case) int {
	n := 0
	for _, rc := range cases {
		if rc.Role == result.Primary {
			n++
		}
	}
	return n
}

// lookDesign returns the group-sequential design of the looks, or that of a single look.
func lookDesign(d result.Design) (stats.Design, error) {
	if len(d.Looks) == 0 {
		return stats.OneLook{}, nil
	}
	look, err := stats.NewGroupSequential(d.Looks)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExperiment, err)
	}
	return look, nil
}

// isMeasured reports whether the plan still measures the case on the target.
func isMeasured(e result.Experiment, caseName, target string) bool {
	return !slices.ContainsFunc(e.NotMeasured, func(n result.NotMeasured) bool { return n.Covers(target, caseName) })
}

// decide returns the verdict and the direction that follow from the interval and the smallest difference that matters.
func (r Row) decide(delta float64) (Verdict, Direction) {
	direction := None
	if r.CI.Excludes(0) {
		direction = WorseThan
		if (r.CI.Lo > 0) == (r.Better == metric.Higher) {
			direction = BetterThan
		}
	}
	switch {
	case r.CI.Within(delta):
		return Equivalent, direction
	case r.CI.Excludes(0):
		return Different, direction
	}
	return Undecided, None
}

// fraction converts a log ratio to a relative change: 0.0198 becomes 0.02.
func fraction(logRatio float64) float64 { return math.Expm1(logRatio) }

// estimate sets the row's change, interval and p from an estimate of log ratios. alpha is the error probability of the
// interval, delta the smallest difference that matters.
func (r *Row) estimate(e stats.Estimate, alpha, delta float64) {
	r.Change = Number(fraction(e.Shift))
	if r.step > delta {
		// The steps of the metric may have moved the ratio by up to one step in either direction.
		e.Lo, e.Hi = e.Lo-math.Log1p(r.step), e.Hi+math.Log1p(r.step)
		r.warnStep(delta)
	}
	// An infinite lower end stays infinite: as a fraction it would be -100 %, which looks like a bound.
	r.CI = Interval{math.Inf(-1), fraction(e.Hi)}
	if !math.IsInf(e.Lo, -1) {
		r.CI.Lo = fraction(e.Lo)
	}
	r.Level, r.Attained, r.P = 1-alpha, e.Attained, Number(e.P)
	r.remark(e)
}

// decidePrimary sets the verdict of a primary row, which depends on its interval alone.
func (r *Row) decidePrimary(delta float64) {
	if r.Role == result.Primary {
		r.Verdict, r.Direction = r.decide(delta)
	}
}
