package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// together makes runs of one case at the same time, each on a target of its own, and records them one after another. It
// returns the first run that failed.
func (s *session) together(ctx context.Context, group []*trial) (*failure, error) {
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
	return s.conclude(ctx, group)
}

// conclude records what became of each of a group's runs. Those that ended are recorded also when another one was
// interrupted: they happened.
func (s *session) conclude(ctx context.Context, group []*trial) (failed *failure, err error) {
	var window float64
	for _, t := range group {
		window = max(window, t.run.Window)
		f, ended := s.end(ctx, t)
		if failed == nil || f != nil && f.place > failed.place {
			failed = f
		}
		if err == nil || errors.Is(err, errInterrupted) && ended != nil {
			err = ended
		}
	}
	s.summary.Measuring += window
	if err != nil {
		return nil, err
	}
	return failed, nil
}

// end records a run, or says why there is none.
func (s *session) end(ctx context.Context, t *trial) (*failure, error) {
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
		r.Invalid = append(s.judgeable(of, *r), s.Check(of, *r)...)
	}
	if err := s.record(*r, t.raw, t.took); err != nil {
		return nil, err
	}
	if !r.Valid() {
		return &failure{r.Target, r.Invalid[0].Text, t.condition()}, nil
	}
	return nil, nil
}

// disjoint says why targets cannot be measured at the same time, if they cannot.
func disjoint(ctx context.Context, all []Target) error {
	if len(all) < 2 {
		return fmt.Errorf("%w: --parallel: there is one target, and nothing that it could be measured at the same time as",
			ErrOption)
	}
	users := map[string]string{}
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
