package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A loss counts the invalid runs of a case on a target.
type loss struct {
	target        string
	runs, invalid int
}

func newLoss(target string, runs []*result.Run) loss { return loss{target, len(runs), invalid(runs)} }

func (l loss) String() string { return fmt.Sprintf("%d of %d runs on %s", l.invalid, l.runs, l.target) }

// losses returns the losses of both sides of a comparison.
func (t *runTable) losses(caseName string, of targetPair) [2]loss {
	return [2]loss{newLoss(of.baseline, t.all[caseName][of.baseline]), newLoss(of.target, t.all[caseName][of.target])}
}

// mostSelections is the number of cases up to which each has its own warning; beyond, one warning without numbers
// covers all.
const mostSelections = 3

// selectionWarnings warns of cases in which only one side has invalid runs, however few. The remaining runs of that
// side may be the good ones, and no interval covers that.
func (t *runTable) selectionWarnings() []string {
	var names, found []string
	for _, rc := range t.e.Cases {
		words := lossWords(t.targetPairs, func(of targetPair) [2]loss { return t.losses(rc.Name, of) })
		if words != "" && rc.Role != result.Bound {
			names, found = append(names, rc.Name), append(found, rc.Name+" ("+words+")")
		}
	}
	const why = "The runs that are left there may be the good ones, and that side may look better than it is."
	if n := len(found); n > mostSelections {
		return []string{fmt.Sprintf("In %d cases only one side has invalid runs: %s. %s", n, prose.Some(names), why)}
	}
	for i, words := range found {
		found[i] = fmt.Sprintf("Only one side has invalid runs: %s. %s", words, why)
	}
	return found
}

// lossWords lists the losses of all sides of a case, "" if no comparison has invalid runs on only one side. Comparisons
// with a side without valid runs are skipped.
func lossWords(contests []targetPair, losses func(of targetPair) [2]loss) string {
	var texts []string
	oneSided := false
	for _, of := range contests {
		both := losses(of)
		if slices.ContainsFunc(both[:], func(l loss) bool { return l.runs == l.invalid }) {
			continue
		}
		oneSided = oneSided || (both[0].invalid == 0) != (both[1].invalid == 0)
		for _, l := range both {
			if text := l.String(); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	if !oneSided {
		return ""
	}
	return strings.Join(texts, ", ")
}
