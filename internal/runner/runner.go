// Package runner carries out an experiment: for each block it opens a fresh site on every target, runs a tool on the
// site's hosts, and passes each run to a sink before the next run begins.
//
// It knows targets, tools and the sink as interfaces only. The order of everything is a pure function of the experiment
// ([Schedule]), so an interrupted experiment continues as if it had not been interrupted.
package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Sink stores the results of an experiment, as store.Writer does. An error of a Sink ends the experiment.
type Sink interface {
	// WriteFacts records the facts of a target and replaces earlier ones.
	WriteFacts(target string, facts []result.Fact) error
	// WriteSession records the start of a session and the facts found then; the runs that follow belong to it.
	WriteSession(s result.Session) error
	// BeginSwitch records durably that the command of a switch, or of the restoration of the testbed, is about to begin.
	BeginSwitch(s result.Switch) error
	// WriteSwitch records a switch before the first run of its visit, or the restoration of the testbed, and returns
	// the record's number.
	WriteSwitch(s result.Switch) (number int, err error)
	// WriteNotMeasured records a case that is not measured, and the reason.
	WriteNotMeasured(n result.NotMeasured) error
	// WriteSite records a site after its removal.
	WriteSite(s result.Site) error
	// Append records a run durably: a crash after it returns does not lose the run.
	Append(run result.Run, raw []result.File) error
}

// A Clock provides the time by which runs are timed. Deadlines always use real time.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx ends.
	Sleep(ctx context.Context, d time.Duration)
	// Asleep returns how long the machine has been suspended since it was started; 0 if that is not known.
	Asleep() time.Duration
}

// A Target is a target of the experiment together with the implementation that opens its sites.
type Target struct {
	result.Target
	Places targets.Target
}

// Limits are time limits, pauses and numbers of attempts. A zero field means its default.
type Limits struct {
	Facts        time.Duration // to collect the facts of a target; default FactsTime
	Open         time.Duration // to open a site; default 60 s
	Grace        time.Duration // for the tool, in addition to warm-up and window; default 30 s
	Close        time.Duration // to close a site; default 30 s
	Idle         time.Duration // pause before each run, so that runs do not disturb each other; default 20 ms
	RetryPause   time.Duration // pause before the next attempt to reach an unavailable target; default 2 s
	Attempts     int           // at a case in a block before it is given up, or to reach an unavailable target; default 5
	Ready        time.Duration // until a target is ready after a switch to it; default 10 min
	FailedVisits int           // failed visits in a block before the target is given up; default 3
}

// A Config holds an experiment and everything needed to run it.
type Config struct {
	Experiment result.Experiment
	Targets    []Target    // at least those that Experiment names
	Families   family.List // to parse the cases
	Tool       family.Tool
	Sink       Sink
	Version    string // of this program

	// The results of earlier sessions, if the experiment is resumed.
	Earlier         []result.Run
	EarlierSites    []result.Site
	EarlierSwitches []result.Switch
	EarlierFacts    map[string][]result.Fact // by target

	Events func(Event) // called from the goroutine of Run; may be nil
	Decide Decide      // nil: FixedBlocks
	// Check returns the reasons why a run that ended without errors is invalid, each a sentence without full stop. It
	// may be nil.
	Check  func(result.Case, result.Run) []result.Warning
	Clock  Clock // nil: real time
	Limits Limits
}

// A Decide is a function that returns the names of the cases that continue after done blocks; none ends the experiment.
// It is called before the first block and after each one; a case that it left out once does not continue later. The
// runs are those of the done blocks, including invalid ones, without histograms and series, so a resumed experiment
// decides as before.
type Decide func(e result.Experiment, done int, runs []result.Run) []string

// FixedBlocks is a [Decide] that continues every case until the design's number of blocks is complete.
func FixedBlocks(e result.Experiment, done int, _ []result.Run) []string {
	if done >= e.Design.Blocks {
		return nil
	}
	names := make([]string, len(e.Cases))
	for i, c := range e.Cases {
		names[i] = c.Name
	}
	return names
}

// A Stop is the reason why an experiment ended.
type Stop string

