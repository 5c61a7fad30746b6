package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A judge sets the interval and the p of a row from the runs of its case on its two targets.
type judge func(r *Row, v result.Value, alpha float64)

// groups returns a group for each case with more than two targets, ordered by the case's own metric. Each pair of
// targets has the outcome of its row: a primary one, or one of the exploratory family.
func (t *runTable) groups(rows []Row, family []*Row) []Group {
	all := []Group{}
	decided := map[comparisonKey]Row{}
	for _, r := range family {
		decided[comparisonKey{r.Case, targetPair{r.Baseline, r.Target}}] = *r
	}
	for _, r := range rows {
		if r.Role == result.Primary {
			decided[comparisonKey{r.Case, targetPair{r.Baseline, r.Target}}] = r
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

// A comparisonKey identifies a comparison by its case and its two targets.
type comparisonKey struct {
	caseName string
	targetPair
}

// group returns the group of one case; ok is false if there is none.
func (t *runTable) group(rc result.Case, rows map[comparisonKey]Row) (Group, bool) {
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
		g.Level = 1 - t.e.Design.Alpha/float64(countPrimaryPlanned(t.e))
	}
	table := t.standings(g, rows)
	for i, text := range letters(len(members), table.apart) {
		g.Members[i].Letters = text
	}
	g.Conclusion = newWording(g, table, t).conclusion()
	return g, true
}

// standings returns the outcomes of the rows of all pairs of members.
func (t *runTable) standings(g Group, rows map[comparisonKey]Row) standings {
	table := newStandings(len(g.Members))
	rc := result.Case{Name: g.Case, Metric: g.Metric}
	v := result.Value{Metric: g.Metric, Unit: g.Unit, Better: g.Better}
	for i, a := range g.Members {
		for j, b := range g.Members[:i] {
			r := rowOf(rows, newRow(t.e.Design, rc, v, targetPair{b.Target, a.Target}))
			if r.Target == a.Target {
				table.set(j, i, r)
			} else {
				table.set(i, j, r)
			}
		}
	}
	return table
}

// members returns the targets with valid runs of a case's own metric, in the order of the plan, and a value that
// identifies the metric; none if the runs do not measure the same thing.
func (t *runTable) members(rc result.Case) (v result.Value, members []Member) {
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

// rowOf returns the row of r's case and targets, whichever of the two is the baseline, or r itself if there is none.
func rowOf(rows map[comparisonKey]Row, r Row) Row {
	if x, ok := rows[comparisonKey{r.Case, targetPair{r.Baseline, r.Target}}]; ok {
		return x
	}
	if x, ok := rows[comparisonKey{r.Case, targetPair{r.Target, r.Baseline}}]; ok {
		return x
	}
	return r
}

// estimateRow sets the interval and the p of a row from the blocks that both of its targets have.
func (t *runTable) estimateRow(r *Row, v result.Value, alpha float64) {
	s, ok := t.pair(r, v, t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target))
	if e, ratio := s.ratio(alpha); ok && ratio {
		r.estimate(e, alpha, t.e.Design.Delta)
		logs, _ := s.logRatios()
		r.equivalenceP = equivalenceP(logs, e.Shift, t.e.Design.Delta, s.look)
	}
}

// judgeUnpaired sets the interval and the p of a row from all runs of its targets, if there are enough and none drift.
func (t *runTable) judgeUnpaired(r *Row, v result.Value, alpha float64) {
	s, ok := r.samples(v, t.valid(r.Case, r.Baseline), t.valid(r.Case, r.Target))
	if e, ratio := s.ratio(alpha); ok && ratio && min(len(s.baseline), len(s.target)) >= minUnpaired &&
		!s.drift() {
		r.estimate(e, alpha, t.e.Design.Delta)
		r.equivalenceP = equivalencePUnpaired(logarithms(s.baseline), logarithms(s.target), e.Shift, t.e.Design.Delta)
	}
}

// A standing is the outcome of one target compared with another.
type standing struct {
	verdict Verdict
	ahead   bool // different, and the better of the two
	bounded bool // the interval has at least one finite end
}

// standings[i][j] is the standing of target i compared with target j.
type standings [][]standing

func newStandings(n int) standings {
	s := make(standings, n)
	for i := range s {
		s[i] = slices.Repeat([]standing{{verdict: Undecided}}, n)
	}
	return s
}

// set records a row with i as its baseline and j as its target. The row decides which of them is ahead, not the
// medians.
func (s standings) set(i, j int, r Row) {
	different := r.Verdict == Different
	bounded := r.P.Known() && (!math.IsInf(r.CI.Lo, -1) || !math.IsInf(r.CI.Hi, 1))
	s[i][j] = standing{r.Verdict, different && r.Direction == WorseThan, bounded}
	s[j][i] = standing{r.Verdict, different && r.Direction == BetterThan, bounded}
}

func (s standings) apart(i, j int) bool { return s[i][j].verdict == Different }
