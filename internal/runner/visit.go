package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A visitError is why a visit ended before its first run: its switch failed, or the target was not ready after it.
type visitError struct{ error }

func (e visitError) Unwrap() error { return e.error }

// visits measures the cases of a block on one target after another, each in a visit of its own. A target of which a
// visit failed is visited again after the others.
func (s *session) visits(ctx context.Context, cases []CaseBlock) error {
	block, failed := cases[0].Block, map[string]int{}
	for {
		waiting := slices.DeleteFunc(Visits(s.e, block), func(name string) bool {
			return len(s.incomplete(cases, []string{name}, false)) == 0
		})
		if len(waiting) == 0 {
			return nil
		}
		for _, name := range waiting {
			err := s.visit(ctx, name, s.incomplete(cases, []string{name}, false))
			if failure, is := errors.AsType[visitError](err); is {
				failed[name]++
				err = s.notInPlace(name, block, failed[name], failure)
			}
			if err != nil {
				return err
			}
		}
	}
}

// visit puts a target in place and measures cases there.
func (s *session) visit(ctx context.Context, name string, cases []CaseBlock) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	first, on := cases[0], []string{name}
	if !s.affordable(first.Case, on, s.durations.Switch(name)+s.durations.Sit(first.Case.Name, on)) {
		return errBudget
	}
	if err := s.putInPlace(ctx, name, first.Block); err != nil {
		return err
	}
	return s.block(ctx, cases, on)
}

// notInPlace gives a target up that cannot be measured, or of which as many visits of a block failed as are allowed.
// Without the baseline nothing can be compared: then the experiment ends, and goes on when it is resumed.
func (s *session) notInPlace(name string, block, failed int, err error) error {
	switch {
	case errors.Is(err, result.ErrNotSupported) && name != s.e.Baseline:
		return s.leaveOut(name, "*", err.Error())
	case failed < s.Limits.Visits:
		return nil
	case name == s.e.Baseline:
		s.summary.Unavailable = fmt.Sprintf("%s, %d failed visits in block %d: %v", name, failed, block, err)
		return errUnavailable
	}
	s.summary.GivenUp++
	return s.leaveOut(name, "*", fmt.Sprintf("given up after %d failed visits in block %d, at last because %v",
		failed, block, err))
}

// putInPlace runs the switch of a target, waits until the target is ready, and records both with the facts that it
// finds.
func (s *session) putInPlace(ctx context.Context, name string, block int) error {
	i := slices.IndexFunc(s.e.Targets, func(t result.Target) bool { return t.Name == name })
	began := s.Clock.Now()
	record := result.Switch{Schema: result.SwitchSchema, Target: name, Block: block, Start: began.UTC()}
	s.emit(Event{Kind: SwitchStarted, Target: name, Block: block})
	var err error
	if c := s.e.Targets[i].Switch; c != nil {
		s.displaced, s.last = true, name
		record.Output, err = s.command(ctx, *c, name)
	}
	ended := s.Clock.Now()
	record.Took = ended.Sub(began).Seconds()
	if err == nil {
		record.Facts, err = s.ready(ctx, name)
		record.Ready = s.since(ended)
	}
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
		record.Failed = err.Error()
	case err != nil:
		record.Failed = err.Error()
		err = visitError{err}
	case s.found[name]:
	default:
		if err := s.Sink.WriteFacts(name, record.Facts); err != nil {
			return err
		}
		s.found[name] = true
	}
	number, unwritten := s.Sink.WriteSwitch(record)
	if unwritten != nil {
		return unwritten
	}
	s.visiting = number
	s.durations.AddSwitch(record)
	switch {
	case err == nil:
		s.emit(Event{Kind: SwitchDone, Target: name, Block: block})
	case ctx.Err() == nil:
		s.emit(Event{Kind: SwitchFailed, Target: name, Block: block, Reason: record.Failed})
	}
	return err
}

// ready waits until a target is ready, which its own check and that of a site tell, and returns its facts.
func (s *session) ready(ctx context.Context, name string) ([]result.Fact, error) {
	limited, cancel := context.WithTimeout(ctx, s.Limits.Ready)
	defer cancel()
	var last error
	for {
		facts, err := s.settled(limited, s.targets[name])
		switch {
		case err == nil || errors.Is(err, result.ErrNotSupported):
			return facts, err
		case limited.Err() != nil:
			if last == nil {
				last = err
			}
			return nil, fmt.Errorf("it was not ready %v after its switch: %w", s.Limits.Ready, last)
		}
		last = err
		s.Clock.Sleep(limited, s.Limits.Absence)
	}
}

// settled returns the facts of a target that is ready, as it is now.
func (s *session) settled(ctx context.Context, t targets.Target) ([]result.Fact, error) {
	if c, is := t.(targets.Switched); is {
		if err := c.Settle(ctx); err != nil {
			return nil, err
		}
	}
	return Facts(ctx, t, s.Limits.Facts)
}

// restore puts the testbed back after the last visit, also when ctx has ended, and records that. An error is about the
// sink.
func (s *session) restore(ctx context.Context) error {
	if !s.displaced {
		return nil
	}
	c := s.e.Restore
	if c == nil {
		s.summary.Warnings = append(s.summary.Warnings, "the testbed stays as the switch of "+s.last+
			" left it: no command restores it")
		return nil
	}
	s.emit(Event{Kind: RestoreStarted, Reason: c.Text})
	began := s.Clock.Now()
	record := result.Switch{Schema: result.SwitchSchema, Start: began.UTC()}
	var err error
	if record.Output, err = s.command(context.WithoutCancel(ctx), *c, s.last); err != nil {
		record.Failed = err.Error()
		s.summary.NotRestored = record.Failed
	}
	s.displaced = err != nil
	record.Took = s.since(began)
	_, err = s.Sink.WriteSwitch(record)
	return err
}

// noteSwitch remembers one of an earlier session.
func (s *session) noteSwitch(r result.Switch) {
	if r.Target == "" {
		s.displaced = r.Failed != ""
		return
	}
	i := slices.IndexFunc(s.e.Targets, func(t result.Target) bool { return t.Name == r.Target })
	if i >= 0 && s.e.Targets[i].Switch != nil {
		s.displaced, s.last = true, r.Target
	}
	s.durations.AddSwitch(r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
