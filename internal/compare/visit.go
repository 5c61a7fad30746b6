package compare

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Visit is a visit that found its target changed since the previous one.
type Visit struct {
	Experiment string   `json:"experiment"` // id
	Number     int      `json:"visit"`      // of its switch, from 1
	Target     string   `json:"target"`
	Block      int      `json:"block"`
	Changes    []Change `json:"changes"`
	Sentence   string   `json:"sentence"` // the changes in words
}

// measuredVisits returns the switches whose visits have runs, in the order in which they were made.
func measuredVisits(r result.Results) []result.Switch {
	has := map[int]bool{}
	for _, run := range r.Runs {
		has[run.Visit] = true
	}
	var list []result.Switch
	for _, s := range r.Switches {
		if s.Target != "" && has[s.Number] {
			list = append(list, s)
		}
	}
	return list
}

// visitsOf returns the visits that found their target changed.
func visitsOf(r result.Results) []Visit {
	var list []Visit
	before := map[string]result.Switch{}
	for _, s := range measuredVisits(r) {
		last, again := before[s.Target]
		before[s.Target] = s
		if !again {
			continue
		}
		now := changes(visitAsSession(last), visitAsSession(s))
		if len(now) == 0 {
			continue
		}
		list = append(list, Visit{
			Experiment: r.Experiment.ID, Number: s.Number, Target: s.Target, Block: s.Block, Changes: now,
			Sentence: fmt.Sprintf("Conditions changed between the visits of blocks %d and %d: %s. The verdicts rest on the "+
				"runs of both.", last.Block, s.Block, changesInWords(now)),
		})
	}
	return list
}

// visitAsSession returns a visit as a session of one target, numbered by its block.
func visitAsSession(s result.Switch) result.Session {
	return result.Session{Number: s.Block, Start: s.Start, Facts: map[string][]result.Fact{s.Target: s.Facts}}
}
