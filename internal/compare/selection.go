package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A loss is how many runs of a case on a target were invalid.
type loss struct {
	target        string
	runs, invalid int
}

func newLoss(target string, runs []*result.Run) loss { return loss{target, len(runs), invalid(runs)} }

func (l loss) String() string { return fmt.Sprintf("%d of %d runs on %s", l.invalid, l.runs, l.target) }

// losses are those of the two sides of a comparison.
func (t *trial) losses(caseName string, of versus) [2]loss {
	return [2]loss{newLoss(of.baseline, t.all[caseName][of.baseline]), newLoss(of.target, t.all[caseName][of.target])}
}

// mostSelections is how many cases have a warning each, before all are put into one, without their numbers of runs.
const mostSelections = 3

// selections warn of cases in which one side alone lost runs, however few. The runs that are left there may be the good
// ones, and no interval covers that.
func (t *trial) selections() []string {
	var names, found []string
	for _, rc := range t.e.Cases {
		words := selection(t.versus, func(of versus) [2]loss { return t.losses(rc.Name, of) })
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

// selection lists the losses of all sides of a case, "" if no comparison lost runs on one side alone. A side without
// any run that counts is compared with nothing.
func selection(contests []versus, losses func(of versus) [2]loss) string {
	var said []string
	oneSided := false
	for _, of := range contests {
		both := losses(of)
		if slices.ContainsFunc(both[:], func(l loss) bool { return l.runs == l.invalid }) {
			continue
		}
		oneSided = oneSided || (both[0].invalid == 0) != (both[1].invalid == 0)
		for _, l := range both {
			if text := l.String(); !slices.Contains(said, text) {
				said = append(said, text)
			}
		}
	}
	if !oneSided {
		return ""
	}
	return strings.Join(said, ", ")
}
