package compare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// ErrGate is wrapped by every error about the text of a gate.
var ErrGate = errors.New("not a gate")

// A Gate is a condition on the outcome of an experiment: on the change of a metric compared with the baseline, or on
// its median.
type Gate struct {
	Text   string    // as given, with single spaces
	Case   string    // pattern of cases, see [result.Match]
	Metric string    // "" is each case's own
	Most   bool      // the limit is a maximum (<=), otherwise a minimum (>=)
	Change bool      // the limit is a change compared with the baseline, as a fraction
	Limit  float64   // a fraction, or a value in Unit
	Unit   unit.Unit // of a limit on the value; [unit.Count] for a bare number in the metric's base unit
	Target string    // pattern of targets; "" is all
}

// gateForm is the example at the end of errors.
const gateForm = `a gate is like "pod-pod/*/tcp-rr p99 <= +5%" or "*/tcp-stream >= 9 Gbit/s on lab:vxlan*"`

// ParseGate reads CASE [METRIC] <=|>= LIMIT [on TARGET]. CASE and TARGET are patterns in which "*" stands for any text.
// A limit with a sign and in percent is a change compared with the baseline; any other limit is a value, with its unit
// or in the metric's base unit. Every error wraps [ErrGate], names the wrong part and ends with an example.
func ParseGate(text string) (Gate, error) {
	g, err := parseGate(text)
	if err != nil {
		return Gate{}, fmt.Errorf("%w: %q: %w; %s", ErrGate, text, err, gateForm)
	}
	return g, nil
}

func parseGate(text string) (Gate, error) {
	g := Gate{Text: strings.Join(strings.Fields(text), " ")}
	left, right, most := strings.Cut(text, "<=")
	if !most {
		var least bool
		if left, right, least = strings.Cut(text, ">="); !least {
			return Gate{}, errors.New("it has neither <= nor >=")
		}
	}
	g.Most = most
	switch about := strings.Fields(left); len(about) {
	case 0:
		return Gate{}, errors.New("there is no case before the comparison")
	case 1:
		g.Case = about[0]
	case 2:
		g.Case, g.Metric = about[0], about[1]
	default:
		return Gate{}, fmt.Errorf("%q is more than a case and a metric", strings.Join(about, " "))
	}
	limit := strings.Fields(right)
	for i, word := range limit {
		if word != "on" {
			continue
		}
		if g.Target = strings.Join(limit[i+1:], " "); g.Target == "" {
			return Gate{}, errors.New(`no target follows "on"`)
		}
		limit = limit[:i]
		break
	}
	return g, g.setLimit(strings.Join(limit, " "))
}

// setLimit reads the limit. It rejects a percentage without a sign, which could be a change or a share.
func (g *Gate) setLimit(text string) error {
	if text == "" {
		return errors.New("there is no limit after the comparison")
	}
	v, u, err := unit.Parse(text)
	signed := text[0] == '+' || text[0] == '-'
	percent := strings.HasSuffix(text, "%") || strings.HasSuffix(text, "percent")
	switch {
	case err != nil:
		return fmt.Errorf("the limit: %w", err)
	case percent && !signed:
		return fmt.Errorf("the limit %q may be a change or a share; a change has a sign (+%s), a share is a number from 0 "+
			"to 1", text, text)
	case signed && !percent:
		return fmt.Errorf("the limit %q has a sign and is no percentage; a change is in percent, a value has no sign", text)
	case percent && v <= -1:
		return fmt.Errorf("the limit %q is a change by everything or more; nothing can fall so far", text)
	}
	g.Change, g.Limit, g.Unit = percent, v+0, u // -0 becomes 0
	return nil
}

