package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Limits of a headline's length.
const (
	mostQuantities     = 3 // quantities listed for a target
	maxDetailedTargets = 2 // number of targets up to which their changes are given
)

// A record holds the outcome of the comparisons of a target with a baseline.
type record struct {
	counts  outcomes
	targets []string     // several if their outcomes are the same
	changes []rangeWords // ranges of the changes in cases that differ, by quantity
}

// outcomes counts verdicts. It is comparable, so that targets with equal outcomes share a clause.
type outcomes struct {
	baseline                                  string
	worse, better, equivalent, undecided, all int
	speed                                     bool // every quantity is a rate or a time
}

// A rangeWords holds the least and the greatest value of a quantity.
type rangeWords struct {
	quantity string
	unit     unit.Unit
	lo, hi   float64
}

func (r *rangeWords) add(v float64) { r.lo, r.hi = math.Min(r.lo, v), math.Max(r.hi, v) }

// headline describes the outcome in plain words: which targets are slower or faster than the baseline, in how many of
// the cases with verdicts, and by how much. It counts verdicts and claims nothing beyond them.
func headline(c Comparison, cases []result.Case) string {
	if len(c.Medians) > 0 && len(c.Targets) == 1 {
		return measuredHeadline(c, cases)
	}
	role, opening := result.Primary, ""
	if c.Primaries == 0 {
		role, opening = result.Exploratory, "Exploratory: "
	}
	list := records(c, cases, role)
	if len(list) == 0 {
		return "Nothing is compared yet"
	}
	var all []string
	for _, t := range list {
		all = append(all, t.counts.baseline, t.targets[0])
	}
	short := prose.Unprefixed(all)
	detailed := len(list) <= maxDetailedTargets
	if !detailed {
		list = mergeEqualOutcomes(list)
	}
	var clauses []string
	for _, t := range list {
		words := t.clause(short, c.Delta)
		if changes := changeWords(t.changes); detailed && changes != "" {
			words += ": " + changes
		}
		clauses = append(clauses, words)
	}
	return opening + strings.Join(clauses, "; ")
}

// records returns the outcome of every target that is compared with the baseline. Placebos are left out unless there is
// nothing else.
func records(c Comparison, cases []result.Case, role result.Role) []record {
	var list []record
	planned, against := result.CasesByName(cases), c.Against()
	for _, r := range c.Comparisons {
		of, known := planned[r.Case]
		if r.Role != role || known && r.Metric != of.Metric || r.Baseline != against[r.Target] {
			continue
		}
		i := slices.IndexFunc(list, func(t record) bool { return t.targets[0] == r.Target })
		if i < 0 {
			i = len(list)
			list = append(list, record{targets: []string{r.Target}, counts: outcomes{baseline: r.Baseline, speed: true}})
		}
		list[i].add(r, cmp.Or(of.Words.Quantity, r.Metric))
	}
	placebo := func(t record) bool { return slices.Contains(c.Placebos, t.targets[0]) }
	if others := slices.DeleteFunc(slices.Clone(list), placebo); len(others) > 0 {
		return others
	}
	return list
}

func (t *record) add(r Row, quantity string) {
	n := &t.counts
	n.all++
	n.speed = n.speed && slices.Contains([]unit.Unit{unit.BitPerSecond, unit.Second, unit.PerSecond}, r.Unit)
	switch {
	case r.Verdict == Equivalent:
		n.equivalent++
	case r.Verdict != Different:
		n.undecided++
	default:
		if r.Direction == BetterThan {
			n.better++
		} else {
			n.worse++
		}
		t.changes = extendRange(t.changes, quantity, r.Unit, float64(r.Change))
	}
}

// extendRange extends the range of a quantity by a value.
func extendRange(list []rangeWords, quantity string, u unit.Unit, v float64) []rangeWords {
	i := slices.IndexFunc(list, func(r rangeWords) bool { return r.quantity == quantity && r.unit == u })
	if i < 0 {
		return append(list, rangeWords{quantity, u, v, v})
	}
	list[i].add(v)
	return list
}

// mergeEqualOutcomes combines targets with equal outcomes.
func mergeEqualOutcomes(list []record) []record {
	var kept []record
	for _, t := range list {
		if i := slices.IndexFunc(kept, func(k record) bool { return k.counts == t.counts }); i >= 0 {
			kept[i].targets = append(kept[i].targets, t.targets...)
		} else {
			kept = append(kept, t)
		}
	}
	return kept
}

// clause returns the clause of a record: "vxlan is slower than native in 2 of 3 cases and undecided in 1".
func (t record) clause(short map[string]string, delta float64) string {
	worse, better := "worse", "better"
	if t.counts.speed {
		worse, better = "slower", "faster"
	}
	n := t.counts
	baseline := short[n.baseline]
	parts := []struct {
		count          int
		first, further string
	}{
		{n.worse, worse + " than " + baseline, worse},
		{n.better, better + " than " + baseline, better},
		{n.equivalent, "equivalent to " + baseline + " within " + marginText(delta),
			"equivalent within " + marginText(delta)},
		{n.undecided, "undecided against " + baseline, "undecided"},
	}
	var words []string
	for _, p := range parts {
		switch {
		case p.count == 0:
		case len(words) > 0:
			words = append(words, fmt.Sprintf("%s in %d", p.further, p.count))
		default:
			words = append(words, p.first+inCases(p.count, n.all))
		}
	}
	var names []string
	for _, target := range t.targets {
		names = append(names, short[target])
	}
	verb := " is "
	if len(names) > 1 {
		verb = " are "
	}
	return prose.Enumerate(names) + verb + prose.Enumerate(words)
}

func inCases(count, all int) string {
	switch {
	case all == 1:
		return ""
	case count == all && all == 2:
		return " in both cases"
	case count == all:
		return fmt.Sprintf(" in all %d cases", all)
	}
	return fmt.Sprintf(" in %d of %d cases", count, all)
}

func changeWords(list []rangeWords) string {
	var words []string
	for _, r := range list[:min(len(list), mostQuantities)] {
		lo, hi := unit.FormatFactor(r.lo), unit.FormatFactor(r.hi)
		if math.Abs(r.lo) > math.Abs(r.hi) {
			lo, hi = hi, lo
		}
		words = append(words, unit.Join(lo, hi)+" "+r.quantity)
	}
	if len(list) > mostQuantities {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// measuredHeadline returns the headline of an experiment with one target: what it reaches in its cases.
func measuredHeadline(c Comparison, cases []result.Case) string {
	role := result.Exploratory
	if slices.ContainsFunc(c.Medians, func(m Median) bool { return m.Role == result.Primary }) {
		role = result.Primary
	}
	var list []rangeWords
	planned := result.CasesByName(cases)
	for _, m := range c.Medians {
		of := planned[m.Case]
		if m.Role == role && m.Metric == of.Metric && m.Median.Known() {
			list = extendRange(list, cmp.Or(of.Words.Quantity, m.Metric), of.ShownUnit(m.Unit), float64(m.Median))
		}
	}
	var words []string
	for _, r := range list[:min(len(list), mostQuantities)] {
		words = append(words, r.quantity+" "+unit.Join(unit.Format(r.lo, r.unit), unit.Format(r.hi, r.unit)))
	}
	if len(words) == 0 {
		return c.Targets[0].Name + " was measured alone"
	}
	return c.Targets[0].Name + ", measured alone: " + strings.Join(words, ", ")
}
