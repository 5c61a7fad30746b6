package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Provisional returns a function that compares the runs of the first done blocks by the metrics of the verdicts, for
// display while an experiment runs. Rows have the interval of the last look that was reached, and no interval before
// the first, so that whoever ends the experiment because of what is displayed does not err more often than alpha. The
// cases in going are undecided; the other cases have the verdict of the look at which they stopped. An experiment that
// cannot be compared has no rows.
//
// The experiment is passed to the function again, as with [Stopping]; the design's looks are computed once.
func Provisional(e result.Experiment) func(e result.Experiment, done int, runs []result.Run, going []string) []Row {
	p, err := newAnalysisPlan(e)
	if err != nil {
		return func(result.Experiment, int, []result.Run, []string) []Row { return nil }
	}
	return p.provisional
}

// provisional returns the rows that Provisional describes.
func (p analysisPlan) provisional(e result.Experiment, done int, runs []result.Run, going []string) []Row {
	role := result.Primary
	t := p.interimTable(e, done, runs, stopBlocks{})
	if t.primaries == 0 {
		role = result.Exploratory
	}
	var rows []Row
	for _, rc := range e.Cases {
		for _, v := range t.targetPairs {
			if rc.Role != role || v.baseline != e.Baseline {
				continue
			}
			if r, ok := t.provisionalRow(rc, v, slices.Contains(going, rc.Name)); ok {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// provisionalRow returns the row of the case's own metric; false before there is a pair.
func (t *runTable) provisionalRow(rc result.Case, of targetPair, going bool) (Row, bool) {
	a, b := t.valid(rc.Name, of.baseline), t.valid(rc.Name, of.target)
	v, ok := firstValue(rc.Metric, a, b)
	if !ok {
		return Row{}, false
	}
	r, judged, _ := t.row(rc, of)
	if !judged {
		r = newRow(t.e.Design, rc, v, of)
		pairs, ok := t.sides(&r)
		if !ok || len(pairs.baseline) == 0 {
			return r, false
		}
		r.describe(pairs)
	}
	if going {
		r.Verdict, r.Direction = Undecided, None
	}
	return r, true
}
