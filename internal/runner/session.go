package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A session is the state of an experiment while it runs.
type session struct {
	Config
	e            result.Experiment          // Config.Experiment, with NotMeasured extended by this session
	targets      map[string]targets.Target  // by name
	workloads    map[string]family.Workload // by case
	times        family.Times
	began        time.Time
	runs         []result.Run // including earlier sessions; without histograms and series
	lastID       int          // highest ID of a run so far
	lastSite     int
	ended        map[string]int // blocks after which a case ended, by case
	durations    plan.Durations
	summary      Summary
	asleepAtOpen time.Duration   // Clock.Asleep when the sites were opened
	visitNumber  int             // number of the current visit's switch; 0 unless targets are measured in turn
	lastSwitched string          // target that was put in place last; empty: none
	installed    result.Switch   // the last visit whose switch succeeded: its target may still be in place
	needsRestore bool            // a switch changed the testbed, and nothing has restored it
	factsKnown   map[string]bool // targets whose facts are recorded
	retries      int             // attempts in a row that failed because a target was unavailable
}

// newSession returns a session for c with the results of earlier sessions. Errors are about the configuration.
func newSession(c Config) (*session, error) {
	s := &session{
		Config: c.withDefaults(), e: c.Experiment, ended: map[string]int{},
		targets: map[string]targets.Target{}, workloads: map[string]family.Workload{},
		factsKnown: map[string]bool{}, installed: lastInstalled(c.Experiment, c.EarlierSwitches),
		summary:   Summary{Stopped: StopComplete, Invalid: map[string]int{}},
		durations: plan.NewDurations(c.Experiment, CaseTimes(c.Experiment, c.Families)),
		times:     family.TimesOf(c.Experiment.Design),
	}
	for _, t := range c.Targets {
		s.targets[t.Name] = t.Places
	}
	for name := range c.EarlierFacts {
		s.factsKnown[name] = true
	}
	for _, t := range s.e.Targets {
		if s.targets[t.Name] == nil {
			return nil, fmt.Errorf("target %s of the experiment is not given", t.Name)
		}
	}
	for _, ec := range s.e.Cases {
		sc, err := c.Families.Parse(ec.Name, ec.Definition)
		if err != nil {
			return nil, fmt.Errorf("a case of the experiment: %w", err)
		}
		s.workloads[ec.Name] = sc.Workload
	}
	if c.Tool == nil || c.Sink == nil {
		return nil, errors.New("an experiment needs a tool and a sink")
	}
	var err error
	if s.Tool, err = family.Only(c.Tool, s.e.Tool); err != nil {
		return nil, fmt.Errorf("the experiment is measured with %s: %w", s.e.Tool, err)
	}
	s.began = s.Clock.Now()
	for _, r := range c.Earlier {
		s.rememberRun(r, r.Setup+r.Window+r.Cleanup)
	}
	for _, earlier := range c.EarlierSites {
		s.lastSite = max(s.lastSite, earlier.Number)
		s.durations.AddSite(earlier)
	}
	for _, earlier := range c.EarlierSwitches {
		s.rememberSwitch(earlier)
	}
	return s, nil
}

// withDefaults returns the configuration with defaults for the fields that are zero.
func (c Config) withDefaults() Config {
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	if c.Decide == nil {
		c.Decide = FixedBlocks
	}
	if c.Check == nil {
		c.Check = func(result.Case, result.Run) []result.Warning { return nil }
	}
	c.Clock = cmp.Or[Clock](c.Clock, wall{})
	l := c.Limits
	c.Limits = Limits{
		Facts: cmp.Or(l.Facts, FactsTime), Open: cmp.Or(l.Open, 60*time.Second), Grace: cmp.Or(l.Grace, 30*time.Second),
		Close: cmp.Or(l.Close, 30*time.Second), Idle: cmp.Or(l.Idle, plan.Pause),
		RetryPause: cmp.Or(l.RetryPause, 2*time.Second), Attempts: cmp.Or(l.Attempts, 5),
		Ready: cmp.Or(l.Ready, 10*time.Minute), FailedVisits: cmp.Or(l.FailedVisits, 3),
	}
	return c
}

// rememberRun keeps what later decisions and predictions need of a run. took is its duration in seconds; 0 if it is not
// known.
func (s *session) rememberRun(r result.Run, took float64) {
	if id, err := strconv.Atoi(r.ID); err == nil {
		s.lastID = max(s.lastID, id)
	}
	s.lastSite = max(s.lastSite, r.Site)
	r.Series, r.Histograms = nil, nil
	s.runs = append(s.runs, r)
	if took > 0 {
		s.durations.AddRun(r, took)
	}
}

// targetList returns the targets of the experiment, in its order.
func (s *session) targetList() []Target {
	var list []Target
	for _, t := range s.e.Targets {
		list = append(list, Target{Target: t, Places: s.targets[t.Name]})
	}
	return list
}

