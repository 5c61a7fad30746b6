package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// explored lists the comparisons whose false discovery rate is controlled together: of each case each two targets, by
// the case's own metric, but for the primary comparisons. It is the one family of the decisions to stop, of the rows
// and of the letters. It follows from the plan alone, so that nothing that becomes of a comparison changes how many
// there are.
func (t *trial) explored() []contest {
	every := t.e
	every.Design.AllPairs = true
	var list []contest
	for _, rc := range t.e.Cases {
		for _, v := range contests(every) {
			isPrimary := rc.Role == result.Primary && slices.Contains(t.versus, v)
			if rc.Role != result.Bound && !isPrimary && t.plans(rc, v) {
				list = append(list, contest{rc.Name, v})
			}
		}
	}
	return list
}

// family returns the rows of [explored]: those that there are, and those of pairs of targets that only letters are
// about, judged here.
func (t *trial) family(rows []Row, judge judge) []*Row {
	own, _ := exploratory(rows, t.e.Cases)
	have := map[contest]*Row{}
	for _, r := range own {
		have[contest{r.Case, versus{r.Baseline, r.Target}}] = r
	}
	var list []*Row
	for _, x := range t.explored() {
		r := have[x]
		if r == nil {
			rc, _ := t.e.Case(x.rc)
			v, _ := t.members(rc)
			fresh := newRow(t.e.Design, result.Case{Name: rc.Name, Metric: rc.Metric}, v, x.versus)
			judge(&fresh, v, t.e.Design.Alpha)
			r = &fresh
		}
		list = append(list, r)
	}
	return list
}

// exploratory returns the rows that are not primary: those of their case's own metric, and the others.
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

// decideTogether gives exploratory rows their adjusted p and verdicts: a verdict needs both the row's interval and the
// control of the false discovery rate at alpha among all of them, for being different and for being equivalent each. A
// row without a p counts as one with a p of 1.
func decideTogether(rows []*Row, alpha float64) {
	var zero, margin []float64
	for _, r := range rows {
		zero = append(zero, float64(r.P))
		margin = append(margin, r.outside)
	}
	q, outside := stats.BenjaminiHochberg(zero), stats.BenjaminiHochberg(margin)
	for i, r := range rows {
		if !r.P.Known() {
			continue
		}
		r.Q = Number(q[i])
		alone, direction := r.decide()
		if alone == Different && q[i] <= alpha || alone == Equivalent && outside[i] <= alpha {
			r.Verdict, r.Direction = alone, direction
			if q[i] > alpha {
				r.Direction = None
			}
			continue
		}
		if alone != Undecided {
			r.warn("The interval alone would say %s; among %d exploratory comparisons that is not enough.", alone, len(rows))
		}
	}
}
