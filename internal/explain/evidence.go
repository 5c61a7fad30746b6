package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// alpha is the error probability of each interval of the evidence.
const alpha = 0.05

// A pair holds the runs of one block on the worse target and on the other.
type pair struct{ worse, better *result.Run }

// An evidence holds the data about both sides of a comparison.
type evidence struct {
	row           compare.Row
	worse, better string // targets
	pairs         []pair
	facts         map[string][]result.Fact // by target
	specs         map[string]result.Spec   // by label
	workload      string
	path          result.Path
	local         bool         // only a node's CPUs and memory are used
	cost          string       // cost metric whose layers the runs have; "" if none
	layers        []difference // layers in which the worse target needs more CPU time
}

func newEvidence(
	row compare.Row, of result.Case, runs map[string]map[int]*result.Run, r result.Results,
) evidence {
	e := evidence{row: row, worse: row.Target, better: row.Baseline, facts: r.Facts, specs: map[string]result.Spec{},
		workload: of.Workload, path: of.Path, local: of.Load.Local}
	for _, t := range r.Experiment.Targets {
		e.specs[t.Name] = t.Spec
	}
	if row.Direction == compare.BetterThan {
		e.worse, e.better = e.better, e.worse
	}
	for _, p := range row.Pairs {
		worse, better := runs[e.worse][p.Block], runs[e.better][p.Block]
		if worse != nil && better != nil {
			e.pairs = append(e.pairs, pair{worse, better})
		}
	}
	e.cost = e.sampledCost()
	e.layers = e.costlierLayers()
	return e
}

// newPathEvidence returns the evidence of a single target whose case is worse than its bound in the same blocks.
func newPathEvidence(of result.Case, r result.Results, runs, bound map[int]*result.Run) evidence {
	target := r.Experiment.Targets[0].Name
	row := compare.Row{Case: of.Name, Metric: of.Metric, Unit: metric.Named(of.Metric).Unit, Target: target,
		Baseline: of.Bound}
	e := evidence{row: row, worse: target, better: of.Bound, path: of.Path, facts: r.Facts,
		specs: map[string]result.Spec{target: r.Experiment.Targets[0].Spec}}
	for _, block := range slices.Sorted(maps.Keys(runs)) {
		if b := bound[block]; b != nil {
			e.pairs = append(e.pairs, pair{runs[block], b})
		}
	}
	e.cost = e.sampledCost()
	e.layers = e.costlierLayers()
	return e
}

// A difference is the worse target's value minus the other's, with its interval.
type difference struct {
	subject          string
	unit             unit.Unit
	worse, better    float64 // medians
	estimate, lo, hi float64
	byPair           []float64 // by pair
}

// pairedDifference reads a value of every run; ok is false if a run does not have it, or there are too few pairs for an
// interval.
func (e evidence) pairedDifference(
	subject string, u unit.Unit, read func(*result.Run) (float64, bool),
) (d difference, ok bool) {
	var worse, better, apart []float64
	for _, p := range e.pairs {
		w, hasW := read(p.worse)
		b, hasB := read(p.better)
		if !hasW || !hasB {
			return d, false
		}
		worse, better, apart = append(worse, w), append(better, b), append(apart, w-b)
	}
	estimate := stats.Paired(apart, alpha, stats.OneLook{})
	if !estimate.Bounded() {
		return d, false
	}
	return difference{subject: subject, unit: u, worse: stats.Median(worse), better: stats.Median(better),
		estimate: estimate.Shift, lo: estimate.Lo, hi: estimate.Hi, byPair: apart}, true
}

// metricDifference returns the difference in a metric.
func (e evidence) metricDifference(name string) (difference, bool) {
	return e.pairedDifference(name, metric.Named(name).Unit, func(r *result.Run) (float64, bool) {
		v, has := r.Value(name)
		return v.Number, has
	})
}

// String formats a difference as a clause: "mss 1398 B instead of 1448 B".
func (d difference) String() string {
	worse, better := unit.Format(d.worse, d.unit), unit.Format(d.better, d.unit)
	if worse == better {
		return d.subject + " " + worse + " on both"
	}
	return fmt.Sprintf("%s %s instead of %s", d.subject, worse, better)
}

// change formats the difference with its interval: "+7.5 µs [6.9, 8.1]".
func (d difference) change() string {
	lo, hi := unit.Format(d.lo, d.unit), unit.Format(d.hi, d.unit)
	number, symbol, _ := strings.Cut(hi, " ")
	if low, same, _ := strings.Cut(lo, " "); same == symbol {
		lo, hi = low, number
	}
	return fmt.Sprintf("%s [%s, %s]", signed(d.estimate, d.unit), lo, hi)
}

func signed(v float64, u unit.Unit) string {
	text := unit.Format(v, u)
	if v > 0 {
		return "+" + text
	}
	return text
}

// fact returns a fact of the runs of each side; ok is false if it varies within a side, or is missing or unknown.
func (e evidence) fact(name string) (worse, better string, ok bool) {
	for i, p := range e.pairs {
		w, b := p.worse.Fact(name), p.better.Fact(name)
		if w == "" || b == "" || w == result.Unknown || b == result.Unknown || i > 0 && (w != worse || b != better) {
			return "", "", false
		}
		worse, better = w, b
	}
	return worse, better, len(e.pairs) > 0
}

// worseFact returns a fact that the runs of the worse target alone have; "" if they differ in it.
func (e evidence) worseFact(name string) (value string) {
	for i, p := range e.pairs {
		if v := p.worse.Fact(name); i == 0 {
			value = v
		} else if v != value {
			return ""
		}
	}
	return value
}

// targetFact returns a fact of both targets; ok is false if it is unknown on one.
func (e evidence) targetFact(name string) (worse, better string, ok bool) {
	worse, better = result.FactOf(e.facts[e.worse], name), result.FactOf(e.facts[e.better], name)
	unknown := func(text string) bool { return text == "" || strings.HasPrefix(text, result.Unknown) }
	return worse, better, !unknown(worse) && !unknown(better)
}

// A finding is the result of a rule.
type finding struct {
	state    State
	evidence []string
	share    *Share
}

// unobservable returns the finding for something that cannot be observed here, with the reason.
func unobservable(why string) finding { return finding{state: NotObservable, evidence: []string{why}} }

// state judges a difference: a cause is supported if the whole interval of d does harm, by least or more, in the unit
// of d. harm is 1 if higher values do harm, and -1 if lower values do.
func (d difference) state(harm, least float64) State {
	lo, hi := d.lo*harm, d.hi*harm
	if harm < 0 {
		lo, hi = hi, lo
	}
	switch {
	case lo >= least && lo > 0:
		return Supported
	case hi < least || hi <= 0:
		return Contradicted
	}
	return NotObservable
}

// shareOf returns the part of the row's own difference that a difference in the same unit accounts for, block by block.
func (e evidence) shareOf(d difference) *Share {
	var parts []float64
	for i, p := range e.pairs {
		worse, _ := p.worse.Value(e.row.Metric)
		better, has := p.better.Value(e.row.Metric)
		whole := worse.Number - better.Number
		if !has || whole == 0 || i >= len(d.byPair) {
			return nil
		}
		parts = append(parts, d.byPair[i]/whole)
	}
	return newShare(parts)
}

// newShare returns the share from its values by block; nil if there are too few for an interval.
func newShare(parts []float64) *Share {
	s := stats.Paired(parts, alpha, stats.OneLook{})
	if !s.Bounded() {
		return nil
	}
	return &Share{compare.Number(s.Shift), compare.Interval{Lo: s.Lo, Hi: s.Hi}}
}