// The reasons why an experiment ended.
const (
	StopComplete    Stop = "complete"    // every case has all its blocks
	StopDecided     Stop = "decided"     // every case was decided before its last block
	StopBudget      Stop = "budget"      // the budget is used up
	StopInterrupted Stop = "interrupted" // the context ended
	StopUnavailable Stop = "unavailable" // a target stayed unavailable
	StopFailed      Stop = "failed"      // Run returned an error
)

// A Summary describes one session of an experiment. It does not count runs of earlier sessions.
type Summary struct {
	Stopped     Stop
	Unavailable string               // with StopUnavailable, the target and its error
	Runs        int                  // valid
	Invalid     map[string]int       // invalid runs, by target
	GivenUp     int                  // cases, targets, or a target's part of a case, given up after failed attempts
	NotRestored string               // why the testbed could not be restored; empty: restored, or nothing to restore
	NotMeasured []result.NotMeasured // including those of earlier sessions
	Session     result.Session       // as recorded, without its number; zero if Run ended before it was recorded
	Warnings    []string             // each a sentence without full stop
	Measuring   float64              // seconds within the windows of runs, including invalid ones
	Total       float64              // seconds of wall time
}

// Share returns the fraction of the wall time that was spent measuring, from 0 to 1.
func (s Summary) Share() float64 {
	if s.Total <= 0 {
		return 0
	}
	return s.Measuring / s.Total
}

// Run carries out the experiment until it is complete or decided, its budget is used up, or ctx ends. When ctx ends,
// the run in progress is dropped, the sites are removed and the testbed is restored. A target that stays unavailable
// ends the experiment without an invalid run or a given-up case; the experiment can be resumed.
//
// The budget is exceeded by less than one run and the removal of its sites. Runs of a block that the budget cuts off
// are kept, and count if both sides of a comparison have one.
//
// Errors are about the configuration, the facts of a target or the sink; a run that fails is recorded as invalid, and
// an unsupported case as not measured. The summary is valid even if err is not nil.
func Run(ctx context.Context, c Config) (Summary, error) {
	s, err := newSession(c)
	if err != nil {
		return Summary{}, err
	}
	if s.e.InTurn() {
		if err := s.endCommands(ctx); err != nil { // of an earlier session, which was killed
			return Summary{}, err
		}
	}
	s.emit(Event{Kind: Planned})
	if s.e.Design.Parallel {
		err = checkDisjoint(ctx, s.targetList())
	}
	if err == nil {
		err = s.recordFacts(ctx)
	}
	if err == nil {
		err = s.measureBlocks(ctx)
	}
	restored := s.restore(ctx)
	switch {
	case errors.Is(err, errInterrupted):
		s.summary.Stopped, err = StopInterrupted, nil
	case errors.Is(err, errBudget):
		s.summary.Stopped, err = StopBudget, nil
	case errors.Is(err, errUnavailable):
		s.summary.Stopped, err = StopUnavailable, nil
	}
	if err = errors.Join(err, restored); err != nil {
		s.summary.Stopped = StopFailed
	}
	s.summary.Total = s.elapsed()
	s.summary.NotMeasured = s.e.NotMeasured
	s.emit(Event{Kind: Finished, Reason: string(s.summary.Stopped)})
	return s.summary, err
}

// Errors within the package, by which [Run] recognizes why the experiment ended.
var (
	errInterrupted = errors.New("interrupted")
	errBudget      = errors.New("the budget is used up")
	errUnavailable = errors.New("a target is not available any more")
)

// recordFacts records the facts of each target: in the session, and for a target without earlier facts on their own.
// Targets that are measured in turn are not in place yet; their facts are recorded in each visit.
func (s *session) recordFacts(ctx context.Context) error {
	now := result.Session{Start: s.began, Version: s.Version, Facts: map[string][]result.Fact{}}
	for _, t := range s.e.Targets {
		if s.e.InTurn() {
			break
		}
		facts, err := Facts(ctx, s.targets[t.Name], s.Limits.Facts)
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case errors.Is(err, result.ErrNotSupported) && t.Name != s.e.Baseline:
			if err := s.leaveOut(t.Name, "*", err.Error()); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("facts of target %s: %w", t.Name, err)
		}
		now.Facts[t.Name] = facts
		if _, known := s.Config.EarlierFacts[t.Name]; known {
			continue
		}
		if err := s.Sink.WriteFacts(t.Name, facts); err != nil {
			return err
		}
	}
	if err := s.Sink.WriteSession(now); err != nil {
		return err
	}
	s.summary.Session = now
	return nil
}

