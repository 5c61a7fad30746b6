package compare

import (
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// compareImported is Compare of runs of another tool. They have no blocks, so nothing pairs them: the
// comparisons are unpaired, between targets of one experiment.
func (p plan) compareImported(r result.Results) Comparison {
	e := r.Experiment
	t := audited(numbered(r))
	u := newUnpaired(t, t)
	u.one, u.primaries = true, planned(e)
	c := newComparison(e)
	c.Primaries = u.primaries
	for _, rc := range e.Cases {
		if rc.Role == result.Bound {
			continue
		}
		for _, of := range contests(e) {
			if rc.Role == result.Primary || len(t.valid(rc.Name, of.baseline)) > 0 && len(t.valid(rc.Name, of.target)) > 0 {
				c.Comparisons = append(c.Comparisons, u.compareCase(rc, of)...)
			}
		}
	}
	c.Groups = t.groups(c.Comparisons, t.judgeUnpaired)
	c.Boxes = t.boxes()
	c.addMedians(t)
	c.Targets = t.targetRuns()
	c.Findings = append(c.Findings, t.findings...)
	c.Warnings = append(c.Warnings, fmt.Sprintf("These are runs of another tool (%s), without blocks: they are compared unpaired, and what changed between them is part of every difference.", e.Imported))
	c.Warnings = append(c.Warnings, t.warnings...)
	c.Warnings = append(c.Warnings, selections(e.Cases, contests(e), t.losses)...)
	c.Warnings = append(c.Warnings, u.unmatchedMetrics()...)
	c.Warnings = append(c.Warnings, t.common.sentences()...)
	if t.closed {
		c.Warnings = append(c.Warnings, closedWords)
	}
	for _, target := range t.others() {
		a, b := t.placeFacts(target)
		c.addDifferences(target, slices.Concat(r.Facts[e.Baseline], a), slices.Concat(r.Facts[target], b))
	}
	c.Gates = judgeAll(p.gates, e.Cases, u.targets(), e.Design.Alpha)
	c.finish(t.scope())
	c.addPrices(e, factsOf(r.Facts))
	return c
}

// targets are the targets of the one experiment, for gates.
func (u unpaired) targets() []subject {
	var all []subject
	for _, x := range u.a.e.Targets {
		s := subject{name: x.Name, shown: x.Name, median: u.a.readMedian}
		if x.Name != u.a.e.Baseline {
			s.change = u.readChange
		}
		all = append(all, s)
	}
	return all
}

// judgeUnpaired finds the interval of a row from all runs of its targets, if there are enough.
func (t *trial) judgeUnpaired(r *Row, v result.Value, alpha float64) {
	s, ok := r.samples(v, t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target))
	if !ok || min(len(s.baseline), len(s.target)) < MinUnpaired || notPositive(s.baseline)+notPositive(s.target) > 0 {
		return
	}
	r.estimate(stats.Unpaired(logarithms(s.baseline), logarithms(s.target), alpha), alpha)
	r.Verdict, r.Direction = r.decide()
}
