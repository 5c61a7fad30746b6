package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// What else a design has to keep to. Every run is bounded in time; the shortest window is the step of a run's series.
const (
	maxLooks  = 50
	minRun    = 0.1  // seconds of the window
	maxRun    = 3600 // seconds of the window, and of the warm-up
	maxAlpha  = 0.5
	maxBudget = 1e9 // seconds
)

// DefaultDesign is sequential: a case is looked at after 8, 11, 15, 21 and 30 blocks. The window of a
// second is for machines beside each other; 10 s suit a cluster better.
func DefaultDesign() result.Design {
	return result.Design{
		Kind: "randomised complete blocks", Blocks: 30, Looks: []int{8, 11, 15, 21, 30},
		Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02,
	}
}

// ErrOption is what every error about an option is; its text names the flag.
var ErrOption = errors.New("invalid option")

// Options are what an experiment is resolved from.
type Options struct {
	ID      string // of the experiment, see store.NewID
	Version string // of this program
	Created time.Time

	Targets  []Target       // in the order of the output
	Baseline string         // name of a target; empty: the first
	Suites   []family.Suite // their cases one after another
	// Cases keeps only the suites' cases that match one of these patterns, or adds a case by its full
	// name; see [result.Match]. A pattern that ends in parameters adds them to the cases that match what is before.
	Cases []string
	// MaxRate limits what cases send in bulk, in bit/s; 0 does not.
	MaxRate float64
	// Primary are patterns of the cases that verdicts are about, instead of those of the suites.
	Primary []string
	// Metric is what verdicts are about instead of each case's own metric, where its workload has it; empty does not.
	Metric   string
	Families family.List // that a full name of a case may be of
	Tool     family.Tool
	Seed     uint64
	Design   result.Design   // begin from [DefaultDesign]
	Gates    []string        // conditions on the outcome; they are recorded, and judged elsewhere
	Restore  *result.Command // after targets were measured in turn; nil: none
}

// Resolve turns options into the plan of an experiment. It asks targets and tool what they support
// and puts the rest under NotMeasured; it touches nothing. Errors are about the options and Is ErrOption, or
// Is result.ErrNotSupported when the baseline can do none of the cases.
//
// Of a case that is kept, the case that bounds it is kept too, as a bound. When the patterns of Cases
// leave no primary case, all that they chose are primary: what a user asks for by name is
// what a verdict is wanted on.
func Resolve(o Options) (result.Experiment, error) {
	if err := o.check(); err != nil {
		return result.Experiment{}, err
	}
	cases, err := o.choose()
	if err != nil {
		return result.Experiment{}, err
	}
	if err := o.choosePrimaries(cases); err != nil {
		return result.Experiment{}, err
	}
	if err := o.limit(cases); err != nil {
		return result.Experiment{}, err
	}
	e := result.Experiment{
		Schema: result.ExperimentSchema, ID: o.ID, Created: o.Created, Version: o.Version, Seed: o.Seed,
		Suite: o.suiteNames(), Chosen: o.Cases, Primaries: o.Primary, Metric: o.Metric, Design: o.Design,
		Baseline: o.Baseline, Gates: o.Gates, Restore: o.Restore, NotMeasured: []result.NotMeasured{},
	}
	for _, t := range o.Targets {
		e.Targets = append(e.Targets, t.Target)
	}
	if !e.InTurn() { // a switch may change the underlay
		for i, t := range o.Targets {
			if u, is := t.Places.(targets.Underlaid); is {
				e.Targets[i].Underlay = u.Underlay()
			}
		}
	}
	if e.Baseline == "" {
		e.Baseline = e.Targets[0].Name
	}
	switch {
	case e.InTurn() && e.Design.Parallel:
		return e, fmt.Errorf("%w: --parallel: targets with a switch are never in place at the same time", ErrOption)
	case e.Restore != nil && !e.InTurn():
		return e, fmt.Errorf("%w: --restore: no target has a switch, so there is nothing to restore", ErrOption)
	}
	if e.Design.Parallel {
		if err := disjoint(context.Background(), o.Targets); err != nil {
			return e, err
		}
	}
	if err := o.probe(&e, cases); err != nil {
		return e, err
	}
	if err := o.checkLives(e); err != nil {
		return e, err
	}
	return e, o.checkPrimaries(e)
}

// checkLives returns an error if the sites of a block are expected to end by themselves before its runs do.
func (o Options) checkLives(e result.Experiment) error {
	durations := plan.NewDurations(e, o.Families)
	longest := time.Duration(durations.Longest() * float64(time.Second))
	if b := time.Duration(e.Design.Budget * float64(time.Second)); b > 0 {
		longest = min(longest, b)
	}
	for _, t := range o.Targets {
		if m, is := t.Places.(targets.Mortal); is && longest > m.SiteLife() {
			return fmt.Errorf("%w: the runs of a block take about %v, and what they are measured with on %s ends after %v; "+
				"choose fewer cases (--case) or targets, or shorter runs (--duration)",
				ErrOption, longest.Round(time.Minute), t.Name, m.SiteLife())
		}
	}
	return nil
}

