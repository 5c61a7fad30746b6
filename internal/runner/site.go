package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A site is the site of a group of cases on one target, with its record.
type site struct {
	targets.Site
	record     result.Site
	placements []targets.Placement // of Site.Places, in the same order
	err        error               // why the site could not be opened
	limits     struct{ open, close time.Duration }
}

// sites are the sites of a group of cases, by target.
type sites map[string]*site

// place returns the place for a placement; its Err is set if the site could not be opened.
func (s *site) place(p targets.Placement) targets.Place {
	if s.err != nil {
		return targets.Place{Err: s.err}
	}
	return s.Places[slices.IndexFunc(s.placements, p.Equal)]
}

// openAtOnce is the number of targets that open sites at the same time. More is not faster on shared machines, and
// starting some hundred pods at once has made a control plane miss its own deadlines.
const openAtOnce = 4

// openSites opens a site for the cases on each target that measures one of them, a few at the same time. An error means
// that ctx ended or a target is unavailable; the sites must be closed even then.
func (s *session) openSites(ctx context.Context, cases []CaseBlock, on []string) (sites, error) {
	all := sites{}
	s.asleepAtOpen = s.Clock.Asleep()
	for _, name := range on {
		if one := s.newSite(name, cases); one != nil {
			all[name] = one
		}
	}
	var opening sync.WaitGroup
	turns := make(chan struct{}, openAtOnce)
	for name, one := range all {
		opening.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			s.openSite(ctx, s.targets[name], one)
		})
	}
	opening.Wait()
	for _, name := range s.e.TargetNames() {
		one := all[name]
		switch {
		case one == nil:
		case ctx.Err() != nil:
			return all, errInterrupted
		case errors.Is(one.err, targets.ErrUnavailable):
			return all, s.retryLater(ctx, one)
		}
	}
	s.retries = 0
	return all, nil
}

// newSite returns a numbered site for the cases on a target, not opened yet; nil if none of them is measured there.
func (s *session) newSite(name string, cases []CaseBlock) *site {
	one := &site{record: result.Site{Schema: result.SiteSchema, Target: name, Block: cases[0].Block}}
	one.limits.open, one.limits.close = s.Limits.Open, s.Limits.Close
	for _, b := range cases {
		if !s.e.Measures(b.Case, name) {
			continue
		}
		w := s.workloads[b.Case.Name]
		if p := s.placement(w, b.Block); !slices.ContainsFunc(one.placements, p.Equal) {
			one.placements = append(one.placements, p)
		}
		own := w.Traits().Limits
		one.limits.open = max(one.limits.open, s.Limits.Open+own.Open)
		one.limits.close = max(one.limits.close, s.Limits.Close+own.Close)
	}
	if len(one.placements) == 0 {
		return nil
	}
	s.lastSite++
	one.record.Number = s.lastSite
	return one
}

func (s *session) openSite(ctx context.Context, t targets.Target, one *site) {
	began := s.Clock.Now()
	one.record.Start = began.UTC()
	limited, cancel := context.WithTimeout(ctx, one.limits.open)
	defer cancel()
	one.Site, one.err = t.Open(limited, one.placements)
	if one.err != nil && limited.Err() != nil && ctx.Err() == nil {
		one.err = fmt.Errorf("making a site took longer than %v: %w", one.limits.open, one.err)
	}
	one.record.Setup = s.since(began)
}

// retryLater waits before the next attempt to open a site on an unavailable target and returns errRetry, or
// errUnavailable after the last attempt.
func (s *session) retryLater(ctx context.Context, one *site) error {
	s.retries++
	s.emit(Event{Kind: SiteFailed, Target: one.record.Target, Block: one.record.Block, Reason: one.err.Error()})
	if s.retries < s.Limits.Attempts {
		s.Clock.Sleep(ctx, s.Limits.RetryPause)
		return errRetry
	}
	s.summary.Unavailable = one.record.Target + ": " + one.err.Error()
	return errUnavailable
}

// closeSites removes all sites at the same time, even if ctx has ended, and records them.
func (s *session) closeSites(ctx context.Context, all sites) error {
	var closing sync.WaitGroup
	for _, one := range all {
		if one.err == nil {
			closing.Go(func() { s.closeSite(context.WithoutCancel(ctx), one) })
		}
	}
	closing.Wait()
	for _, name := range s.e.TargetNames() {
		one := all[name]
		if one == nil || one.err != nil {
			continue
		}
		for _, w := range one.record.Warnings {
			s.summary.Warnings = append(s.summary.Warnings, one.record.Target+": "+w.Text)
		}
		if err := s.Sink.WriteSite(one.record); err != nil {
			return err
		}
		s.durations.AddSite(one.record)
	}
	return nil
}

func (s *session) closeSite(ctx context.Context, one *site) {
	began := s.Clock.Now()
	one.record.Used = began.Sub(one.record.Start).Seconds() - one.record.Setup
	err := errors.New("the target gave no way to remove it")
	if one.Close != nil {
		limited, cancel := context.WithTimeout(ctx, one.limits.close)
		defer cancel()
		err = one.Close(limited)
	}
	if err != nil {
		text := fmt.Sprintf("removing the site of block %d: %v", one.record.Block, err)
		one.record.Warnings = append(one.record.Warnings, result.Warning{Code: result.SiteNotRemoved, Text: text})
	}
	one.record.Cleanup = s.since(began)
	if one.Spent != nil {
		one.record.Values = one.Spent()
	}
}
