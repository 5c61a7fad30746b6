package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// plannedExploratory lists the comparisons whose false discovery rate is controlled together: for each case all pairs
// of targets, by the case's own metric, without the primary comparisons. Decisions to stop, rows and letters all use
// this one family. It depends on the plan alone, so that its size does not depend on results.
func (t *runTable) plannedExploratory() []comparisonKey {
	every := t.e
	every.Design.AllPairs = true
	var list []comparisonKey
	for _, rc := range t.e.Cases {
		for _, v := range plannedPairs(every) {
			isPrimary := rc.Role == result.Primary && slices.Contains(t.targetPairs, v)
			if rc.Role != result.Bound && !isPrimary && t.hasCase(rc, v) {
				list = append(list, comparisonKey{rc.Name, v})
			}
		}
	}
	return list
}

// exploratoryFamily returns the rows of [runTable.plannedExploratory]: the given ones, and for pairs of targets that
// only letters compare, new ones.
func (t *runTable) exploratoryFamily(rows []Row) []*Row {
	own, _ := exploratory(rows, t.e.Cases)
	have := map[comparisonKey]*Row{}
	for _, r := range own {
		have[r.key()] = r
	}
	var list []*Row
	for _, x := range t.plannedExploratory() {
		r := have[x]
		if r == nil {
			rc, _ := t.e.Case(x.caseName)
			v, _ := t.members(rc)
			fresh := newRow(t.e.Design, result.Case{Name: rc.Name, Metric: rc.Metric}, v, x.targetPair)
			if s, ok := t.sides(&fresh); ok && s.decidable() {
				fresh.estimateRatio(s, t.e.Design.Alpha, t.e.Design.Delta)
			}
			r = &fresh
		}
		list = append(list, r)
	}
	return list
}

// exploratory returns the rows that are not primary: own are those of their case's own metric, others those of other
// metrics that have a p.
func exploratory(rows []Row, cases []result.Case) (own, others []*Row) {
	planned := result.CasesByName(cases)
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Role == result.Primary:
		case r.Metric == planned[r.Case].Metric:
			own = append(own, r)
		case r.P.Known():
			others = append(others, r)
		}
	}
	return own, others
}

// decideTogether sets the adjusted p and the verdicts of exploratory rows. A verdict needs both the row's interval and
// control of the false discovery rate at alpha among all rows, separately for different and for equivalent. A row
// without a p counts with a p of 1.
func decideTogether(rows []*Row, alpha, delta float64) {
	var zero, margin []float64
	for _, r := range rows {
		zero = append(zero, float64(r.P))
		margin = append(margin, r.equivalenceP)
	}
	q, outside := stats.BenjaminiHochberg(zero), stats.BenjaminiHochberg(margin)
	for i, r := range rows {
		if !r.P.Known() {
			continue
		}
		r.Q = Number(q[i])
		alone, direction := r.decide(delta)
		if alone == Different && q[i] <= alpha || alone == Equivalent && outside[i] <= alpha {
			r.Verdict, r.Direction = alone, direction
			if q[i] > alpha {
				r.Direction = None
			}
			continue
		}
		if alone != Undecided {
			r.warn(Warning{Code: OneOfMany, Verdict: alone, Count: len(rows)})
		}
	}
}
