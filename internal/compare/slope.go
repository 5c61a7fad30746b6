package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Slope describes how a case's own metric changes with a numeric option that is the only difference between targets.
// A straight line is fitted to the runs of each block by least squares. Estimate and interval are computed from the
// slopes of these lines, as those of a [Row] are from the changes of the blocks. The intervals of all primary cases
// hold together. Two levels show no shape and therefore no rate: their estimate is the total change.
type Slope struct {
	Case   string        `json:"case"`
	Metric string        `json:"metric"`
	Unit   unit.Unit     `json:"unit"`
	Better metric.Better `json:"better"`
	Role   result.Role   `json:"role"`
	Option string        `json:"option"` // the numeric option of the targets
	// Per is the increase of the option that Estimate is for: 1, 10, 100 or 1000; with two levels, all of it.
	Per    float64      `json:"per"`
	Points []SlopePoint `json:"points"` // in ascending order of numbers
	Blocks int          `json:"blocks"` // with a valid run on every target

	Estimate Number   `json:"estimate"` // in the metric's unit
	CI       Interval `json:"ci"`
	Level    float64  `json:"level"`
	// Verdict is different if the interval excludes 0 or the points are bent, and equivalent if they are not bent and
	// both the change from the first point to the last and the deviations of the inner points from the straight line
	// lie within ± delta of the first point's median.
	Verdict   Verdict   `json:"verdict"`
	Direction Direction `json:"direction"` // none if a bent metric both rises and falls
	Bent      bool      `json:"bent"`      // an inner point deviates significantly from a straight line
	Sentence  string    `json:"sentence"`
}

// A SlopePoint is a target of a [Slope].
type SlopePoint struct {
	Target    string    `json:"target"`
	Number    float64   `json:"number"`
	Median    Number    `json:"median"`
	Quartiles [2]Number `json:"quartiles"`
}

