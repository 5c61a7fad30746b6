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

// alpha is the error probability of the interval of a piece of evidence.
const alpha = 0.05

// mostPairs are looked at: more would tell nothing else, and the time for an interval grows with their square.
const mostPairs = 60

// A pair is the runs of one block, on the target that is worse and on the other.
type pair struct{ worse, better *result.Run }

// Evidence is what is known of both sides of a comparison.
type evidence struct {
	row           compare.Row
	worse, better string // targets
	pairs         []pair
	facts         map[string][]result.Fact // by target
	specs         map[string]string        // texts of the targets, by their labels
	workload      string
	cost          string       // that the runs have layers of; empty if they have none
	layers        []difference // in which the worse target takes more of it
}

func newEvidence(
	row compare.Row, of result.Case, runs map[string]map[int]*result.Run, r result.Results,
) evidence {
	e := evidence{row: row, worse: row.Target, better: row.Baseline, facts: r.Facts, specs: map[string]string{},
		workload: of.Workload}
	for _, t := range r.Experiment.Targets {
		e.specs[t.Name] = t.Spec
	}
	if row.Direction == compare.BetterThan {
		e.worse, e.better = e.better, e.worse
	}
	for _, p := range row.Pairs[:min(len(row.Pairs), mostPairs)] {
		worse, better := runs[e.worse][p.Block], runs[e.better][p.Block]
		if worse != nil && better != nil {
			e.pairs = append(e.pairs, pair{worse, better})
		}
	}
	e.cost = e.sampledCost()
	e.layers = e.costlier()
	return e
}

// newPathEvidence is of one target, where a case is worse than its bound in the same blocks.
func newPathEvidence(of result.Case, target string, runs, bound map[int]*result.Run) evidence {
	row := compare.Row{Case: of.Name, Metric: of.Metric, Unit: metric.Named(of.Metric).Unit, Target: target,
		Baseline: of.Bound}
	e := evidence{row: row, worse: target, better: of.Bound}
	for _, block := range slices.Sorted(maps.Keys(runs)) {
		if b := bound[block]; b != nil && len(e.pairs) < mostPairs {
			e.pairs = append(e.pairs, pair{runs[block], b})
		}
	}
	e.cost = e.sampledCost()
	e.layers = e.costlier()
	return e
}

// A difference is how much more the worse target has of something than the other, with the interval.
type difference struct {
	subject          string
	unit             unit.Unit
	worse, better    float64 // medians
	estimate, lo, hi float64
	every            []float64 // of the pairs
}

// of reads something of every run; ok is false if a run does not have it, or there are too few for an interval.
func (e evidence) of(subject string, u unit.Unit, read func(*result.Run) (float64, bool)) (d difference, ok bool) {
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
		estimate: estimate.Shift, lo: estimate.Lo, hi: estimate.Hi, every: apart}, true
}

// metric is the difference in a metric.
func (e evidence) metric(name string) (difference, bool) {
	return e.of(name, metric.Named(name).Unit, func(r *result.Run) (float64, bool) {
		v, has := r.Value(name)
		return v.Number, has
	})
}

// String is a difference as a clause: "mss 1398 B, on the other 1448 B".
func (d difference) String() string {
	worse, better := unit.Format(d.worse, d.unit), unit.Format(d.better, d.unit)
	if worse == better {
		return d.subject + " " + worse + " on both"
	}
	return fmt.Sprintf("%s %s instead of %s", d.subject, worse, better)
}

// change is a difference with its interval: "+7.5 µs [6.9, 8.1]".
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

// fact is what all runs of both sides say, if each side says one thing.
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

// targetFact is what both targets say.
func (e evidence) targetFact(name string) (worse, better string, ok bool) {
	worse, better = result.FactOf(e.facts[e.worse], name), result.FactOf(e.facts[e.better], name)
	unknown := func(text string) bool { return text == "" || strings.HasPrefix(text, result.Unknown) }
	return worse, better, !unknown(worse) && !unknown(better)
}

// A finding is what came of a rule.
type finding struct {
	state    State
	evidence []string
	share    *Share
}

// unseen is what cannot be judged here, with its reason.
func unseen(why string) finding { return finding{state: NotObservable, evidence: []string{why}} }

// judged is the state of a difference of which at least so much, in its own unit, does harm; harm is 1 where more does
// and -1 where less does.
func (d difference) judged(harm, least float64) State {
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

// shareOf is which part of the row's own difference a difference in the same unit accounts for, block by block.
func (e evidence) shareOf(d difference) *Share {
	var parts []float64
	for i, p := range e.pairs {
		worse, _ := p.worse.Value(e.row.Metric)
		better, has := p.better.Value(e.row.Metric)
		whole := worse.Number - better.Number
		if !has || whole == 0 || i >= len(d.every) {
			return nil
		}
		parts = append(parts, d.every[i]/whole)
	}
	return newShare(parts)
}

// newShare is that of the parts of all blocks; nil if they are too few for an interval.
func newShare(parts []float64) *Share {
	s := stats.Paired(parts, alpha, stats.OneLook{})
	if !s.Bounded() {
		return nil
	}
	return &Share{compare.Number(s.Shift), compare.Interval{Lo: s.Lo, Hi: s.Hi}}
}