func (o Options) check() error {
	if len(o.Targets) == 0 {
		return fmt.Errorf("%w: --target: there is none; name at least one, such as lab:native", ErrOption)
	}
	specs := map[string]string{}
	for _, t := range o.Targets {
		if other, twice := specs[t.Name]; twice {
			return fmt.Errorf("%w: --target: %s and %s have the same name %q; give one of them another with label=, as in %s",
				ErrOption, other, t.Spec, t.Name, withLabel(t.Spec))
		}
		specs[t.Name] = t.Spec
	}
	if _, ok := specs[o.Baseline]; !ok && o.Baseline != "" {
		names := slices.Sorted(maps.Keys(specs))
		return fmt.Errorf("%w: --baseline: %q is not the name of a target%s",
			ErrOption, o.Baseline, prose.DidYouMean(o.Baseline, names))
	}
	if o.Tool == nil {
		return fmt.Errorf("%w: --tool: there is none", ErrOption)
	}
	return checkDesign(o.Design)
}

func withLabel(spec string) string {
	if strings.Contains(spec, "?") {
		return spec + "&label=other"
	}
	return spec + "?label=other"
}

// checkDesign is the only place where the ranges of a design are.
func checkDesign(d result.Design) error {
	switch {
	case d.Blocks < 1 || d.Blocks > plan.MaxBlocks:
		return fmt.Errorf("%w: --blocks: %d is not from 1 to %d", ErrOption, d.Blocks, plan.MaxBlocks)
	case !(d.Duration >= minRun && d.Duration <= maxRun):
		return fmt.Errorf("%w: --duration: %g s is not from 100 ms, the step of a run's series, to 1 h",
			ErrOption, d.Duration)
	case !(d.Warmup >= 0 && d.Warmup <= maxRun):
		return fmt.Errorf("%w: --warmup: %g s is not from 0 to 1 h", ErrOption, d.Warmup)
	case !(d.Budget >= 0 && d.Budget <= maxBudget):
		return fmt.Errorf("%w: --budget: %g s is not a time from 0 on", ErrOption, d.Budget)
	case !(d.Alpha > 0 && d.Alpha < maxAlpha):
		return fmt.Errorf("%w: --alpha: %.4g is not between 0 and %g", ErrOption, d.Alpha, maxAlpha)
	case !(d.Delta > 0 && d.Delta < 1):
		return fmt.Errorf("%w: --delta: %.4g is not between 0 and 1 (100 %%)", ErrOption, d.Delta)
	}
	return checkLooks(d)
}

func checkLooks(d result.Design) error {
	if len(d.Looks) == 0 {
		return nil
	}
	if len(d.Looks) > maxLooks {
		return fmt.Errorf("%w: --looks: %d looks are more than %d", ErrOption, len(d.Looks), maxLooks)
	}
	last := 0
	for _, n := range d.Looks {
		if n <= last || n > plan.MaxBlocks {
			return fmt.Errorf("%w: --looks: %v are not numbers of blocks from 1 to %d, each above the one before",
				ErrOption, d.Looks, plan.MaxBlocks)
		}
		last = n
	}
	if last != d.Blocks {
		return fmt.Errorf("%w: --looks: the last look is after %d blocks, but there are %d", ErrOption, last, d.Blocks)
	}
	return nil
}

func (o Options) suiteNames() string {
	var names []string
	for _, s := range o.Suites {
		names = append(names, s.Name)
	}
	return strings.Join(names, ",")
}

// all are the suites' cases; one that several suites have keeps its first role.
func (o Options) all() []family.Case {
	var cases []family.Case
	for _, s := range o.Suites {
		cases = append(cases, s.Cases...)
	}
	return family.Once(cases)
}

// choose applies the patterns of --case.
func (o Options) choose() ([]family.Case, error) {
	all := o.all()
	if len(o.Cases) == 0 {
		if len(all) == 0 {
			return nil, fmt.Errorf("%w: --suite: it has no cases", ErrOption)
		}
		return all, nil
	}
	chosen := map[string]bool{}
	for _, pattern := range o.Cases {
		found := false
		for _, c := range all {
			if result.Match(pattern, c.Name()) {
				chosen[c.Name()], found = true, true
			}
		}
		if found {
			continue
		}
		cases, bounds, err := o.parametrized(pattern)
		if err != nil {
			return nil, fmt.Errorf("%w: --case: %q: %w", ErrOption, pattern, err)
		}
		for _, c := range cases {
			chosen[c.Name()], found = true, true
		}
		if all = family.Once(slices.Concat(all, cases, bounds)); found {
			continue
		}
		c, err := o.Families.Parse(pattern, "")
		if err != nil {
			return nil, fmt.Errorf("%w: --case: %q matches no case of %s and is not the full name of one: %w%s",
				ErrOption, pattern, o.suiteNames(), err, prose.DidYouMean(pattern, names(all)))
		}
		all = family.Once(append(all, c))
		chosen[c.Name()] = true
	}
	return keep(all, chosen), nil
}

