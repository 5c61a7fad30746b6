package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const factHelp = "`[TARGET:]NAME=VALUE` fact that no measurement tells, of one target or of all, such as " +
	"link-rate=10Gbit/s or limit-iops=2400/s; repeated"

// statedFacts is the flag --fact: facts that users state, as [TARGET:]NAME=VALUE, repeated.
type statedFacts []string

// of returns the stated facts of a target, the last one of each name.
func (t statedFacts) of(target string) []result.Fact {
	var facts []result.Fact
	for _, text := range t {
		own, is := strings.CutPrefix(text, target+":")
		name, value, _ := strings.Cut(own, "=")
		if !is && strings.Contains(name, ":") {
			continue // for another target
		}
		facts = slices.DeleteFunc(facts, func(f result.Fact) bool { return f.Name == name })
		facts = append(facts, result.Fact{Name: name, Value: value})
	}
	return facts
}

// check returns an error about a text that is not a fact, or about an unknown target.
func (t statedFacts) check(targets ...string) error {
	for _, text := range t {
		fact := text
		for _, name := range targets {
			if own, is := strings.CutPrefix(text, name+":"); is {
				fact = own
			}
		}
		name, value, is := strings.Cut(fact, "=")
		switch of, _, foreign := cutLast(name, ":"); {
		case foreign:
			return fmt.Errorf("--fact: there is no target %s; the targets are %s", of, prose.Choices(of, targets))
		case !is || name == "" || value == "" || name == audit.FactStatedByUser:
			return fmt.Errorf("--fact: %q is not NAME=VALUE or TARGET:NAME=VALUE", text)
		}
		if err := checkUnit(name, value); err != nil {
			return fmt.Errorf("--fact: %s: %w", text, err)
		}
	}
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// checkUnit returns an error if a fact is a limit for the audit and its value has the wrong unit.
func checkUnit(name, value string) error {
	want, limits := audit.StatedUnit(name)
	if !limits {
		return nil
	}
	if v, u, err := unit.Parse(value); err != nil || u != want || v <= 0 {
		example := map[unit.Unit]string{unit.BitPerSecond: "10Gbit/s or 112MB/s", unit.PerSecond: "2400/s"}[want]
		return errors.New("it is a number above 0 with its unit, such as " + example)
	}
	return nil
}

// statedFact returns a fact that lists the names of the facts that a user stated.
func statedFact(given []result.Fact) result.Fact {
	var names []string
	for _, f := range given {
		names = append(names, f.Name)
	}
	return result.Fact{Name: audit.FactStatedByUser, Value: strings.Join(names, ", ")}
}

// A statedSink is a sink that replaces collected facts of targets by those that the user stated.
type statedSink struct {
	runner.Sink
	facts statedFacts
}

func (s statedSink) WriteFacts(target string, facts []result.Fact) error {
	given := s.facts.of(target)
	if len(given) == 0 {
		return s.Sink.WriteFacts(target, facts)
	}
	all := slices.DeleteFunc(slices.Clone(facts), func(f result.Fact) bool {
		return slices.ContainsFunc(given, func(g result.Fact) bool { return g.Name == f.Name })
	})
	return s.Sink.WriteFacts(target, append(append(all, given...), statedFact(given)))
}
