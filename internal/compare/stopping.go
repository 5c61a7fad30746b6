package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A plan is an experiment that can be compared, with what takes time or can fail to be made of it.
type plan struct {
	look   stats.Design
	gates  []Gate
	shifts map[float64]float64 // what was worked out of a trial's shifts
}

// newPlan returns an error that Is ErrExperiment if nothing sensible can be computed from e.
func newPlan(e result.Experiment) (plan, error) {
	if err := check(e); err != nil {
		return plan{}, err
	}
	gates, err := parseGates(e.Gates...)
	if err != nil {
		return plan{}, err
	}
	look, err := design(e.Design)
	return plan{look, gates, map[float64]float64{}}, err
}

// Stopping makes of the design what decides after each block which cases go on, for the runner. The
// experiment is given to it again because what is not measured grows; an error Is [ErrExperiment].
//
// Without looks every case has all blocks. With looks, everything that goes on goes on to the next
// look. There a case stops when each comparison of its own metric is different or equivalent: by its
// repeated interval at alpha / m if it is primary; if not, by that at alpha and under control of the
// false discovery rate among all that are [explored]. Each gate on it must have
// passed or failed too. Everything stops when that is so of all primary comparisons, or of all others if
// none is primary, and of all gates. What can get no more data is not waited for; what has no ratio
// is, up to the last look. A comparison that lacks pairs is judged by the look that its pairs have reached, see
// [trial.looked]. A bound goes on as long as a case that it bounds.
//
// What is returned has no memory: it goes through the looks from the first one, each with the runs up
// to it, so that an experiment that is resumed takes the decisions that it took before.
func Stopping(e result.Experiment) (func(e result.Experiment, done int, runs []result.Run) []string, error) {
	p, err := newPlan(e)
	if err != nil {
		return nil, err
	}
	return p.decide, nil
}

// decide is what Stopping returns.
func (p plan) decide(e result.Experiment, done int, runs []result.Run) []string {
	if done >= e.Design.Blocks {
		return nil
	}
	if len(e.Design.Looks) == 0 || done < e.Design.Looks[0] {
		return going(e, nil)
	}
	return going(e, p.replay(e, done, runs, mistakesOf(e, runs)))
}

// A history is after how many blocks the cases stopped; those that it does not have go on.
type history map[string]int

// going lists the cases that go on, in the order of the plan.
func going(e result.Experiment, stopped history) []string {
	bounds, needed := map[string]bool{}, map[string]bool{}
	over := slices.ContainsFunc(e.Cases, func(rc result.Case) bool { return rc.Role != result.Bound })
	for _, rc := range e.Cases {
		if rc.Role == result.Bound {
			continue
		}
		bounds[rc.Bound] = true
		if stopped[rc.Name] == 0 {
			needed[rc.Name], needed[rc.Bound], over = true, true, false
		}
	}
	var names []string
	for _, rc := range e.Cases {
		// A bound of nothing in particular goes on with the rest.
		if needed[rc.Name] || rc.Role == result.Bound && !bounds[rc.Name] && !over {
			names = append(names, rc.Name)
		}
	}
	return names
}

// replay takes the decisions of all looks up to done blocks, without the runs that are mistaken.
func (p plan) replay(e result.Experiment, done int, runs []result.Run, wrong mistakes) history {
	stopped := history{}
	for _, at := range e.Design.Looks {
		if at > done || len(stopped) > 0 && len(going(e, stopped)) == 0 {
			break
		}
		s := p.session(e, at, runs, stopped)
		s.mistakes = wrong
		s.stop(stopped)
	}
	return stopped
}

// stop adds the cases that are decided.
func (s session) stop(stopped history) {
	open, rows := s.open()
	gated := map[string]bool{}
	for _, rc := range s.e.Cases {
		gated[rc.Name] = s.isGated(rc)
	}
	s.explore(rows, open, func(name string) bool { return stopped[name] != 0 || !open[name] && gated[name] })
	primaries, all := true, true
	isPlanned := slices.ContainsFunc(s.e.Cases, func(rc result.Case) bool { return rc.Role == result.Primary })
	var settled []string
	for _, rc := range s.e.Cases {
		if rc.Role == result.Bound || stopped[rc.Name] != 0 {
			continue
		}
		compared, gated := !open[rc.Name], gated[rc.Name]
		if compared && gated {
			settled = append(settled, rc.Name)
		}
		all = all && compared && gated
		primaries = primaries && gated && (compared || rc.Role != result.Primary)
	}
	if all || isPlanned && primaries {
		settled = nil
		for _, rc := range s.e.Cases {
			if rc.Role != result.Bound && stopped[rc.Name] == 0 {
				settled = append(settled, rc.Name)
			}
		}
	}
	for _, name := range settled {
		stopped[name] = s.at
	}
}

// A session is what is known at a look.
type session struct {
	*trial
	primaries int
	demands   []demand
}

// session looks at the runs of the first blocks, of a case that stopped before only as many as it had
// then.
func (p plan) session(e result.Experiment, at int, runs []result.Run, stopped history) session {
	var known []result.Run
	for _, r := range runs {
		if end := stopped[r.Case]; r.Block <= at && (end == 0 || r.Block <= end) {
			known = append(known, r)
		}
	}
	t := newTrial(e, known)
	t.look, t.stopped, t.at = p.look, stopped, at
	return session{t, planned(e), demands(p.gates, e.Cases, t.subjects(t.readChange))}
}