// parametrized returns the suites' cases that match what a pattern has before a colon, with the parameters that it has
// after it, and the cases that bound them, where the suites have those without these parameters.
func (o Options) parametrized(pattern string) (cases, bounds []family.Case, err error) {
	head, parameters, has := strings.Cut(pattern, ":")
	if !has || !strings.ContainsAny(head, "*?") {
		return nil, nil, nil
	}
	all := o.all()
	for _, c := range all {
		if !result.Match(head, c.Name()) {
			continue
		}
		sign := ":"
		if strings.Contains(c.Name(), ":") {
			sign = ","
		}
		own, err := o.Families.Parse(c.Name()+sign+parameters, c.Workload.Traits().Definition)
		if err != nil {
			return nil, nil, err
		}
		own.Role = c.Role
		cases = append(cases, own)
		bound := boundOf(c)
		if slices.ContainsFunc(all, func(c family.Case) bool { return c.Name() == bound }) {
			bounds = append(bounds, family.Case{Workload: own.Workload.Traits().Reference, Role: result.Bound})
		}
	}
	return cases, bounds, nil
}

// keep returns the chosen cases, all of them primary if none is, and the bounds of those.
func keep(all []family.Case, chosen map[string]bool) []family.Case {
	bounds := map[string]bool{}
	for _, c := range all {
		if chosen[c.Name()] {
			bounds[boundOf(c)] = true
		}
	}
	var kept []family.Case
	for _, c := range all {
		switch {
		case chosen[c.Name()]:
			kept = append(kept, c)
		case bounds[c.Name()]:
			c.Role = result.Bound
			kept = append(kept, c)
		}
	}
	if slices.ContainsFunc(kept, func(c family.Case) bool { return c.Role == result.Primary }) {
		return kept
	}
	for i, c := range kept {
		if chosen[c.Name()] {
			kept[i].Role = result.Primary
		}
	}
	return kept
}

// choosePrimaries applies the patterns of --primary.
func (o Options) choosePrimaries(cases []family.Case) error {
	if len(o.Primary) == 0 {
		return nil
	}
	for i := range cases {
		if cases[i].Role == result.Primary {
			cases[i].Role = result.Exploratory
		}
	}
	for _, pattern := range o.Primary {
		found := false
		for i, c := range cases {
			// A bound is not measured on every target, so there is no verdict on it.
			if c.Role != result.Bound && result.Match(pattern, c.Name()) {
				cases[i].Role, found = result.Primary, true
			}
		}
		if !found {
			return fmt.Errorf("%w: --primary: %q matches %s", ErrOption, pattern, noPrimary(pattern, cases))
		}
	}
	return nil
}

// noPrimary says what a pattern matches that matches no case that could be primary.
func noPrimary(pattern string, cases []family.Case) string {
	for _, c := range cases {
		if c.Role == result.Bound && result.Match(pattern, c.Name()) {
			return "only references, on which there is no verdict: " + c.Name()
		}
	}
	return "none of the cases that are measured on every target" + prose.DidYouMean(pattern, names(cases))
}

// limit applies --max-rate.
func (o Options) limit(cases []family.Case) (err error) {
	for i, c := range cases {
		if w, is := c.Workload.(family.Capped); is && o.MaxRate > 0 {
			if cases[i].Workload, err = w.Capped(o.MaxRate); err != nil {
				return fmt.Errorf("%w: --max-rate: %w", ErrOption, err)
			}
		}
	}
	return nil
}

// checkPrimaries refuses a pattern of which no case can be measured.
func (o Options) checkPrimaries(e result.Experiment) error {
	for _, pattern := range o.Primary {
		measured := func(c result.Case) bool { return c.Role == result.Primary && result.Match(pattern, c.Name) }
		if slices.ContainsFunc(e.Cases, measured) {
			continue
		}
		for _, n := range e.NotMeasured {
			if result.Match(pattern, n.Case) {
				return fmt.Errorf("%w: --primary: %q matches only what cannot be measured: %s: %s",
					ErrOption, pattern, n.Case, n.Reason)
			}
		}
	}
	return nil
}

// boundOf is the name of the case that bounds c; empty if none does.
func boundOf(c family.Case) string {
	if r := c.Workload.Traits().Reference; r != nil {
		return r.String()
	}
	return ""
}

