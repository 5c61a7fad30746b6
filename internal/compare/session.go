package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Session is one start of the program in an experiment that was resumed.
type Session struct {
	Experiment string    `json:"experiment"` // id; with several experiments, the label
	Number     int       `json:"session"`    // from 1
	Start      time.Time `json:"start"`
	Version    string    `json:"version"`            // of the program
	Runs       int       `json:"runs"`               // runs measured in it, including invalid ones; at least one
	Changes    []Change  `json:"changes"`            // since the previous session in the list
	Sentence   string    `json:"sentence,omitempty"` // the changes in words; left out if there are none
}

// A Change is a fact that differs between two sessions or visits.
type Change struct {
	Target string `json:"target,omitempty"` // left out of changes of the program itself
	Fact   string `json:"fact"`
	Before string `json:"before"`
	Now    string `json:"now"`
}

// programFact is the name under which the program's version is listed as a fact.
const programFact = "knotmeter"

// volatileFacts describe a moment, not a condition, and are not reported as changes.
var volatileFacts = []string{"volume-used", "volume-free"}

// sessionsOf returns the sessions with runs, each with the changes since the one before; nil if there are fewer than
// two.
func sessionsOf(r result.Results) []Session {
	var list []Session
	measured, runs := measuredSessions(r)
	if len(measured) < 2 {
		return nil
	}
	for i, s := range measured {
		now := Session{Experiment: r.Experiment.ID, Number: s.Number, Start: s.Start,
			Version: s.Version, Runs: runs[s.Number], Changes: []Change{}}
		if i > 0 {
			now.Changes = append(now.Changes, changes(measured[i-1], s)...)
		}
		if len(now.Changes) > 0 {
			now.Sentence = fmt.Sprintf("Conditions changed between sessions %d and %d (from %s on, %s): %s. The verdicts "+
				"rest on the runs of both.",
				measured[i-1].Number, s.Number, s.Start.UTC().Format("2006-01-02 15:04 UTC"), unit.Plural(now.Runs,
					"run"), now.ChangesInWords())
		}
		list = append(list, now)
	}
	return list
}

// measuredSessions returns the sessions with runs, and the number of runs by session.
func measuredSessions(r result.Results) (list []result.Session, runs map[int]int) {
	runs = map[int]int{}
	for _, run := range r.Runs {
		runs[run.Session]++
	}
	for _, s := range r.Sessions {
		if runs[s.Number] > 0 {
			list = append(list, s)
		}
	}
	return list, runs
}

// ChangesSince describes in words what has changed in a new session since the last session with runs; "" if nothing
// has.
func ChangesSince(r result.Results, now result.Session) string {
	measured, _ := measuredSessions(r)
	if len(measured) == 0 {
		return ""
	}
	return changesInWords(changes(measured[len(measured)-1], now))
}

// changes lists what differs between two sessions: the program's version, and the facts of the targets that both have.
func changes(before, now result.Session) []Change {
	var list []Change
	if before.Version != now.Version {
		list = append(list, Change{Fact: programFact, Before: before.Version, Now: now.Version})
	}
	for _, target := range slices.Sorted(maps.Keys(now.Facts)) {
		old, both := before.Facts[target]
		if !both {
			continue
		}
		for _, d := range differences(old, now.Facts[target]) {
			if !slices.Contains(volatileFacts, d.Fact) {
				list = append(list, Change{Target: target, Fact: d.Fact, Before: d.Baseline, Now: d.Target})
			}
		}
	}
	return list
}

// ChangesInWords describes the changes; one that several targets share appears once.
func (s Session) ChangesInWords() string { return changesInWords(s.Changes) }

// mostChanges is the maximum number of changes in a sentence.
const mostChanges = 8

func changesInWords(list []Change) string {
	var words []string
	targets := map[string][]string{}
	for _, c := range list {
		text := fmt.Sprintf("%s from %s to %s", c.Fact, c.Before, c.Now)
		if !slices.Contains(words, text) {
			words = append(words, text)
		}
		if c.Target != "" {
			targets[text] = append(targets[text], c.Target)
		}
	}
	for i, text := range words {
		if on := targets[text]; len(on) > 0 {
			words[i] = text + " on " + prose.Enumerate(on)
		}
	}
	if more := len(words) - mostChanges; more > 0 {
		words = append(words[:mostChanges], fmt.Sprintf("and %d more, which the JSON has", more))
	}
	return strings.Join(words, "; ")
}

// FactsOverSessions returns the facts of the targets over all sessions with runs, or all visits. A fact that changed
// has every value, each with the session, or the block of the visit, from which it holds.
func FactsOverSessions(r result.Results) map[string][]result.Fact {
	measured, _ := measuredSessions(r)
	unit := "session"
	if r.Experiment.InTurn() {
		measured, unit = nil, "block"
		for _, s := range measuredVisits(r) {
			measured = append(measured, visitAsSession(s))
		}
	}
	all := maps.Clone(r.Facts)
	for target, facts := range all {
		if values := valuesOver(measured, unit, target, facts); len(values) > 0 {
			kept := slices.DeleteFunc(slices.Clone(facts), func(f result.Fact) bool { return values[f.Name] != "" })
			for _, name := range slices.Sorted(maps.Keys(values)) {
				kept = append(kept, result.Fact{Name: name, Value: values[name]})
			}
			all[target] = kept
		}
	}
	return all
}

// valuesOver returns, by name, those facts of a target that changed over the sessions, each with all its values: "1500,
// from session 2 on 9000". unit is the word before the number: session or block. recorded holds the facts of the target
// as first recorded. Facts that the user stated hold for all sessions, whatever was found.
func valuesOver(sessions []result.Session, unit, target string, recorded []result.Fact) map[string]string {
	values, stated := map[string]string{}, audit.StatedByUser(recorded)
	before := result.Session{Facts: map[string][]result.Fact{target: recorded}}
	first := true
	for _, s := range sessions {
		if _, found := s.Facts[target]; !found {
			continue
		}
		for _, c := range changes(before, s) {
			switch {
			case c.Target != target || c.Fact == audit.FactStatedByUser || slices.Contains(stated, c.Fact):
			case first: // the recorded value is of an earlier session, which has no runs
				values[c.Fact] = c.Now
			default:
				values[c.Fact] = cmp.Or(values[c.Fact], c.Before) + fmt.Sprintf(", from %s %d on %s", unit, s.Number, c.Now)
			}
		}
		before, first = s, false
	}
	return values
}