// slopes returns the slopes of all cases, in the order of the plan.
func (t *runTable) slopes() []Slope {
	var specs []result.Spec
	for _, x := range t.e.Targets {
		specs = append(specs, x.Spec)
	}
	all := ladders(specs)
	primaries := max(countPrimaryCases(t.e.Cases)*len(all), 1)
	var list []Slope
	for _, rc := range t.e.Cases {
		for _, l := range all {
			if s, ok := t.slope(rc, l, primaries); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// slope returns the slope of a case. It is not ok for references, or if no block was measured on all targets.
func (t *runTable) slope(rc result.Case, l ladder, primaries int) (s Slope, ok bool) {
	m := metric.Named(rc.Metric)
	s = Slope{Case: rc.Name, Metric: rc.Metric, Unit: m.Unit, Better: m.Better, Role: rc.Role, Option: l.Option,
		Per: perOf(l), Verdict: Undecided, Direction: None}
	alpha := t.e.Design.Alpha
	if rc.Role == result.Primary {
		alpha /= float64(primaries)
	}
	values := t.commonValues(rc, l.Targets)
	if rc.Role == result.Bound || len(values) == 0 {
		return s, false
	}
	lines := make([]float64, len(values))
	for i, of := range values {
		lines[i] = s.Per * gradient(l.Numbers, of)
	}
	seen := t.upToLook(sides{blocks: make([]int, len(lines)), baseline: lines, target: lines}, rc.Name, l.Targets...)
	values = values[:len(seen.target)]
	for i, name := range l.Targets {
		of := make([]float64, len(values))
		for k := range values {
			of[k] = values[k][i]
		}
		sum := stats.Summarise(of)
		s.Points = append(s.Points,
			SlopePoint{name, l.Numbers[i], Number(sum.Median), [2]Number{Number(sum.Q1), Number(sum.Q3)}})
	}
	inner := bends(l.Numbers, values)
	var bent []stats.Estimate
	for _, of := range inner {
		bent = append(bent, stats.Paired(of, alpha/float64(len(inner)), seen.look))
	}
	s.decide(stats.Paired(seen.target, alpha, seen.look), bent, t.e.Design.Delta)
	return s, true
}

// commonValues returns the values of a case's own metric in the blocks with a value on every target, by block and
// target.
func (t *runTable) commonValues(rc result.Case, targets []string) (values [][]float64) {
	runs := make([]map[int]*result.Run, len(targets))
	for i, name := range targets {
		runs[i] = t.valid(rc.Name, name)
	}
	for _, n := range blocks(runs[0], runs[len(runs)-1]) {
		var of []float64
		for _, r := range runs {
			if r[n] == nil {
				break
			}
			if v, has := r[n].Value(rc.Metric); has && v.Usable() {
				of = append(of, v.Number)
			}
		}
		if len(of) == len(targets) {
			values = append(values, of)
		}
	}
	return values
}

// perOf returns the increase that a slope is given for: a power of ten, at most 1000, or the whole range of two levels.
func perOf(l ladder) float64 {
	first, last := l.Numbers[0], l.Numbers[len(l.Numbers)-1]
	if len(slices.Compact(slices.Clone(l.Numbers))) == 2 {
		return last - first
	}
	per := 1.0
	for per < 1000 && 10*per <= last {
		per *= 10
	}
	return per
}

// gradient returns the slope of the least-squares line.
func gradient(x, y []float64) float64 {
	var meanX, meanY, xy, xx float64
	for i := range x {
		meanX, meanY = meanX+x[i]/float64(len(x)), meanY+y[i]/float64(len(y))
	}
	for i := range x {
		xy, xx = xy+(x[i]-meanX)*(y[i]-meanY), xx+(x[i]-meanX)*(x[i]-meanX)
	}
	return xy / xx
}

// bends returns, for each level between the first and the last, how far the values y of each block deviate from the
// straight line through its values at both ends.
func bends(x []float64, y [][]float64) [][]float64 {
	var list [][]float64
	last := len(x) - 1
	for i := 1; i < last; i++ {
		if x[i] == x[0] || x[i] == x[last] {
			continue // the same level on another target
		}
		of := make([]float64, len(y))
		for b, v := range y {
			of[b] = v[i] - v[0] - (v[last]-v[0])*(x[i]-x[0])/(x[last]-x[0])
		}
		list = append(list, of)
	}
	return list
}

// decide sets the estimate, the verdict and the sentence from the slope and the bends at the inner levels.
func (s *Slope) decide(e stats.Estimate, bends []stats.Estimate, delta float64) {
	s.Blocks, s.Estimate, s.CI, s.Level = e.N, Number(e.Shift), Interval{e.Lo, e.Hi}, e.Level
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	margin := delta * math.Abs(float64(first.Median))
	flat := within(e, margin*s.Per/(last.Number-first.Number))
	for _, b := range bends {
		s.Bent, flat = s.Bent || b.Excludes(0), flat && within(b, margin)
	}
	switch {
	case s.Bent && (!s.monotone() || !e.Excludes(0)):
		s.Verdict = Different
	case e.Excludes(0):
		s.Verdict, s.Direction = Different, BetterThan
		if (e.Shift > 0) == (s.Better == metric.Lower) {
			s.Direction = WorseThan
		}
		if s.Better == metric.Neutral {
			s.Direction = None
		}
	}
	if flat && !s.Bent {
		s.Verdict = Equivalent
	}
	s.Sentence = s.sentence(delta)
}

// within reports whether an interval lies within ± margin.
func within(e stats.Estimate, margin float64) bool { return e.Lo > -margin && e.Hi < margin }

// monotone reports whether the medians never rise and fall both.
func (s *Slope) monotone() bool {
	rising := func(a, b SlopePoint) int { return cmp.Compare(a.Median, b.Median) }
	falling := func(a, b SlopePoint) int { return cmp.Compare(b.Median, a.Median) }
	return slices.IsSortedFunc(s.Points, rising) || slices.IsSortedFunc(s.Points, falling)
}

// levels returns the number of distinct levels.
func (s *Slope) levels() int {
	same := func(a, b SlopePoint) bool { return a.Number == b.Number }
	return len(slices.CompactFunc(slices.Clone(s.Points), same))
}

// Straight reports whether a straight line describes the points: there are more than two levels, and none is bent.
func (s *Slope) Straight() bool { return s.levels() > 2 && !s.Bent }

func (s *Slope) sentence(delta float64) string {
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	of := fmt.Sprintf("%s of %s", s.Metric, s.Case)
	if math.IsInf(s.CI.Lo, 0) || math.IsInf(s.CI.Hi, 0) {
		return fmt.Sprintf("How %s changes with the number of %s is undecided: %s are too few.",
			of, s.Option, unit.Plural(s.Blocks, "block"))
	}
	between := fmt.Sprintf("from %.0f to %.0f", first.Number, last.Number)
	text := fmt.Sprintf("%s [%s]", plus(float64(s.Estimate), s.Unit),
		unit.Join(plus(s.CI.Lo, s.Unit), plus(s.CI.Hi, s.Unit)))
	if s.levels() > 2 {
		text += fmt.Sprintf(" per %.0f %s", s.Per, s.Option)
	} else {
		text += " in all; two levels show no rate"
	}
	if s.Bent {
		text += "; the levels between are not on a straight line"
	}
	verb := "grows"
	if s.Estimate < 0 {
		verb = "falls"
	}
	switch {
	case s.Bent && s.Direction == None && s.Better != metric.Neutral, s.Bent && !s.monotone():
		text = fmt.Sprintf("%s changes with the number of %s, %s, but not along a straight line: %s.", of, s.Option,
			between, s.medians())
	case s.Verdict == Equivalent:
		text = fmt.Sprintf("%s is flat within %s %s %s: %s.", of, marginText(delta), between, s.Option, text)
	case s.Verdict == Different:
		text = fmt.Sprintf("%s %s with the number of %s, %s: %s.", of, verb, s.Option, between, text)
	default:
		text = fmt.Sprintf("Whether %s changes with the number of %s is undecided, %s: %s.", of, s.Option, between, text)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// medians returns the medians of the points: "50 µs at 0, 58 µs at 1000, 50 µs at 5000".
func (s *Slope) medians() string {
	var list []string
	for _, p := range s.Points {
		list = append(list, fmt.Sprintf("%s at %.0f", unit.Format(float64(p.Median), s.Unit), p.Number))
	}
	return strings.Join(list, ", ")
}

// plus formats a value with its sign.
func plus(v float64, u unit.Unit) string {
	text := unit.Format(v, u)
	if v > 0 {
		return "+" + text
	}
	return text
}