// names are those of the cases that a verdict can be about.
func names(cases []family.Case) []string {
	var list []string
	for _, c := range cases {
		if c.Role != result.Bound {
			list = append(list, c.Name())
		}
	}
	return list
}

// probe asks tool and targets about every case, and fills in e's cases and what is not measured.
func (o Options) probe(e *result.Experiment, cases []family.Case) error {
	var possible []family.Case
	var last error
	for _, c := range cases {
		if err := o.supports(e, c); err != nil {
			last = err
			e.NotMeasured = append(e.NotMeasured, result.NotMeasured{Target: "*", Case: c.Name(), Reason: err.Error()})
			continue
		}
		possible = append(possible, c)
	}
	if len(possible) == 0 {
		return fmt.Errorf("none of the %d cases can be measured, the last because %w", len(cases), last)
	}
	e.Tool = o.tools(possible)
	if err := o.checkMetric(possible); err != nil {
		return err
	}
	for _, c := range possible {
		rc, bound := c.Planned(), boundOf(c)
		if slices.Contains(o.compared(c), o.Metric) {
			rc.Metric, rc.Words.Quantity = o.Metric, o.Metric
		}
		if slices.ContainsFunc(possible, func(c family.Case) bool { return c.Name() == bound }) {
			rc.Bound = bound
		}
		e.Cases = append(e.Cases, rc)
	}
	for _, t := range o.Targets {
		if t.Name != e.Baseline {
			e.NotMeasured = append(e.NotMeasured, o.lacks(e, t, possible)...)
		}
	}
	return nil
}

// compared are the names of the metrics that a case may have verdicts about.
func (o Options) compared(c family.Case) []string {
	var names []string
	for _, m := range o.Tool.Metrics(c.Workload) {
		if m.Better != metric.Neutral {
			names = append(names, m.Name)
		}
	}
	return names
}

// checkMetric returns an error if no case can have verdicts about the metric that was chosen.
func (o Options) checkMetric(cases []family.Case) error {
	known := map[string]bool{}
	for _, c := range cases {
		for _, name := range o.compared(c) {
			known[name] = true
		}
	}
	if o.Metric == "" || known[o.Metric] {
		return nil
	}
	return fmt.Errorf("%w: --metric: no case can have verdicts about %q; there are %s",
		ErrOption, o.Metric, prose.Choices(o.Metric, slices.Sorted(maps.Keys(known))))
}

// tools are the names of those that the cases need, in the order in which they are tried.
func (o Options) tools(cases []family.Case) string {
	all, is := o.Tool.(family.Set)
	if !is {
		return o.Tool.Name()
	}
	var used family.Set
	for _, t := range all {
		if slices.ContainsFunc(cases, func(c family.Case) bool { return family.For(all, c.Workload) == t }) {
			used = append(used, t)
		}
	}
	return used.Name()
}

// Measurable is nil if a tool can measure a workload on a target, as far as can be known before there are places; else
// it says why not, and what would change that.
func Measurable(by family.Tool, places targets.Target, w family.Workload) error {
	if err := by.Supports(w); err != nil {
		return fmt.Errorf("%s cannot: %w", by.Name(), err)
	}
	return places.Supports(Placement(by, w, 0))
}

// Placement is what a run of a workload by a tool needs of its places.
func Placement(by family.Tool, w family.Workload, rotation int) targets.Placement {
	p := w.Traits().Needs
	p.Rotation, p.Program = rotation, by.Program(w)
	return p
}

// supports says why a case cannot be measured at all: by the tool or on the baseline.
func (o Options) supports(e *result.Experiment, c family.Case) error {
	baseline := slices.IndexFunc(o.Targets, func(t Target) bool { return t.Name == e.Baseline })
	err := Measurable(o.Tool, o.Targets[baseline].Places, c.Workload)
	if err != nil && o.Tool.Supports(c.Workload) == nil {
		return fmt.Errorf("the baseline %s cannot: %w", e.Baseline, err)
	}
	return err
}

// lacks lists the cases that a target cannot do; one line if it is all of them for one reason.
func (o Options) lacks(e *result.Experiment, t Target, cases []family.Case) []result.NotMeasured {
	var list []result.NotMeasured
	one := true
	for _, c := range cases {
		if c.Role == result.Bound && e.BoundsOf(t.Name) != t.Name {
			continue
		}
		err := Measurable(o.Tool, t.Places, c.Workload)
		if err == nil {
			one = false
			continue
		}
		list = append(list, result.NotMeasured{Target: t.Name, Case: c.Name(), Reason: err.Error()})
		one = one && list[0].Reason == err.Error()
	}
	if one && len(list) > 1 {
		return []result.NotMeasured{{Target: t.Name, Case: "*", Reason: list[0].Reason}}
	}
	return list
}
