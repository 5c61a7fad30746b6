package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// maxSessionChanges is the maximum number of listed changes of conditions.
const maxSessionChanges = 12

// sessionChanges returns a sentence for each change between the sessions of a resumed experiment, and between the
// visits of a target.
func sessionChanges(c compare.Comparison) []string {
	var list []string
	for _, s := range c.Sessions {
		list = append(list, nonEmpty(s.Sentence)...)
	}
	for _, v := range c.Visits {
		list = append(list, v.Sentence)
	}
	if more := len(list) - maxSessionChanges; more > 0 {
		list = append(list[:maxSessionChanges], fmt.Sprintf("Conditions changed %d more times; the JSON has them.", more))
	}
	return list
}

// A sessionKey identifies a session of an experiment.
type sessionKey struct {
	experiment string
	number     int
}

// changesBySession returns the changes that each session found.
func changesBySession(c compare.Comparison) map[sessionKey]string {
	all := map[sessionKey]string{}
	for _, s := range c.Sessions {
		all[sessionKey{s.Experiment, s.Number}] = s.ChangesInWords()
	}
	return all
}

// numberText formats the number of a session or a site; empty for imported runs, which have none.
func numberText(number int) string {
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}

// versions returns the versions of the program that measured, in order.
func versions(in Input) string {
	var list []string
	for i, s := range in.Comparison.Sessions {
		if s.Experiment == in.Experiment.ID && (i == 0 || s.Version != in.Comparison.Sessions[i-1].Version) {
			list = append(list, s.Version)
		}
	}
	if len(list) == 0 {
		return in.Experiment.Version
	}
	return strings.Join(list, ", then ")
}
