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

// A visitError is an error of a visit before its first run: its switch failed, or the target was not ready after it.
type visitError struct{ error }

func (e visitError) Unwrap() error { return e.error }

// measureVisits measures the cases of a block on one target after another, each in its own visit. A target whose visit
// failed is visited again after the others.
func (s *session) measureVisits(ctx context.Context, cases []CaseBlock) error {
	block, failed := cases[0].Block, map[string]int{}
	for {
		waiting := slices.DeleteFunc(Visits(s.e, block), func(name string) bool {
			return len(s.incomplete(cases, []string{name}, false)) == 0
		})
		if len(waiting) == 0 {
			return nil
		}
		for _, name := range waiting {
			err := s.measureVisit(ctx, name, s.incomplete(cases, []string{name}, false))
			if failure, is := errors.AsType[visitError](err); is {
				failed[name]++
				err = s.handleFailedVisit(name, block, failed[name], failure)
			}
			if err != nil {
				return err
			}
		}
	}
}

// measureVisit switches to a target and measures cases there.
func (s *session) measureVisit(ctx context.Context, name string, cases []CaseBlock) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	first, on := cases[0], []string{name}
	switching := s.durations.Switch(name)
	if other := s.displacedBy(name, first.Block); other != "" {
		switching += s.durations.Switch(other)
	}
	if !s.affordable(first.Case, on, switching+s.durations.SitesOf(first.Case.Name, on)) {
		return errBudget
	}
	if err := s.install(ctx, name, first.Block); err != nil {
		return err
	}
	return s.measureBlock(ctx, cases, on)
}

// handleFailedVisit gives up a target that is not supported or whose visits in a block failed too often. If that is the
// baseline, nothing can be compared: the experiment ends, and can be resumed.
func (s *session) handleFailedVisit(name string, block, failed int, err error) error {
	switch {
	case errors.Is(err, result.ErrNotSupported) && name != s.e.Baseline:
		return s.leaveOut(name, "*", err.Error())
	case failed < s.Limits.FailedVisits:
		return nil
	case name == s.e.Baseline:
		s.summary.Unavailable = fmt.Sprintf("%s, %d failed visits in block %d: %v", name, failed, block, err)
		return errUnavailable
	}
	s.summary.GivenUp++
	return s.leaveOut(name, "*", fmt.Sprintf("given up after %d failed visits in block %d, at last because %v",
		failed, block, err))
}

// switchTo runs the switch of a target, waits until the target is ready, and records both with the target's facts.
func (s *session) switchTo(ctx context.Context, name string, block int) error {
	i := slices.IndexFunc(s.e.Targets, func(t result.Target) bool { return t.Name == name })
	began := s.Clock.Now()
	record := result.Switch{Schema: result.SwitchSchema, Target: name, Block: block, Start: began.UTC()}
	s.emit(Event{Kind: SwitchStarted, Target: name, Block: block})
	var err error
	if c := s.e.Targets[i].Switch; c != nil {
		if err := s.Sink.BeginSwitch(record); err != nil {
			return err
		}
		s.needsRestore, s.lastSwitched = true, name
		record.Output, err = s.runCommand(ctx, *c, name)
	}
	ended := s.Clock.Now()
	record.Took = ended.Sub(began).Seconds()
	if err == nil {
		record.Facts, err = s.waitUntilReady(ctx, name)
		record.Ready = s.since(ended)
	}
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
		record.Failed = err.Error()
	case err != nil:
		record.Failed = err.Error()
		err = visitError{err}
	case s.factsKnown[name]:
	default:
		if err := s.Sink.WriteFacts(name, record.Facts); err != nil {
			return err
		}
		s.factsKnown[name] = true
	}
	number, unwritten := s.Sink.WriteSwitch(record)
	if unwritten != nil {
		return unwritten
	}
	s.visitNumber = number
	s.durations.AddSwitch(record)
	switch {
	case err == nil:
		s.emit(Event{Kind: SwitchDone, Target: name, Block: block})
	case ctx.Err() == nil:
		s.emit(Event{Kind: SwitchFailed, Target: name, Block: block, Reason: record.Failed})
	}
	return err
}

// waitUntilReady waits until a target is ready after its switch, and returns its facts.
func (s *session) waitUntilReady(ctx context.Context, name string) ([]result.Fact, error) {
	limited, cancel := context.WithTimeout(ctx, s.Limits.Ready)
	defer cancel()
	var last error
	for {
		facts, err := s.settledFacts(limited, s.targets[name])
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
		s.Clock.Sleep(limited, s.Limits.RetryPause)
	}
}

// settledFacts returns the current facts of a target, or an error if it is not ready.
func (s *session) settledFacts(ctx context.Context, t targets.Target) ([]result.Fact, error) {
	if c, is := t.(targets.Switched); is {
		if err := c.Settle(ctx); err != nil {
			return nil, err
		}
	}
	return Facts(ctx, t, s.Limits.Facts)
}

// restore runs the command that restores the testbed after the last visit, even if ctx has ended, and records it.
// Errors are about the sink.
func (s *session) restore(ctx context.Context) error {
	if !s.needsRestore {
		return nil
	}
	c := s.e.Restore
	if c == nil {
		s.summary.Warnings = append(s.summary.Warnings, "the testbed stays as the switch of "+s.lastSwitched+
			" left it: no command restores it")
		return nil
	}
	s.emit(Event{Kind: RestoreStarted, Reason: c.Text})
	began := s.Clock.Now()
	record := result.Switch{Schema: result.SwitchSchema, Start: began.UTC()}
	unrecorded := s.Sink.BeginSwitch(record) // a full disk must not keep the testbed from being restored
	var err error
	if record.Output, err = s.runCommand(context.WithoutCancel(ctx), *c, s.lastSwitched); err != nil {
		record.Failed = err.Error()
		s.summary.NotRestored = record.Failed
	}
	s.needsRestore = err != nil
	record.Took = s.since(began)
	_, err = s.Sink.WriteSwitch(record)
	return errors.Join(unrecorded, err)
}

// rememberSwitch takes over the state of the testbed and the duration from a switch of an earlier session.
func (s *session) rememberSwitch(r result.Switch) {
	if r.Target == "" {
		s.needsRestore = r.Failed != ""
		return
	}
	i := slices.IndexFunc(s.e.Targets, func(t result.Target) bool { return t.Name == r.Target })
	if i >= 0 && s.e.Targets[i].Switch != nil {
		s.needsRestore, s.lastSwitched = true, r.Target
	}
	s.durations.AddSwitch(r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
