package runner

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// The reasons why the cases of a block begin again in fresh sites.
var (
	errRetry     = errors.New("a target is not available")
	errPlaceLost = errors.New("a place was lost")
)

// measureBlock measures the cases of a block on targets until each is complete or left out. Cases that failed are
// repeated in fresh sites; if a place was lost, so are all other cases of the block.
func (s *session) measureBlock(ctx context.Context, cases []CaseBlock, on []string) error {
	all := false
	for {
		rest := s.incomplete(cases, on, all)
		if len(rest) == 0 {
			return nil
		}
		switch err := s.measureOnce(ctx, rest, on); {
		case errors.Is(err, errPlaceLost):
			all = true
		case err == nil:
			all = false
		case !errors.Is(err, errRetry):
			return err
		}
	}
}

// incomplete returns the cases that are not complete on one of the targets; with all, every case that is measured
// there.
func (s *session) incomplete(cases []CaseBlock, on []string, all bool) []CaseBlock {
	return slices.DeleteFunc(slices.Clone(cases), func(b CaseBlock) bool {
		names := s.measuredOn(b.Case, on)
		return len(names) == 0 || !all && s.complete(b.Case, b.Block, names)
	})
}

// measuredOn filters the names of targets in on: it returns those of the targets that measure a case.
func (s *session) measuredOn(c result.Case, on []string) []string {
	return slices.DeleteFunc(slices.Clone(on), func(name string) bool { return !s.e.Measures(c, name) })
}

// measureOnce measures each group of cases in fresh sites, and stops at the first place that is lost.
func (s *session) measureOnce(ctx context.Context, cases []CaseBlock, on []string) error {
	for _, group := range s.groupBySites(cases) {
		if err := s.measureInSites(ctx, group, on); err != nil {
			return err
		}
	}
	return nil
}

// groupBySites groups the cases that share sites, in the order of the first case of each group.
func (s *session) groupBySites(cases []CaseBlock) [][]CaseBlock {
	var groups [][]CaseBlock
	index := map[string]int{}
	for _, b := range cases {
		key := s.workloads[b.Case.Name].Traits().Sitting()
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], b)
	}
	return groups
}

// measureInSites opens sites for a group of cases, measures the cases there and closes the sites.
func (s *session) measureInSites(ctx context.Context, cases []CaseBlock, on []string) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	if !s.affordable(cases[0].Case, on, s.durations.SitesOf(cases[0].Case.Name, on)) {
		return errBudget
	}
	sites, err := s.openSites(ctx, cases, on)
	for i := 0; i < len(cases) && err == nil; i++ {
		err = s.measureCase(ctx, cases[i], sites)
	}
	return cmp.Or(s.closeSites(ctx, sites), err)
}

// measureCase measures one case on every target, and repeats it while a run is invalid. After too many failures it
// gives the case up. It returns early if the place of the failed run cannot be used again.
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
		case err != nil || failed == nil || failed.place == placeDoubtful:
			return err
		case failed.place == placeLost:
			return errPlaceLost
		}
	}
}

// A failure is an invalid run because of which an attempt does not count.
type failure struct {
	target, reason string
	place          placeState
}

// A placeState is the state of a place after a failed run, from the best to the worst.
type placeState int

const (
	placeUsable   placeState = iota // it can be used again
	placeDoubtful                   // it could not be made, or the tool failed in it
	placeLost                       // it reported a failure of its own
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
	var pending []*pendingRun
	for i, name := range targets {
		if sites[name] == nil {
			continue // it is measured in another visit
		}
		pending = append(pending, s.newPendingRun(sites[name], result.Run{
			Schema: result.RunSchema, Case: c.Name, Target: name, Block: block, Attempt: number, Slot: i + 1,
			Tool: s.toolOf(s.workloads[c.Name]), Visit: s.visitNumber,
		}))
	}
	if unplaced := slices.DeleteFunc(slices.Clone(pending), (*pendingRun).placed); len(unplaced) > 0 {
		failed, err := s.recordAll(ctx, unplaced)
		if failed != nil || err != nil {
			return failed, err // an attempt does not count without the runs of these targets
		}
		return s.attempt(ctx, c, block, sites) // without what is not supported
	}
	size := 1 // runs at the same time
	if s.e.Design.Parallel {
		size = max(1, len(pending))
	}
	for group := range slices.Chunk(pending, size) {
		group = slices.DeleteFunc(group, func(t *pendingRun) bool { return !s.e.Measures(c, t.run.Target) })
		if len(group) == 0 {
			continue // left out together with the baseline since the order was drawn
		}
		if budget := s.e.Design.Budget; budget > 0 && s.elapsed() >= budget {
			return nil, errBudget
		}
		for _, t := range group {
			s.emit(Event{Kind: RunStarted, Case: c.Name, Target: t.run.Target, Block: block,
				Slot: t.run.Slot, Slots: len(targets)})
		}
		failed, err := s.measureTogether(ctx, group)
		if failed != nil || err != nil {
			return failed, err
		}
	}
	return nil, nil
}
