package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// measureTogether measures a group of runs of one case at the same time, each on its own target, and records them one
// after another. It returns the failure with the worst effect on its place; nil if none failed.
func (s *session) measureTogether(ctx context.Context, group []*pendingRun) (*failure, error) {
	began := s.Clock.Now()
	s.Clock.Sleep(ctx, s.Limits.Idle)
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	var all sync.WaitGroup
	for _, t := range group {
		all.Go(func() { s.measure(ctx, t, began) })
	}
	all.Wait()
	return s.recordAll(ctx, group)
}

// recordAll records the outcome of each run of a group. Runs that ended are recorded even if another was interrupted.
// It returns the failure with the worst effect on its place.
func (s *session) recordAll(ctx context.Context, group []*pendingRun) (failed *failure, err error) {
	var window float64
	for _, t := range group {
		window = max(window, t.run.Window)
		f, failedWith := s.finishRun(ctx, t)
		if failed == nil || f != nil && f.place > failed.place {
			failed = f
		}
		if err == nil || errors.Is(err, errInterrupted) && failedWith != nil {
			err = failedWith
		}
	}
	s.summary.Measuring += window
	if err != nil {
		return nil, err
	}
	return failed, nil
}

// finishRun records a run and returns its failure, if any. A run that was interrupted or is not supported is not
// recorded.
func (s *session) finishRun(ctx context.Context, t *pendingRun) (*failure, error) {
	r := &t.run
	switch {
	case t.err != nil && ctx.Err() != nil:
		return nil, errInterrupted
	case errors.Is(t.err, result.ErrNotSupported):
		return nil, s.notSupported(r.Target, r.Case, t.err)
	case t.err != nil:
		r.Invalid = append(r.Invalid, result.Warning{Code: result.Failed, Text: t.err.Error()})
	case r.Valid():
		of, _ := s.e.Case(r.Case)
		r.Invalid = append(s.checkMainMetric(of, *r), s.Check(of, *r)...)
	}
	if err := s.record(*r, t.raw, t.took); err != nil {
		return nil, err
	}
	if !r.Valid() {
		return &failure{r.Target, r.Invalid[0].Text, t.placeState()}, nil
	}
	return nil, nil
}

// checkDisjoint returns an error if two of the targets share a resource, so that they cannot be measured at the same
// time.
func checkDisjoint(ctx context.Context, all []Target) error {
	if len(all) < 2 {
		return fmt.Errorf("%w: --parallel: there is one target, and nothing that it could be measured at the same time as",
			ErrOption)
	}
	users := map[string]string{} // target, by resource
	for _, t := range all {
		sharer, is := t.Places.(targets.Sharer)
		if !is {
			return fmt.Errorf("%w: --parallel: %s does not say what it shares with other targets", ErrOption, t.Name)
		}
		used, err := sharer.Shares(ctx)
		if err != nil {
			return fmt.Errorf("%w: --parallel: what %s shares with other targets is not known: %w", ErrOption, t.Name, err)
		}
		for _, what := range used {
			if other, twice := users[what]; twice && other != t.Name {
				return fmt.Errorf("%w: --parallel: %s and %s both use %s, and would disturb each other; leave --parallel out",
					ErrOption, other, t.Name, what)
			}
			users[what] = t.Name
		}
	}
	return nil
}
