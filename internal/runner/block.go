package runner

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Why a block begins again: a site could not be opened yet, or a place was lost in which others had measured too.
var (
	errAbsent = errors.New("a target is not available")
	errLost   = errors.New("a place was lost")
)

// block measures the cases of a block on targets until each is complete or left out: all in the same sites, and again
// in fresh ones what failed there. Where a place was lost, what had been measured beside it is measured again too.
func (s *session) block(ctx context.Context, cases []CaseBlock, on []string) error {
	all := false
	for {
		rest := s.incomplete(cases, on, all)
		if len(rest) == 0 {
			return nil
		}
		switch err := s.pass(ctx, rest, on); {
		case errors.Is(err, errLost):
			all = true
		case err == nil:
			all = false
		case !errors.Is(err, errAbsent):
			return err
		}
	}
}

// incomplete are those of the cases that are still to be measured on one of the targets; with all, the others that are
// measured there too.
func (s *session) incomplete(cases []CaseBlock, on []string, all bool) []CaseBlock {
	return slices.DeleteFunc(slices.Clone(cases), func(b CaseBlock) bool {
		names := s.measuredOn(b.Case, on)
		return len(names) == 0 || !all && s.complete(b.Case, b.Block, names)
	})
}

// measuredOn are those of the targets that a case is measured on.
func (s *session) measuredOn(c result.Case, on []string) []string {
	return slices.DeleteFunc(slices.Clone(on), func(name string) bool { return !s.e.Measures(c, name) })
}

// pass measures cases once, in the sites that they share and in those that some have for themselves, up to the first
// place that is lost.
func (s *session) pass(ctx context.Context, cases []CaseBlock, on []string) error {
	for _, sitting := range s.sittings(cases) {
		if err := s.sit(ctx, sitting, on); err != nil {
			return err
		}
	}
	return nil
}

// sittings are the cases that are measured in the same sites, in their order. They stand where the first of their cases
// does.
func (s *session) sittings(cases []CaseBlock) [][]CaseBlock {
	var list [][]CaseBlock
	at := map[string]int{}
	for _, b := range cases {
		sitting := s.workloads[b.Case.Name].Traits().Sitting()
		i, begun := at[sitting]
		if !begun {
			i = len(list)
			at[sitting], list = i, append(list, nil)
		}
		list[i] = append(list[i], b)
	}
	return list
}

// sit measures cases in sites that are opened for them on targets, and removed again.
func (s *session) sit(ctx context.Context, cases []CaseBlock, on []string) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	if !s.affordable(cases[0].Case, on, s.durations.Sit(cases[0].Case.Name, on)) {
		return errBudget
	}
	sites, err := s.open(ctx, cases, on)
	for i := 0; i < len(cases) && err == nil; i++ {
		err = s.measureCase(ctx, cases[i], sites)
	}
	return cmp.Or(s.close(ctx, sites), err)
}

// measureCase measures one case on every target, again while a run of it is not valid. It gives up what failed too
// often, and leaves what failed for want of a sound place to fresh sites.
func (s *session) measureCase(ctx context.Context, b CaseBlock, sites sites) error {
	c, block := b.Case, b.Block
	on := slices.Sorted(maps.Keys(sites))
	for {
		if failures := s.failures(c, block, on); len(failures) >= s.Limits.Attempts {
			if err := s.giveUp(c.Name, block, failures); err != nil {
				return err
			}
		}
		if !s.affordable(c, on, 0) {
			return errBudget
		}
		// An attempt that ends without a failed target is complete, or has no target left.
		failed, err := s.attempt(ctx, c, block, sites)
		switch {
		case err != nil || failed == nil || failed.place == suspect:
			return err
		case failed.place == gone:
			return errLost
		}
	}
}

// A failure is why an attempt at a block did not count.
type failure struct {
	target, reason string
	place          condition
}

// A condition is what a failed run says of its place.
type condition int

const (
	sound   condition = iota // it can be used again
	suspect                  // the run had none, or broke down in it
	gone                     // something has become of it
)

// attempt measures a case on one target after the other, or on all at the same time, and stops at the first run that
// fails.
func (s *session) attempt(ctx context.Context, c result.Case, block int, sites sites) (*failure, error) {
	number := 1
	for _, r := range s.runsOf(c, block) {
		if !s.e.InTurn() || sites[r.Target] != nil { // in turn, each target has attempts of its own
			number = max(number, r.Attempt+1)
		}
	}
	targets := Order(s.e, c, block, number)
	var trials []*trial
	for i, name := range targets {
		if sites[name] == nil {
			continue // it has another turn
		}
		trials = append(trials, s.newTrial(sites[name], result.Run{
			Schema: result.RunSchema, Case: c.Name, Target: name, Block: block, Attempt: number, Slot: i + 1,
			Tool: s.toolOf(s.workloads[c.Name]), Visit: s.visiting,
		}))
	}
	if unplaced := slices.DeleteFunc(slices.Clone(trials), (*trial).placed); len(unplaced) > 0 {
		failed, err := s.conclude(ctx, unplaced)
		if failed != nil || err != nil {
			return failed, err // the runs of the others would be alone
		}
		return s.attempt(ctx, c, block, sites) // without what is not supported
	}
	size := 1
	if s.e.Design.Parallel {
		size = max(1, len(trials))
	}
	for group := range slices.Chunk(trials, size) {
		group = slices.DeleteFunc(group, func(t *trial) bool { return !s.e.Measures(c, t.run.Target) })
		if len(group) == 0 {
			continue // left out since the order was drawn, with the baseline
		}
		if budget := s.e.Design.Budget; budget > 0 && s.elapsed() >= budget {
			return nil, errBudget
		}
		for _, t := range group {
			s.emit(Event{Kind: RunStarted, Case: c.Name, Target: t.run.Target, Block: block,
				Slot: t.run.Slot, Slots: len(targets)})
		}
		failed, err := s.together(ctx, group)
		if failed != nil || err != nil {
			return failed, err
		}
	}
	return nil, nil
}