// FactsTime is the default time limit for collecting the facts of a target. A cluster starts its first pods for them,
// and its nodes pull the images.
const FactsTime = 3 * time.Minute

// Facts returns the facts of a target, or an error that includes the target's own if limit passes first.
func Facts(ctx context.Context, t targets.Target, limit time.Duration) ([]result.Fact, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	facts, err := t.Facts(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("finding them took longer than %v: %w", limit, err)
	}
	return facts, err
}

// measureBlocks measures one block after another until no case continues.
func (s *session) measureBlocks(ctx context.Context) error {
	for block := 1; ; block++ {
		todo := s.blockCases(block)
		if len(todo) == 0 {
			return nil
		}
		s.emit(Event{Kind: BlockStarted, Block: block})
		var err error
		if s.e.InTurn() {
			err = s.measureVisits(ctx, todo)
		} else {
			err = s.measureBlock(ctx, todo, s.e.TargetNames())
		}
		if err != nil {
			return err
		}
	}
}

// blockCases returns the cases of a block that continue after the block before it, in the order of the schedule.
func (s *session) blockCases(block int) []CaseBlock {
	going := s.continuingCases(block - 1)
	var todo []CaseBlock
	for _, b := range Schedule(s.e, block) {
		if going[b.Case.Name] {
			todo = append(todo, b)
		}
	}
	return todo
}

// continuingCases returns the names of the cases that continue after done blocks, and emits an event for each case that
// ends early.
func (s *session) continuingCases(done int) map[string]bool {
	wanted := s.Decide(s.e, done, s.runsUntil(done))
	early := done > 0 && done < s.e.Design.Blocks
	if early && len(wanted) == 0 {
		s.summary.Stopped = StopDecided
	}
	going := map[string]bool{}
	for _, c := range s.e.Cases {
		if _, ended := s.ended[c.Name]; ended {
			continue
		}
		if slices.Contains(wanted, c.Name) {
			going[c.Name] = true
			continue
		}
		s.ended[c.Name] = done
		// If the whole experiment ends, exploratory cases end only because the primary ones did.
		decided := c.Role == result.Primary || c.Role == result.Exploratory && len(wanted) > 0
		if early && decided && len(s.e.MeasuredOn(c)) > 0 {
			s.emit(Event{Kind: CaseDecided, Case: c.Name, Block: done})
		}
	}
	return going
}

// runsUntil returns the runs of the blocks up to block.
func (s *session) runsUntil(block int) []result.Run {
	var runs []result.Run
	for _, r := range s.runs {
		if r.Block <= block {
			runs = append(runs, r)
		}
	}
	return runs
}

// notSupported leaves out a case that a target does not support; for the baseline, it leaves the case out everywhere.
func (s *session) notSupported(name, caseName string, err error) error {
	if name == s.e.Baseline {
		return s.leaveOut("*", caseName, fmt.Sprintf("the baseline %s cannot: %s", name, err))
	}
	return s.leaveOut(name, caseName, err.Error())
}

// giveUp leaves a case out on the target on which all attempts failed; if several failed, or the baseline, everywhere.
func (s *session) giveUp(caseName string, block int, failures []failure) error {
	last := failures[len(failures)-1]
	name := last.target
	for _, f := range failures {
		if f.target != name {
			name = "*"
		}
	}
	if name == s.e.Baseline {
		name = "*"
	}
	s.summary.GivenUp++
	return s.leaveOut(name, caseName, fmt.Sprintf("given up after %d failed attempts at block %d, the last on %s: %s",
		len(failures), block, last.target, last.reason))
}
