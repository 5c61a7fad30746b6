package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// mostSessions is how many changes of conditions are told in words.
const mostSessions = 12

// sessionChanges says in a sentence each what changed between the sessions of an experiment that was resumed, and
// between the visits of a target.
func sessionChanges(c compare.Comparison) []string {
	var list []string
	for _, s := range c.Sessions {
		list = append(list, nonEmpty(s.Sentence)...)
	}
	for _, v := range c.Visits {
		list = append(list, v.Sentence)
	}
	if more := len(list) - mostSessions; more > 0 {
		list = append(list[:mostSessions], fmt.Sprintf("Conditions changed %d more times; the JSON has them.", more))
	}
	return list
}

// An inSession is a session of an experiment.
type inSession struct {
	experiment string
	number     int
}

// changesBySession are what each session found changed.
func changesBySession(c compare.Comparison) map[inSession]string {
	all := map[inSession]string{}
	for _, s := range c.Sessions {
		all[inSession{s.Experiment, s.Number}] = s.ChangesInWords()
	}
	return all
}

// numberText is the number of a session or a site; runs of another tool have none.
func numberText(number int) string {
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}

// versions are those of the program that measured; several experiments have theirs together.
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
