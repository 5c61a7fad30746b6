package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// groups returns a group for each case with more than two targets, ordered by the case's own metric. Each pair of
// targets has the outcome of its row: a primary one, or one of the exploratory family.
func (t *runTable) groups(rows []Row, family []*Row) []Group {
	all := []Group{}
	decided := map[comparisonKey]*Row{}
	for _, r := range family {
		decided[r.key()] = r
	}
	for i := range rows {
		if rows[i].Role == result.Primary {
			decided[rows[i].key()] = &rows[i]
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

func (r *Row) key() comparisonKey { return comparisonKey{r.Case, targetPair{r.Baseline, r.Target}} }

// group returns the group of one case; ok is false if there is none.
func (t *runTable) group(rc result.Case, rows map[comparisonKey]*Row) (Group, bool) {
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
		g.Level = 1 - t.e.Design.Alpha/float64(t.primaries)
	}
	table := newStandings(g, rows)
	for i, text := range letters(len(members), table.apart) {
		g.Members[i].Letters = text
	}
	g.Conclusion = newWording(g, table, t).conclusion()
	return g, true
}

// newStandings returns the outcomes of the rows of all pairs of members; a pair without a row is undecided.
func newStandings(g Group, rows map[comparisonKey]*Row) standings {
	table := undecided(len(g.Members))
	for i, a := range g.Members {
		for j, b := range g.Members {
			if r := rows[comparisonKey{g.Case, targetPair{a.Target, b.Target}}]; r != nil {
				table.set(i, j, *r)
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

// A standing is the outcome of one target compared with another.
type standing struct {
	verdict Verdict
	ahead   bool // different, and the better of the two
	bounded bool // the interval has at least one finite end
}

// standings[i][j] is the standing of target i compared with target j.
type standings [][]standing

func undecided(n int) standings {
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