// record numbers a run, passes it to the sink and emits its event. took is its duration in seconds.
func (s *session) record(r result.Run, raw []result.File, took float64) error {
	r.ID = fmt.Sprintf("%04d", s.lastID+1)
	if err := s.Sink.Append(r, raw); err != nil {
		return err
	}
	s.rememberRun(r, took)
	event := Event{Kind: RunDone, Case: r.Case, Target: r.Target, Block: r.Block, Slot: r.Slot}
	if v, ok := r.Value(s.workloads[r.Case].Traits().Metric); ok {
		event.Value = &v
	}
	if r.Valid() {
		s.summary.Runs++
	} else {
		event.Kind, event.Reason = RunInvalid, r.Invalid[0].Text
		s.summary.Invalid[r.Target]++
	}
	s.emit(event)
	return nil
}

// checkMainMetric returns the reason why the metric that the case is compared by cannot be used from this run; nil if
// it can. The comparison would have fewer pairs than blocks, so such a run is repeated.
func (s *session) checkMainMetric(of result.Case, r result.Run) []result.Warning {
	v, has := r.Value(of.Metric)
	switch {
	case !has:
		return metricWarning("it has no %s, which its case is judged on", of.Metric)
	case !v.Usable():
		return metricWarning("its %s, which its case is judged on, is %g", v.Metric, v.Number)
	}
	for _, other := range s.runs {
		if other.Case != r.Case || !other.Valid() {
			continue
		}
		if first, has := other.Value(v.Metric); has && (first.Unit != v.Unit || first.Better != v.Better) {
			return metricWarning("its %s is in %q, that of run %s in %q, or they disagree on what is better",
				v.Metric, v.Unit, other.ID, first.Unit)
		}
		break
	}
	return nil
}

func metricWarning(format string, a ...any) []result.Warning {
	return []result.Warning{{Code: result.MetricMissing, Text: fmt.Sprintf(format, a...)}}
}

// leaveOut records that a case is not measured on a target; either may be "*".
func (s *session) leaveOut(name, caseName, reason string) error {
	n := result.NotMeasured{Target: name, Case: caseName, Reason: reason}
	// The capacity is limited so that append copies: the caller's experiment must not change.
	s.e.NotMeasured = append(s.e.NotMeasured[:len(s.e.NotMeasured):len(s.e.NotMeasured)], n)
	s.emit(Event{Kind: NotMeasured, Target: name, Case: caseName, Reason: reason})
	return s.Sink.WriteNotMeasured(n)
}

// runsOf returns the runs of a case in a block so far.
func (s *session) runsOf(c result.Case, block int) []result.Run {
	var runs []result.Run
	for _, r := range s.runs {
		if r.Case == c.Name && r.Block == block {
			runs = append(runs, r)
		}
	}
	return runs
}

// complete reports whether the last attempt at a case in a block, the only one that counts, has a valid run on each of
// the targets.
func (s *session) complete(c result.Case, block int, on []string) bool {
	runs := s.runsOf(c, block)
	counts, valid := result.LastAttempts(runs), map[string]bool{}
	for _, r := range runs {
		valid[r.Target] = valid[r.Target] || r.Valid() && counts(&r)
	}
	return !slices.ContainsFunc(on, func(name string) bool { return !valid[name] })
}

// failures returns the invalid runs of a case in a block on these targets, without targets that were given up since.
func (s *session) failures(c result.Case, block int, on []string) []failure {
	var list []failure
	for _, r := range s.runsOf(c, block) {
		if !r.Valid() && slices.Contains(on, r.Target) && s.e.Measures(c, r.Target) {
			list = append(list, failure{target: r.Target, reason: r.Invalid[0].Text})
		}
	}
	return list
}

// affordable reports whether the runs of a case on these targets may begin: with the given overhead in seconds, they
// must not be predicted to exceed the budget by more than one run. Each session has the whole budget.
func (s *session) affordable(c result.Case, on []string, overhead float64) bool {
	budget := s.e.Design.Budget
	if budget == 0 {
		return true
	}
	var all, longest float64
	for _, name := range s.measuredOn(c, on) {
		takes := s.durations.Run(c.Name, name)
		all, longest = plan.Together(s.e.Design, all, takes), max(longest, takes)
	}
	return s.elapsed()+overhead+all <= budget+longest
}

func (s *session) elapsed() float64 { return s.since(s.began) }

// sleepWarning returns a warning if this machine was suspended since the sites were opened, else nil.
func (s *session) sleepWarning() []result.Warning {
	if d := s.Clock.Asleep() - s.asleepAtOpen; d > sleepTolerance {
		text := fmt.Sprintf("this machine slept for %.0f s since the block began", d.Seconds())
		return []result.Warning{{Code: result.PlaceUnhealthy, Text: text}}
	}
	return nil
}

// sleepTolerance is the difference that can arise because the two clocks behind Asleep are not read at the same time.
const sleepTolerance = 100 * time.Millisecond

// wall is the Clock of real time.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) Asleep() time.Duration { return machine.Asleep() }

func (wall) Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
