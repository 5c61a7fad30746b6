package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A judge gives a row its interval and its p, from the runs of its case on its two targets.
type judge func(r *Row, v result.Value, alpha float64)

// groups orders the targets of each case by its own metric, where there are more than two. What is known of each two is
// what their row says: a primary one, or one of the family of exploratory comparisons.
func (t *trial) groups(rows []Row, family []*Row) []Group {
	all := []Group{}
	decided := map[contest]Row{}
	for _, r := range family {
		decided[contest{r.Case, versus{r.Baseline, r.Target}}] = *r
	}
	for _, r := range rows {
		if r.Role == result.Primary {
			decided[contest{r.Case, versus{r.Baseline, r.Target}}] = r
		}
	}
	for _, rc := range t.e.Cases {
		if rc.Role == result.Bound {
			continue
		}
		if g, ok := t.group(rc, decided); ok {
			all = append(all, g)
		}
	}
	return all
}

// A contest is a case of which two targets are compared.
type contest struct {
	rc string
	versus
}

// group is the group of one case; it is not ok if there is none.
func (t *trial) group(rc result.Case, rows map[contest]Row) (Group, bool) {
	v, members := t.members(rc)
	if len(members) < 3 {
		return Group{}, false
	}
	g := Group{Case: rc.Name, Metric: v.Metric, Unit: v.Unit, Better: v.Better, Members: members}
	slices.SortStableFunc(g.Members, func(a, b Member) int {
		if v.Better == metric.Higher {
			a, b = b, a
		}
		return cmp.Compare(a.Median, b.Median)
	})
	g.Declared = t.e.Design.AllPairs && rc.Role == result.Primary && t.look != nil
	g.Level = 1 - t.e.Design.Alpha
	if g.Declared {
		g.Level = 1 - t.e.Design.Alpha/float64(planned(t.e))
	}
	table := t.standings(g, rows)
	for i, text := range letters(len(members), table.apart) {
		g.Members[i].Letters = text
	}
	g.Conclusion = newWording(g, table, t).conclusion()
	return g, true
}

// standings reads the row of each two members.
func (t *trial) standings(g Group, rows map[contest]Row) standings {
	table := newStandings(len(g.Members))
	rc := result.Case{Name: g.Case, Metric: g.Metric}
	v := result.Value{Metric: g.Metric, Unit: g.Unit, Better: g.Better}
	for i, a := range g.Members {
		for j, b := range g.Members[:i] {
			r := rowOf(rows, newRow(t.e.Design, rc, v, versus{b.Target, a.Target}))
			if r.Target == a.Target {
				table.set(j, i, r)
			} else {
				table.set(i, j, r)
			}
		}
	}
	return table
}

// members are the targets with valid runs of a case's own metric, in the order of the plan, and a
// value that names it; none if the runs do not measure the same thing.
func (t *trial) members(rc result.Case) (v result.Value, members []Member) {
	for _, x := range t.e.Targets {
		values := []float64{}
		for _, run := range t.valid(rc.Name, x.Name) {
			own, has := run.Value(rc.Metric)
			if !has || !own.Usable() {
				continue
			}
			if v.Metric != "" && !matches(own, v) {
				return result.Value{}, nil
			}
			own.Better = cmp.Or(own.Better, v.Better)
			v = own
			values = append(values, own.Number)
		}
		if len(values) > 0 {
			members = append(members, Member{Target: x.Name, Blocks: len(values), Median: Number(stats.Median(values))})
		}
	}
	if v.Better != metric.Higher && v.Better != metric.Lower {
		return result.Value{}, nil
	}
	return v, members
}

// rowOf finds the row of r's case and targets, whichever of the two stands for the baseline; it is r
// itself if there is none.
func rowOf(rows map[contest]Row, r Row) Row {
	if x, ok := rows[contest{r.Case, versus{r.Baseline, r.Target}}]; ok {
		return x
	}
	if x, ok := rows[contest{r.Case, versus{r.Target, r.Baseline}}]; ok {
		return x
	}
	return r
}

// judge finds the interval of a row, and its p, from the blocks that both of its targets have.
func (t *trial) judge(r *Row, v result.Value, alpha float64) {
	s, ok := t.pair(r, v, t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target))
	if e, ratio := s.ratio(alpha); ok && ratio {
		r.estimate(e, alpha)
		logs, _ := s.logRatios()
		r.outside = outside(logs, e.Shift, r.Delta, s.look)
	}
}

// judgeUnpaired does the same from all runs of its targets, if there are enough.
func (t *trial) judgeUnpaired(r *Row, v result.Value, alpha float64) {
	s, ok := r.samples(v, t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target))
	if e, ratio := s.ratio(alpha); ok && ratio && min(len(s.baseline), len(s.target)) >= minUnpaired {
		r.estimate(e, alpha)
		r.outside = outsideUnpaired(logarithms(s.baseline), logarithms(s.target), e.Shift, r.Delta)
	}
}

// A standing is what is known of one target beside another.
type standing struct {
	verdict Verdict
	ahead   bool // different, and the better of the two
	bounded bool // the interval has an end
}

// standings has the standing of each target beside each other one.
type standings [][]standing

func newStandings(n int) standings {
	s := make(standings, n)
	for i := range s {
		s[i] = slices.Repeat([]standing{{verdict: Undecided}}, n)
	}
	return s
}

// set files a row with i as its baseline and j as its target. Which of them is ahead is for the row
// to say, not for the medians.
func (s standings) set(i, j int, r Row) {
	different := r.Verdict == Different
	bounded := r.P.Known() && (!math.IsInf(r.CI.Lo, -1) || !math.IsInf(r.CI.Hi, 1))
	s[i][j] = standing{r.Verdict, different && r.Direction == WorseThan, bounded}
	s[j][i] = standing{r.Verdict, different && r.Direction == BetterThan, bounded}
}

func (s standings) apart(i, j int) bool { return s[i][j].verdict == Different }
