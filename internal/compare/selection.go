package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// losses returns the numbers of invalid runs of a case on both sides of a comparison.
func (t *runTable) losses(caseName string, of targetPair) [2]TargetCount {
	loss := func(target string) TargetCount {
		runs := t.all[caseName][target]
		return TargetCount{target, invalid(runs), len(runs)}
	}
	return [2]TargetCount{loss(of.baseline), loss(of.target)}
}

// mostSelections is the number of cases up to which each has its own warning; if there are more, one warning without
// numbers covers all.
const mostSelections = 3

// selectionWarnings returns warnings about cases in which only one side has invalid runs, however few. The remaining
// runs of that side may be the good ones, and no interval covers that.
func (t *runTable) selectionWarnings() []Warning {
	var names []string
	var list []Warning
	for _, rc := range t.e.Cases {
		counts := oneSidedLosses(t.targetPairs, func(of targetPair) [2]TargetCount { return t.losses(rc.Name, of) })
		if counts != nil && rc.Role != result.Bound {
			names = append(names, rc.Name)
			list = append(list, Warning{Code: OneSidedInvalid, Cases: []string{rc.Name}, Counts: counts})
		}
	}
	if len(list) > mostSelections {
		return []Warning{{Code: OneSidedInvalidIn, Cases: names}}
	}
	return list
}

// oneSidedLosses lists the losses of all sides of a case, nil if no comparison has invalid runs on only one side.
// Comparisons with a side without valid runs are skipped.
func oneSidedLosses(pairs []targetPair, losses func(of targetPair) [2]TargetCount) []TargetCount {
	var list []TargetCount
	oneSided := false
	for _, of := range pairs {
		both := losses(of)
		if slices.ContainsFunc(both[:], func(l TargetCount) bool { return l.Of == l.Count }) {
			continue
		}
		oneSided = oneSided || (both[0].Count == 0) != (both[1].Count == 0)
		for _, l := range both {
			if !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	if !oneSided {
		return nil
	}
	return list
}
