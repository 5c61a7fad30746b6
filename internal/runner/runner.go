// Package runner carries out an experiment: it decides what is measured when, opens a fresh site on every target for
// each block, lets a tool measure in their places, and hands each run to a sink before the next begins.
//
// It stands between the suite (what) and the store, and knows targets, tools and the sink as
// interfaces only. The order of everything is a pure function of the experiment ([Schedule]), so an
// experiment that was interrupted continues exactly as it would have gone on.
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

// A Sink keeps what is measured; a store.Writer is one. An error of a Sink ends the experiment.
type Sink interface {
	// WriteFacts records the facts of a target, in place of earlier ones.
	WriteFacts(target string, facts []result.Fact) error
	// WriteSession records that the program began to measure, and what it found; the runs that follow are of that session.
	WriteSession(s result.Session) error
	// WriteSwitch records a visit before its first run, or the restoration of the testbed, and returns its number.
	WriteSwitch(s result.Switch) (number int, err error)
	// WriteNotMeasured adds to what the experiment did not measure.
	WriteNotMeasured(n result.NotMeasured) error
	// WriteSite records a site that is gone.
	WriteSite(s result.Site) error
	// Append records a run; when it returns, the run is safe from a crash.
	Append(run result.Run, raw []result.File) error
}

// A Clock is the time that durations of runs are taken from. Deadlines are always real time.
type Clock interface {
	Now() time.Time
	// Sleep waits, or returns when ctx ends.
	Sleep(ctx context.Context, d time.Duration)
	// Asleep is how long the machine has slept since it was started; 0 where that is not known.
	Asleep() time.Duration
}

// A Target is one of the things that are compared, with its name in all output.
type Target struct {
	result.Target
	Places targets.Target
}

// Limits bound what a run may take. The zero value of each means the default.
type Limits struct {
	Facts    time.Duration // for the facts of a target: FactsTime
	Open     time.Duration // for making a site: 60 s
	Grace    time.Duration // for the tool, on top of warm-up and window: 30 s
	Close    time.Duration // for removing a site: 30 s
	Idle     time.Duration // pause before each run, so that one does not disturb the next: 20 ms
	Absence  time.Duration // pause before another attempt when a target was not available: 2 s
	Attempts int           // of a block before its case is given up, or of finding a target available: 5
	Ready    time.Duration // for a target to be ready after a switch to it: 10 min
	Visits   int           // failed visits of a block before its target is given up: 3
}

// A Config is an experiment and what it needs.
type Config struct {
	Experiment result.Experiment
	Targets    []Target    // at least those that Experiment names
	Families   family.List // that the cases are of
	Tool       family.Tool
	Sink       Sink
	Version    string // of this program

	// What a resumed experiment has measured already.
	Earlier         []result.Run
	EarlierSites    []result.Site
	EarlierSwitches []result.Switch
	EarlierFacts    map[string][]result.Fact

	Events func(Event) // called from the goroutine of Run; nil: nobody listens
	Decide Decide      // nil: FixedBlocks
	// Check says why a run that ended well is not valid all the same, each reason a sentence without
	// full stop; nil: it is.
	Check  func(result.Case, result.Run) []result.Warning
	Clock  Clock  // nil: real time
	Limits Limits //
}

// A Decide says which cases go on to another block, by name, when done blocks are complete; none
// ends the experiment. It is asked before the first block and after each; a case that it has left out
// does not come back. The runs are those of the done blocks, invalid ones too, without histograms
// and series, so a resumed experiment decides after each block as it did before.
type Decide func(e result.Experiment, done int, runs []result.Run) []string

// FixedBlocks goes on with every case until the design's number of blocks is complete.
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

// A Stop is why an experiment ended.
type Stop string

// The reasons: every case has its blocks, what was to be decided is before that, the budget is used
// up, ctx ended, a target was not there any more, or Run ended with an error.
const (
	StopComplete    Stop = "complete"
	StopDecided     Stop = "decided"
	StopBudget      Stop = "budget"
	StopInterrupted Stop = "interrupted"
	StopUnavailable Stop = "unavailable"
	StopFailed      Stop = "failed"
)