// parseGates returns the distinct gates. An error wraps ErrExperiment too.
func parseGates(texts ...string) ([]Gate, error) {
	var gates []Gate
	for _, text := range texts {
		g, err := ParseGate(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrExperiment, err)
		}
		if !slices.Contains(gates, g) {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// allows returns Passed or Failed if the interval lies on one side of the limit, otherwise Open.
func (g Gate) allows(ci Interval) Outcome {
	lowest, highest := ci.Lo, ci.Hi
	if !g.Most {
		lowest, highest = -ci.Hi, -ci.Lo
	}
	limit := g.Limit
	if !g.Most {
		limit = -limit
	}
	switch {
	case highest <= limit:
		return Passed
	case lowest > limit:
		return Failed
	}
	return Open
}

// CheckUnit returns an error if the limit is in another unit than u. what names the metric in that error.
func (g Gate) CheckUnit(what string, u unit.Unit) error {
	if g.Change || g.Unit == unit.Count || g.Unit == u {
		return nil
	}
	return fmt.Errorf("has a limit in %s, and %s is in %s", g.Unit, what, u)
}

// allowedText describes what the gate allows, for a metric in the unit u.
func (g Gate) allowedText(u unit.Unit) string {
	side := "at least "
	if g.Most {
		side = "at most "
	}
	if g.Change {
		sign := ""
		if g.Limit >= 0 {
			sign = "+"
		}
		return side + sign + strings.TrimPrefix(marginText(g.Limit), "±")
	}
	if g.Unit != unit.Count {
		u = g.Unit
	}
	if u == "" {
		return side + strconv.FormatFloat(g.Limit, 'g', -1, 64)
	}
	return side + unit.Format(g.Limit, u)
}

// A gateCheck is a gate applied to a metric of a case on one target, compared with its baseline. A target that is not
// compared is its own baseline.
type gateCheck struct {
	Gate
	rc     result.Case
	metric string
	targetPair
}

// gateChecks returns the gates applied to the planned cases except bounds. A gate that matches nothing has no checks.
func (t *runTable) gateChecks(gates []Gate) []gateCheck {
	var all []gateCheck
	cases := plannedCases(t.e.Cases)
	for _, g := range gates {
		for _, rc := range cases {
			if rc.Role == result.Bound || !result.Match(g.Case, rc.Name) {
				continue
			}
			for _, x := range t.e.Targets {
				of := targetPair{cmp.Or(t.baselineOf(x.Name), x.Name), x.Name}
				isAbout := (g.Target == "" || x.Matches(g.Target)) && !(g.Change && of.baseline == of.target)
				if isAbout && t.hasCase(rc, of) {
					all = append(all, gateCheck{g, rc, cmp.Or(g.Metric, rc.Metric), of})
				}
			}
		}
	}
	return all
}

// A reading is the estimate that a gate is judged by, with its interval.
type reading struct {
	estimate float64  // the change as a fraction, or the median
	ci       Interval // of the estimate
	level    float64  // confidence of ci
	unit     unit.Unit
	size     string // amount of data: "11 blocks"
	// why is the reason for a missing interval, as the end of a sentence; "" if there is one.
	why string
	// permanent reports whether more blocks cannot provide an interval.
	permanent bool
	// drifts reports whether the runs rise or fall from one to the next, which ci does not cover.
	drifts bool
}

// decideGate decides a check; permanent reports whether it is open and more blocks cannot decide it.
func (t *runTable) decideGate(d gateCheck, alpha float64) (g Gated, permanent bool) {
	read := t.readMedian
	if d.Change {
		read = t.readChange
	}
	r := read(d, alpha)
	g = Gated{Gate: d.Text, Case: d.rc.Name, Target: d.target, Metric: d.metric, Level: r.level, CI: r.ci,
		Outcome: Open}
	about := fmt.Sprintf("%s: %s %s", d.target, d.rc.Name, d.metric)
	if r.why == "" && d.CheckUnit(d.metric, r.unit) != nil {
		r.why, r.permanent = fmt.Sprintf("it is in %s and the limit in %s", r.unit, d.Unit), true
		g.CI = unbounded()
	}
	if r.why != "" {
		g.Sentence = fmt.Sprintf("%s: open, %s; allowed is %s.", about, r.why, d.allowedText(r.unit))
		return g, r.permanent
	}
	if !r.drifts {
		g.Outcome = d.allows(r.ci)
	}
	g.Sentence = fmt.Sprintf("%s %s; allowed is %s: %s%s.",
		about, r.describe(d.Change), d.allowedText(r.unit), g.Outcome, g.openReason(r.drifts))
	return g, false
}

// describe describes the estimate and its interval.
func (r reading) describe(change bool) string {
	if change {
		return fmt.Sprintf("changed by %s (%s, %s)", signed(r.estimate), interval(r.ci, r.level, signed), r.size)
	}
	value := func(v float64) string { return unit.Format(v, r.unit) }
	return fmt.Sprintf("has a median of %s (%s, %s)", value(r.estimate), interval(r.ci, r.level, value), r.size)
}

// openReason returns why a gate with an interval is open.
func (g Gated) openReason(drifts bool) string {
	switch {
	case g.Outcome != Open:
		return ""
	case drifts:
		return ", its runs rise or fall from one to the next, more than by chance, and the interval does not cover that drift"
	case !g.CI.Bounded():
		return ", there are too few runs for an interval"
	}
	return ", the interval has both sides of it"
}

// judgeGates decides all gates. Their error probabilities add up to alpha.
func (t *runTable) judgeGates(gates []Gate) []Gated {
	judged := []Gated{}
	all := t.gateChecks(gates)
	for _, g := range gates {
		matched := false
		for _, d := range all {
			if d.Gate == g {
				one, _ := t.decideGate(d, t.e.Design.Alpha/float64(len(all)))
				judged, matched = append(judged, one), true
			}
		}
		if !matched {
			judged = append(judged, g.unmatched())
		}
	}
	return judged
}

// unmatched returns the outcome of a gate that matches nothing in the plan.
func (g Gate) unmatched() Gated {
	what := "no comparison of a case with the baseline"
	if !g.Change {
		what = "no case on any target"
	}
	return Gated{Gate: g.Text, Metric: g.Metric, CI: unbounded(), Outcome: Open,
		Sentence: fmt.Sprintf("%s: open, it matches %s.", strconv.Quote(g.Text), what)}
}

// Outcome returns the outcome of all gates together: failed if one failed, otherwise open if one is open, otherwise
// passed, also without gates.
func (c Comparison) Outcome() Outcome {
	all := Passed
	for _, g := range c.Gates {
		switch {
		case g.Outcome == Failed:
			return Failed
		case g.Outcome != Passed:
			all = Open
		}
	}
	return all
}

// firstValue returns a value of the metric from the first block that has it.
func firstValue(metric string, sides ...map[int]*result.Run) (result.Value, bool) {
	for _, side := range sides {
		for _, n := range blocks(side, side) {
			if v, ok := side[n].Value(metric); ok {
				return v, true
			}
		}
	}
	return result.Value{}, false
}

// noReading returns a reading without an interval.
func noReading(level float64, u unit.Unit, permanent bool, format string, a ...any) reading {
	return reading{ci: unbounded(), level: level, unit: u, permanent: permanent, why: fmt.Sprintf(format, a...)}
}

// readChange reads the change compared with the baseline; that of pairs has a repeated interval.
func (t *runTable) readChange(d gateCheck, alpha float64) reading {
	a, b := t.valid(d.rc.Name, d.baseline), t.valid(d.rc.Name, d.target)
	if t.paired() && len(blocks(a, b)) == 0 {
		return noReading(1-alpha, "", false, "no block has a valid run on both sides%s",
			t.notMeasuredReason(d.rc.Name, d.target))
	}
	v, ok := firstValue(d.metric, b, a)
	if !ok {
		return noReading(1-alpha, "", true, "no run has it")
	}
	r := newRow(t.e.Design, d.rc, v, d.targetPair)
	s, ok := t.sides(&r)
	few := min(len(s.baseline), len(s.target))
	e, ratio := s.ratio(alpha)
	switch {
	case !ok:
		return noReading(1-alpha, r.Unit, true, "its runs disagree on its unit")
	case !t.paired() && few < minUnpaired:
		return noReading(1-alpha, r.Unit, false, "there are %d and %d runs, below %d on each side nothing is decided",
			len(s.baseline), len(s.target), minUnpaired)
	case s.awaited > 0:
		return noReading(1-alpha, r.Unit, false, "the experiment ended %s", beforeLastBlock(few, s.awaited))
	case !ratio:
		return noReading(1-alpha, r.Unit, false,
			"values of 0 have no ratio, only a limit on the value itself can be decided")
	}
	r.estimate(e, alpha, t.e.Design.Delta)
	return reading{estimate: float64(r.Change), ci: r.CI, level: 1 - alpha, unit: r.Unit,
		size: sampleSizeText(few, t.paired()), drifts: !t.paired() && s.drift()}
}

// beforeLastBlock describes the end of an experiment with a fixed number of blocks before the last of them.
func beforeLastBlock(done, planned int) string {
	return fmt.Sprintf("after %d of %s, before the last of which nothing is decided", done,
		unit.Plural(planned, "planned block"))
}

// notMeasuredReason returns why the plan gave up a case on a target, as the end of a sentence.
func (t *runTable) notMeasuredReason(caseName, target string) string {
	for _, n := range t.e.NotMeasured {
		if n.Covers(target, caseName) {
			return " (" + strings.TrimRight(n.Reason, ". ") + ")"
		}
	}
	return ""
}

// driftAlpha is the level at which runs that rise or fall from one to the next count as drift, which the intervals of
// medians and of unpaired comparisons do not cover. It is fixed, because a level that shrinks with the number of gates
// would detect less drift the more gates there are; and 5 % would refuse one steady target in twenty. The test reaches
// 1 % from six blocks on (2/6! = 0.3 %; with five, 2/5! = 1.7 %), which is also when an interval at 95 % has ends.
const driftAlpha = 0.01

// readMedian reads the median over the valid runs on a target. Each look has its share of alpha.
func (t *runTable) readMedian(d gateCheck, alpha float64) reading {
	level := 1 - alpha/float64(max(1, len(t.tableOf(d.target).e.Design.Looks)))
	runs := t.valid(d.rc.Name, d.target)
	if len(runs) == 0 {
		return noReading(level, "", false, "there is no valid run%s", t.notMeasuredReason(d.rc.Name, d.target))
	}
	v, ok := firstValue(d.metric, runs)
	if !ok {
		return noReading(level, "", true, "no run has it")
	}
	m, ok := newMedian(v, runs, level)
	if !ok {
		return noReading(level, v.Unit, true, "its runs disagree on its unit or have no usable value")
	}
	if planned := t.e.Design; t.look != nil && len(planned.Looks) == 0 && !t.hasAllBlocks(d.rc.Name, d.target) {
		return noReading(level, v.Unit, false, "the experiment ended %s", beforeLastBlock(len(runs), planned.Blocks))
	}
	values, _ := ownValues(d.metric, runs)
	return reading{estimate: float64(m.Median), ci: m.CI, level: level, unit: v.Unit, size: unit.Plural(m.Runs, "run"),
		drifts: stats.TrendP(values) <= driftAlpha}
}
