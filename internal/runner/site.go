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

// A site is what the cases of a sitting have on a target.
type site struct {
	targets.Site
	record     result.Site
	placements []targets.Placement // of its places, in that order
	err        error               // why there is none
	limits     struct{ open, close time.Duration }
}

// sites are those of a sitting, by target.
type sites map[string]*site

// place is what a case has in a site.
func (s *site) place(p targets.Placement) targets.Place {
	if s.err != nil {
		return targets.Place{Err: s.err}
	}
	return s.Places[slices.Index(s.placements, p)]
}

// openAtOnce is how many targets make their sites at the same time. More would not be faster where they share machines,
// and starting some hundred pods at once has made a control plane miss its own deadlines.
const openAtOnce = 4

// open makes a site for cases on every one of the targets that they are measured on, a few at the same time. An error
// is the end of ctx or about a target that is not available; the sites are to be closed all the same.
func (s *session) open(ctx context.Context, cases []CaseBlock, on []string) (sites, error) {
	all := sites{}
	s.asleep = s.Clock.Asleep()
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
			s.openOne(ctx, s.targets[name], one)
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
			return all, s.absent(ctx, one)
		}
	}
	s.absences = 0
	return all, nil
}

// newSite is what the cases need on a target; nil if they are not measured there.
func (s *session) newSite(name string, cases []CaseBlock) *site {
	one := &site{record: result.Site{Schema: result.SiteSchema, Target: name, Block: cases[0].Block}}
	one.limits.open, one.limits.close = s.Limits.Open, s.Limits.Close
	for _, b := range cases {
		if !s.e.Measures(b.Case, name) {
			continue
		}
		w := s.workloads[b.Case.Name]
		if p := s.placement(w, b.Block); !slices.Contains(one.placements, p) {
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

func (s *session) openOne(ctx context.Context, t targets.Target, one *site) {
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

// absent says whether to wait longer for a target that was not available as many times in a row.
func (s *session) absent(ctx context.Context, one *site) error {
	s.absences++
	s.emit(Event{Kind: SiteFailed, Target: one.record.Target, Block: one.record.Block, Reason: one.err.Error()})
	if s.absences < s.Limits.Attempts {
		s.Clock.Sleep(ctx, s.Limits.Absence)
		return errAbsent
	}
	s.summary.Unavailable = one.record.Target + ": " + one.err.Error()
	return errUnavailable
}

// close removes all sites at the same time, also when ctx has ended, and records them.
func (s *session) close(ctx context.Context, all sites) error {
	var closing sync.WaitGroup
	for _, one := range all {
		if one.err == nil {
			closing.Go(func() { s.closeOne(context.WithoutCancel(ctx), one) })
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

func (s *session) closeOne(ctx context.Context, one *site) {
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
		one.record.Warnings = append(one.record.Warnings, result.Warning{Code: result.PlacesLeft, Text: text})
	}
	one.record.Cleanup = s.since(began)
	if one.Spent != nil {
		one.record.Values = one.Spent()
	}
}
