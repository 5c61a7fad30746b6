package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the rules about claimed changes.
const (
	rounding   = 0.006 // relative rounding error of a percentage
	baseMargin = 0.03  // relative error of a percentage that may come from its base
)

// claimRules compare a claimed difference with the numbers that it is derived from.
var claimRules = []Rule{
	{Name: "percent-base", Severity: Warning, checkAll: percentBase,
		About: "A percentage between two targets is a fraction of the first one, and follows from the given numbers.",
		Why: "As a fraction of the second, increases look smaller and decreases larger: 25 % of one are 33 % of the " +
			"other."},
	{Name: "not-carried", Severity: Warning, checkAll: insignificantClaims,
		About: "A claimed difference excludes zero in the 95 % interval that the given means, spreads and counts make.",
		Why:   "The next runs could give the opposite result: the numbers do not show which target is faster.",
		More:  "Welch, Biometrika 34 (1947)"},
}

// A claim is a change that a table claims, with the numbers that it is derived from.
type claim struct {
	run                *result.Run
	metric             string // without ChangeSuffix
	claimed            float64
	from, to           float64 // means
	unit               unit.Unit
	fromSD, toSD       float64 // standard deviations over runs; 0: not given
	fromCount, toCount int
	digits             float64 // largest difference that the rounding of all three numbers explains; 0: unknown
	target, against    string
}