// A Summary is how an experiment went. Runs of earlier sessions are not in its counts.
type Summary struct {
	Stopped     Stop
	Unavailable string               // what was not there any more, if that is why it stopped
	Runs        int                  // valid
	Invalid     map[string]int       // runs that did not count, by target
	GivenUp     int                  // cases, targets, or a target's part of a case, given up after failed attempts
	NotRestored string               // why the testbed is not as it was before the first switch; empty: it is
	NotMeasured []result.NotMeasured // all of the experiment's
	Session     result.Session       // as it was recorded, without number; zero if it did not get that far
	Warnings    []string             // each a sentence without full stop
	Measuring   float64              // seconds within the windows of runs, invalid ones too
	Total       float64              // seconds of wall time
}

// Share is the fraction of the wall time that was spent measuring.
func (s Summary) Share() float64 {
	if s.Total <= 0 {
		return 0
	}
	return s.Measuring / s.Total
}

// Run carries out the experiment until it is complete or decided, its budget is used up or ctx ends; the run that is in
// progress when ctx ends is dropped, the sites are removed, and the testbed is restored. The budget is exceeded by less
// than one run and the end of its sites; of a block that it cuts off, the runs are kept, and count where both sides of
// a comparison have one. A target that stays unavailable ends the experiment, which can go on later: no case is given
// up for that, and there is no run of it. The summary is valid also with an error. An error is about the configuration,
// the facts of a target or the sink; a run that fails is not an error but an invalid run, and what cannot be done is
// not measured.
func Run(ctx context.Context, c Config) (Summary, error) {
	s, err := newSession(c)
	if err != nil {
		return Summary{}, err
	}
	s.emit(Event{Kind: Planned})
	if s.e.Design.Parallel {
		err = disjoint(ctx, s.given())
	}
	if err == nil {
		err = s.facts(ctx)
	}
	if err == nil {
		err = s.blocks(ctx)
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

// How the end of ctx, of the budget and of a target travel up within the package.
var (
	errInterrupted = errors.New("interrupted")
	errBudget      = errors.New("the budget is used up")
	errUnavailable = errors.New("a target is not available any more")
)

// facts records what is true of each target: in every session, and of a target's first one by itself. Targets that are
// measured in turn are not in place yet, and have facts of each visit.
func (s *session) facts(ctx context.Context) error {
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

// FactsTime is how long a target may take to find its facts. A cluster starts its first pods for them, and its nodes
// pull the images.
const FactsTime = 3 * time.Minute

// Facts returns the facts of a target, or an error with what is known when limit has passed.
func Facts(ctx context.Context, t targets.Target, limit time.Duration) ([]result.Fact, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	facts, err := t.Facts(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("finding them took longer than %v: %w", limit, err)
	}
	return facts, err
}

// blocks runs block after block until there is nothing more to do.
func (s *session) blocks(ctx context.Context) error {
	for block := 1; ; block++ {
		todo := s.todo(block)
		if len(todo) == 0 {
			return nil
		}
		s.emit(Event{Kind: BlockStarted, Block: block})
		var err error
		if s.e.InTurn() {
			err = s.visits(ctx, todo)
		} else {
			err = s.block(ctx, todo, s.e.TargetNames())
		}
		if err != nil {
			return err
		}
	}
}

// todo is what is measured in a block, by what was decided after the one before.
func (s *session) todo(block int) []CaseBlock {
	going := s.going(block - 1)
	var todo []CaseBlock
	for _, b := range Schedule(s.e, block) {
		if going[b.Case.Name] {
			todo = append(todo, b)
		}
	}
	return todo
}

// going asks which cases go on when done blocks are complete, and tells of those that end early.
func (s *session) going(done int) map[string]bool {
	wanted := s.Decide(s.e, done, s.until(done))
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
		// When everything ends at once, the exploratory cases end with the primary ones.
		decided := c.Role == result.Primary || c.Role == result.Exploratory && len(wanted) > 0
		if early && decided && len(s.e.MeasuredOn(c)) > 0 {
			s.emit(Event{Kind: CaseDecided, Case: c.Name, Block: done})
		}
	}
	return going
}

// until returns the runs of the first blocks.
func (s *session) until(block int) []result.Run {
	var runs []result.Run
	for _, r := range s.runs {
		if r.Block <= block {
			runs = append(runs, r)
		}
	}
	return runs
}

// notSupported leaves out what a target cannot do; without the baseline there is nothing to compare.
func (s *session) notSupported(name, caseName string, err error) error {
	if name == s.e.Baseline {
		return s.leaveOut("*", caseName, fmt.Sprintf("the baseline %s cannot: %s", name, err))
	}
	return s.leaveOut(name, caseName, err.Error())
}

// giveUp leaves out the one target that all attempts failed on, else the case.
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