// open are the cases that have a comparison which more blocks may decide, by what is known without the exploratory
// ones, whose rows are returned.
func (s session) open() (open map[string]bool, rows map[contest]Row) {
	open, rows = map[string]bool{}, map[contest]Row{}
	for _, rc := range s.e.Cases {
		for _, v := range contests(s.e) {
			if rc.Role == result.Bound || s.isLost(rc, v) {
				continue
			}
			r, judged, waits := s.row(rc, v)
			open[rc.Name] = open[rc.Name] || waits || judged && r.Role == result.Primary && r.Verdict == Undecided
			if judged && r.Role != result.Primary {
				rows[contest{rc.Name, v}] = r
			}
		}
	}
	return open, rows
}

// explore adds to the open cases those with an exploratory comparison that is undecided. In the report, a case that
// stops here is judged together with cases that had more blocks, whose p may rise until then. So what is not final
// counts with a p of 1, and a decision here can only become clearer.
func (s session) explore(rows map[contest]Row, open map[string]bool, final func(name string) bool) {
	family := s.explored()
	known := make([]Row, len(family))
	for i, x := range family {
		r, has := rows[x]
		if !has { // what only letters are about, or was given up
			rc, _ := s.e.Case(x.rc)
			r, has, _ = s.row(result.Case{Name: rc.Name, Metric: rc.Metric}, x.versus)
		}
		if known[i] = r; !has {
			known[i] = Row{P: Missing(), outside: 1}
		}
	}
	for again := true; again; {
		now := make([]*Row, len(family))
		for i, x := range family {
			r := known[i]
			if !final(x.rc) {
				r.P, r.outside = Missing(), 1
			}
			now[i] = &r
		}
		decideTogether(now, s.e.Design.Alpha)
		again = false
		for i, x := range family {
			if _, asked := rows[x]; asked && !open[x.rc] && final(x.rc) && now[i].Verdict == Undecided {
				open[x.rc], again = true, true
			}
		}
	}
}

// row is a comparison of the case's own metric. Where it cannot be judged, waits says whether it may be
// after more blocks: a metric that no run has will not come.
func (s session) row(rc result.Case, of versus) (r Row, judged, waits bool) {
	a, b := s.valid(rc.Name, of.baseline), s.valid(rc.Name, of.target)
	v, ok := find(rc.Metric, a, b)
	if !ok {
		return r, false, !meet(a, b)
	}
	r = newRow(s.e.Design, rc, v, of)
	pairs, ok := s.pair(&r, v, a, b)
	alpha := r.alpha(s.e.Design, s.primaries)
	e, ratio := pairs.ratio(alpha)
	if !ok || !ratio {
		return r, false, true
	}
	r.describe(pairs)
	r.estimate(e, alpha)
	r.decidePrimary()
	if r.Role != result.Primary {
		logs, _ := pairs.logRatios()
		r.outside = outside(logs, e.Shift, r.Delta, pairs.look)
	}
	return r, true, false
}

// isLost says whether a comparison had been given up by this look: it is so by now, and the block of
// the look lacks a side.
func (s session) isLost(rc result.Case, of versus) bool {
	if isMeasured(s.e, rc.Name, of.baseline) && isMeasured(s.e, rc.Name, of.target) {
		return false
	}
	have := s.last[rc.Name][s.at]
	a, okA := have[of.baseline]
	b, okB := have[of.target]
	return !okA || !okB || !a.Valid() || !b.Valid()
}

// isGated says whether all gates on a case are decided, or cannot be any more.
func (s session) isGated(rc result.Case) bool {
	for _, d := range s.demands {
		if d.rc.Name != rc.Name || s.isLost(rc, versus{s.e.Baseline, d.on.Name}) {
			continue
		}
		if g, lost := d.judge(s.e.Design.Alpha / float64(len(s.demands))); g.Outcome == Open && !lost {
			return false
		}
	}
	return true
}

// ran is the number of the last block that has a run of a case, 0 if none has.
func (t *trial) ran(caseName string) int {
	last := 0
	for block := range t.last[caseName] {
		last = max(last, block)
	}
	return last
}

// reached is the number of the last block that has a run.
func (t *trial) reached() int {
	last := 0
	for name := range t.last {
		last = max(last, t.ran(name))
	}
	return last
}

// isLastLook says whether a case had all the blocks that there may be.
func (t *trial) isLastLook(caseName string) bool {
	return len(t.e.Design.Looks) > 1 && t.ran(caseName) >= t.e.Design.Blocks
}

// endWords say why a case has fewer blocks than it may have; "" if it has them all, if it stopped
// because it was decided, or if it was given up, which is said elsewhere.
func (t *trial) endWords(r Row) string {
	ran, end := t.ran(r.Case), t.e.Design.Blocks
	if t.stopped[r.Case] != 0 {
		end = t.stopped[r.Case]
	}
	givenUp := !isMeasured(t.e, r.Case, r.Baseline) || !isMeasured(t.e, r.Case, r.Target)
	switch {
	case len(t.e.Design.Looks) == 0 || ran >= end || givenUp:
		return ""
	case t.e.Design.Budget > 0:
		return fmt.Sprintf("The experiment ended after %d of at most %d blocks of this case; its budget was %s.",
			ran, t.e.Design.Blocks, seconds(t.e.Design.Budget))
	}
	return fmt.Sprintf("The experiment was ended after %d of at most %d blocks of this case.", ran, t.e.Design.Blocks)
}

// seconds renders a time, in minutes from two of them on.
func seconds(s float64) string {
	if s >= 120 {
		return strconv.FormatFloat(math.Round(s/6)/10, 'f', -1, 64) + " min"
	}
	return strconv.FormatFloat(s, 'g', 3, 64) + " s"
}