// claims lists the claimed changes whose numbers are known.
func (recs *records) claims() []claim {
	var all []claim
	for _, r := range recs.runs {
		against := r.Fact(FactAgainst)
		if against == "" {
			continue
		}
		for _, v := range r.Values {
			metric, ok := strings.CutSuffix(v.Metric, ChangeSuffix)
			if !ok {
				continue
			}
			c := claim{run: r, metric: metric, claimed: v.Number, target: r.Target, against: against}
			if recs.fill(&c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// fill finds the numbers of a claim, and reports whether both sides have them.
func (recs *records) fill(c *claim) bool {
	var hasFrom, hasTo bool
	var fromDigit, toDigit float64
	for _, r := range recs.atPlace(c, c.target) {
		if v, ok := r.Value(c.metric); ok && !hasFrom {
			hasFrom, c.from, c.unit, c.fromCount = true, v.Number, v.Unit, count(r.Facts, FactRuns)
			c.fromSD, _ = number(r, c.metric+SpreadSuffix)
			fromDigit = digitOf(r, c.metric)
		}
	}
	for _, r := range recs.atPlace(c, c.against) {
		if v, ok := r.Value(c.metric); ok && !hasTo && v.Unit == c.unit {
			hasTo, c.to, c.toCount = true, v.Number, count(r.Facts, FactRuns)
			c.toSD, _ = number(r, c.metric+SpreadSuffix)
			toDigit = digitOf(r, c.metric)
		}
	}
	if !hasFrom || !hasTo || c.from <= 0 || c.to <= 0 {
		return false
	}
	if digit := digitOf(c.run, c.metric+ChangeSuffix); digit > 0 && fromDigit > 0 && toDigit > 0 {
		// The percentage may be cut off instead of rounded.
		c.digits = digit + max(c.to/c.from, c.from/c.to)*(fromDigit/c.from+toDigit/c.to)/2
	}
	return true
}

// atPlace returns the runs of a target that a claim can be about: those of its section, and in its line if there
// are any.
func (recs *records) atPlace(c *claim, target string) []*result.Run {
	all := inSection(recs.byCase[c.run.Case][target], c.run.Fact(FactSection))
	var same []*result.Run
	for _, r := range all {
		if _, ok := r.Value(c.metric); ok && PlaceOf(r, c.metric) == PlaceOf(c.run, c.metric) {
			same = append(same, r)
		}
	}
	if len(same) > 0 {
		return same
	}
	return all
}

// digitOf returns one unit in the last digit of a metric as the table has it; 0 if that is unknown.
func digitOf(r *result.Run, metric string) float64 {
	digit, err := strconv.ParseFloat(r.Fact(FactDigit+"."+metric), 64)
	if err != nil || !(digit > 0) {
		return 0
	}
	return digit
}

// change returns the change relative to the first target.
func (c claim) change() float64 { return c.to/c.from - 1 }

// base returns which target the claimed percentage is relative to: "first", "second", or "" for neither.
func (c claim) base() string {
	slack := rounding*math.Abs(c.claimed) + 5e-5
	if c.digits > 0 {
		slack = c.digits * (1 + 1e-9)
	}
	near := func(v float64) bool { return math.Abs(math.Abs(v)-math.Abs(c.claimed)) <= slack }
	switch {
	case near(c.change()):
		return "first"
	case near(1 - c.from/c.to):
		return "second"
	}
	return ""
}

// percentBase makes one finding of all percentages between two targets that are relative to the second, because one
// formula explains them.
func percentBase(recs *records) (found []Finding, checked int) {
	type group struct {
		at, n int
		worst float64
		claim claim
	}
	groups := map[[2]string]*group{}
	for _, c := range recs.claims() {
		checked++
		of, off := c.base(), math.Abs(math.Abs(c.change())-math.Abs(c.claimed))
		key := [2]string{c.target, c.against}
		switch g := groups[key]; {
		case of == "first":
		case of == "":
			found = append(found, c.finding(c.baseWords(of)))
		case g == nil:
			groups[key] = &group{at: len(found), n: 1, worst: off, claim: c}
			found = append(found, Finding{})
		default:
			g.n++
			if off > g.worst {
				g.worst, g.claim = off, c
			}
		}
	}
	for _, g := range groups {
		words := g.claim.baseWords("second")
		if g.n > 1 {
			words += fmt.Sprintf(" The other %d between the two have that base too.", g.n-1)
		}
		found[g.at] = g.claim.finding(words)
		if g.worst < baseMargin*math.Abs(g.claim.claimed) {
			found[g.at].Severity = Note
		}
	}
	return found, checked
}

// finding returns a finding about the claim.
func (c claim) finding(findings string) Finding {
	return Finding{Case: c.run.Case, Target: c.target, Metric: c.metric,
		Place: result.FactOf(c.run.Facts, FactPlace), Saw: findings}
}

func (c claim) baseWords(of string) string {
	said, is := percent(c.claimed), percent(c.change())
	numbers := fmt.Sprintf("from %s with %s to %s with %s",
		c.target, unit.Format(c.from, c.unit), c.against, unit.Format(c.to, c.unit))
	if of == "" {
		return fmt.Sprintf("%s is said to be %s %s, which is %s.", c.metric, said, numbers, is)
	}
	return fmt.Sprintf("%s of %s is relative to %s: %s it is %s.", said, c.metric, c.against, numbers, is)
}

// percent formats a fraction as a percentage with its sign and three digits.
func percent(fraction float64) string {
	text := unit.Format(fraction, unit.Ratio)
	if fraction > 0 {
		text = "+" + text
	}
	return text
}

func insignificantClaims(recs *records) (found []Finding, checked int) {
	for _, c := range recs.claims() {
		lo, hi, ok := c.welch()
		if !ok {
			continue
		}
		checked++
		if lo <= 0 && hi >= 0 {
			found = append(found, c.finding(fmt.Sprintf(
				"%s of %s between %s and %s: with the spreads of %d and %d runs it lies between %s and %s.",
				percent(c.change()), c.metric, c.target, c.against, c.fromCount, c.toCount, percent(lo), percent(hi))))
		}
	}
	return found, checked
}

// welch returns the 95 % interval of the difference of two means by Welch's approximation, as fractions of the first
// mean. It needs the spread and the count of both sides.
func (c claim) welch() (lo, hi float64, ok bool) {
	n, m := float64(c.fromCount), float64(c.toCount)
	if c.fromCount < fewBlocks || c.toCount < fewBlocks || c.fromSD <= 0 || c.toSD <= 0 {
		return 0, 0, false
	}
	a, b := c.fromSD*c.fromSD/n, c.toSD*c.toSD/m
	freedom := (a + b) * (a + b) / (a*a/(n-1) + b*b/(m-1))
	half := stats.StudentQuantile(1-(1-confidence)/2, freedom) * math.Sqrt(a+b)
	diff := c.to - c.from
	return (diff - half) / c.from, (diff + half) / c.from, true
}
