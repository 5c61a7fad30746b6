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

// Limits of a design, in addition to plan.MaxBlocks. The shortest window is the step of a run's series.
const (
	minRun    = 0.1  // seconds of the window
	maxRun    = 3600 // seconds of the window, and of the warm-up
	maxBudget = 1e9  // seconds
)

// DefaultDesign returns the sequential default, with looks after 8, 11, 15, 21 and 30 blocks. Its window of 1 s suits
// targets on one machine; 10 s suit a cluster better.
func DefaultDesign() result.Design {
	return result.Design{
		Kind: "randomised complete blocks", Blocks: 30, Looks: []int{8, 11, 15, 21, 30},
		Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02,
	}
}

// ErrOption is wrapped by every error about an option; the error's text names the flag.
var ErrOption = errors.New("invalid option")

// Options describe the experiment that [Resolve] plans.
type Options struct {
	ID      string // of the experiment, see store.NewID
	Version string // of this program
	Created time.Time

	Targets  []Target       // in the order of the output
	Baseline string         // name of a target; empty: the first
	Suites   []family.Suite // suites to measure, one after another
	// Cases are patterns that choose from the suites' cases, or full names that add cases; see [result.Match]. A
	// pattern with parameters at its end adds these to the cases that match the part before them.
	Cases []string
	// MaxRate limits the rate of bulk workloads, in bit/s; 0: no limit.
	MaxRate float64
	// Primary are patterns of the primary cases; empty: those of the suites.
	Primary []string
	// Metric replaces the main metric of every case whose workload has it; empty: each case's own.
	Metric   string
	Families family.List // for full names of cases
	Tool     family.Tool
	Seed     uint64
	Design   result.Design   // start from [DefaultDesign]
	Gates    []string        // recorded here, checked after the experiment
	Restore  *result.Command // command after targets were measured in turn; nil: none
}

// Resolve turns options into the plan of an experiment. It asks targets and tool what they support, without changing
// anything, and lists the rest under NotMeasured. An error wraps ErrOption, or result.ErrNotSupported if the baseline
// supports none of the cases.
//
// The reference of a chosen case, which the code calls its bound, is kept too, with the role result.Bound. If the
// patterns of Cases choose no primary case, all the chosen cases become primary: a user who names cases wants verdicts
// on them.
func Resolve(ctx context.Context, o Options) (result.Experiment, error) {
	if err := o.check(); err != nil {
		return result.Experiment{}, err
	}
	cases, err := o.chooseCases()
	if err != nil {
		return result.Experiment{}, err
	}
	if err := o.choosePrimaries(cases); err != nil {
		return result.Experiment{}, err
	}
	if err := o.limitRates(cases); err != nil {
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
	if err := Check(e); err != nil {
		return e, err
	}
	if e.Design.Parallel {
		if err := checkDisjoint(ctx, o.Targets); err != nil {
			return e, err
		}
	}
	if err := o.addCases(&e, cases); err != nil {
		return e, err
	}
	if err := o.checkLives(e); err != nil {
		return e, err
	}
	return e, o.checkPrimaries(e)
}

// checkLives returns an error if the sites of a block are predicted to expire before its runs end.
func (o Options) checkLives(e result.Experiment) error {
	durations := plan.NewDurations(e, CaseTimes(e, o.Families))
	longest := time.Duration(durations.Longest() * float64(time.Second))
	if b := time.Duration(e.Design.Budget * float64(time.Second)); b > 0 {
		longest = min(longest, b)
	}
	for _, t := range o.Targets {
		if m, is := t.Places.(targets.Expiring); is && longest > m.SiteLife() {
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
				ErrOption, other, t.Spec.Text, t.Name, withLabel(t.Spec.Text))
		}
		specs[t.Name] = t.Spec.Text
	}
	if _, ok := specs[o.Baseline]; !ok && o.Baseline != "" {
		names := slices.Sorted(maps.Keys(specs))
		return fmt.Errorf("%w: --baseline: %q is not the name of a target%s",
			ErrOption, o.Baseline, prose.DidYouMean(o.Baseline, names))
	}
	if o.Tool == nil {
		return fmt.Errorf("%w: --tool: there is none", ErrOption)
	}
	return nil
}

// Check returns an error if the design or the commands of a plan are invalid. The plan comes from options, or from a
// results directory that anyone may have edited.
func Check(e result.Experiment) error {
	if err := checkDesign(e.Design); err != nil {
		return err
	}
	switch {
	case e.InTurn() && e.Design.Parallel:
		return fmt.Errorf("%w: --parallel: targets with a switch are never in place at the same time", ErrOption)
	case e.Restore != nil && !e.InTurn():
		return fmt.Errorf("%w: --restore: no target has a switch, so there is nothing to restore", ErrOption)
	}
	commands := []*result.Command{e.Restore}
	for _, t := range e.Targets {
		commands = append(commands, t.Switch)
	}
	for _, c := range commands {
		if c != nil && !(c.Limit > 0 && c.Limit <= maxBudget) {
			return fmt.Errorf("%w: --switch-limit: %gs is not above 0 and up to %gs", ErrOption, c.Limit, maxBudget)
		}
	}
	return nil
}

// withLabel returns the text of a target with an example of a label added.
func withLabel(spec string) string {
	if strings.Contains(spec, "?") {
		return spec + "&label=other"
	}
	return spec + "?label=other"
}

// checkDesign returns an error if a value of the design is out of range: of what is measured, or of its analysis.
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
	}
	if err := d.Check(); err != nil {
		return fmt.Errorf("%w: --%w", ErrOption, err)
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

// suiteCases returns the cases of all suites; a case in several suites keeps its first role.
func (o Options) suiteCases() []family.Case {
	var cases []family.Case
	for _, s := range o.Suites {
		cases = append(cases, s.Cases...)
	}
	return family.Unique(cases)
}

// chooseCases returns the cases that the patterns of --case choose or add.
func (o Options) chooseCases() ([]family.Case, error) {
	all := o.suiteCases()
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
		if all = family.Unique(slices.Concat(all, cases, bounds)); found {
			continue
		}
		c, err := o.Families.Parse(pattern, "")
		if err != nil {
			return nil, fmt.Errorf("%w: --case: %q matches no case of %s and is not the full name of one: %w%s",
				ErrOption, pattern, o.suiteNames(), err, prose.DidYouMean(pattern, verdictNames(all)))
		}
		all = family.Unique(append(all, c))
		chosen[c.Name()] = true
	}
	return keepChosen(all, chosen), nil
}

// parametrized returns the suites' cases that match the part of a pattern before the colon, with the parameters after
// the colon added. It also returns the bounds of these cases with the same parameters, if the suites contain the bounds
// without them.
func (o Options) parametrized(pattern string) (cases, bounds []family.Case, err error) {
	head, parameters, has := strings.Cut(pattern, ":")
	if !has || !strings.ContainsAny(head, "*?") {
		return nil, nil, nil
	}
	all := o.suiteCases()
	for _, c := range all {
		if !result.Match(head, c.Name()) {
			continue
		}
		separator := ":"
		if strings.Contains(c.Name(), ":") {
			separator = ","
		}
		own, err := o.Families.Parse(c.Name()+separator+parameters, c.Workload.Traits().Definition)
		if err != nil {
			return nil, nil, err
		}
		own.Role = c.Role
		cases = append(cases, own)
		bound := boundName(c)
		if slices.ContainsFunc(all, func(c family.Case) bool { return c.Name() == bound }) {
			bounds = append(bounds, family.Case{Workload: own.Workload.Traits().Reference, Role: result.Bound})
		}
	}
	return cases, bounds, nil
}

// keepChosen returns the chosen cases and their bounds. If no chosen case is primary, all become primary.
func keepChosen(all []family.Case, chosen map[string]bool) []family.Case {
	bounds := map[string]bool{}
	for _, c := range all {
		if chosen[c.Name()] {
			bounds[boundName(c)] = true
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

// choosePrimaries sets the roles of cases by the patterns of --primary, if there are any.
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
			// A bound is not measured on every target, so it has no verdict.
			if c.Role != result.Bound && result.Match(pattern, c.Name()) {
				cases[i].Role, found = result.Primary, true
			}
		}
		if !found {
			return fmt.Errorf("%w: --primary: %q matches %s", ErrOption, pattern, explainNoPrimary(pattern, cases))
		}
	}
	return nil
}

// explainNoPrimary returns the end of the error about a pattern that matches no case that can be primary.
func explainNoPrimary(pattern string, cases []family.Case) string {
	for _, c := range cases {
		if c.Role == result.Bound && result.Match(pattern, c.Name()) {
			return "only node-to-node references, on which there is no verdict: " + c.Name()
		}
	}
	return "none of the cases that are measured on every target" + prose.DidYouMean(pattern, verdictNames(cases))
}

// limitRates applies --max-rate to the workloads of cases.
func (o Options) limitRates(cases []family.Case) (err error) {
	for i, c := range cases {
		if w, is := c.Workload.(family.Capped); is && o.MaxRate > 0 {
			if cases[i].Workload, err = w.Capped(o.MaxRate); err != nil {
				return fmt.Errorf("%w: --max-rate: %w", ErrOption, err)
			}
		}
	}
	return nil
}

// checkPrimaries returns an error if a pattern of --primary matches only cases that cannot be measured.
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

// boundName returns the name of the case that bounds c; empty if there is none.
func boundName(c family.Case) string {
	if r := c.Workload.Traits().Reference; r != nil {
		return r.String()
	}
	return ""
}

// verdictNames returns the names of the cases that can have verdicts: all but bounds.
func verdictNames(cases []family.Case) []string {
	var list []string
	for _, c := range cases {
		if c.Role != result.Bound {
			list = append(list, c.Name())
		}
	}
	return list
}

// addCases adds to e the cases that tool and targets support, and lists the rest under NotMeasured.
func (o Options) addCases(e *result.Experiment, cases []family.Case) error {
	var possible []family.Case
	var last error
	for _, c := range cases {
		if err := o.checkCase(e, c); err != nil {
			last = err
			e.NotMeasured = append(e.NotMeasured, result.NotMeasured{Target: "*", Case: c.Name(), Reason: err.Error()})
			continue
		}
		possible = append(possible, c)
	}
	if len(possible) == 0 {
		return fmt.Errorf("none of the %d cases can be measured, the last because %w", len(cases), last)
	}
	e.Tool = o.toolNames(possible)
	if err := o.checkMetric(possible); err != nil {
		return err
	}
	for _, c := range possible {
		rc, bound := c.Planned(), boundName(c)
		if slices.Contains(o.comparedMetrics(c), o.Metric) {
			rc.Metric, rc.Words.Quantity = o.Metric, o.Metric
		}
		if slices.ContainsFunc(possible, func(c family.Case) bool { return c.Name() == bound }) {
			rc.Bound = bound
		}
		e.Cases = append(e.Cases, rc)
	}
	for _, t := range o.Targets {
		if t.Name != e.Baseline {
			e.NotMeasured = append(e.NotMeasured, o.unsupported(e, t, possible)...)
		}
	}
	return nil
}

// comparedMetrics returns the names of the metrics on which a case can have verdicts.
func (o Options) comparedMetrics(c family.Case) []string {
	var names []string
	for _, m := range o.Tool.Metrics(c.Workload) {
		if m.Better != metric.Neutral {
			names = append(names, m.Name)
		}
	}
	return names
}

// checkMetric returns an error if no case can have verdicts on the metric of --metric.
func (o Options) checkMetric(cases []family.Case) error {
	known := map[string]bool{}
	for _, c := range cases {
		for _, name := range o.comparedMetrics(c) {
			known[name] = true
		}
	}
	if o.Metric == "" || known[o.Metric] {
		return nil
	}
	return fmt.Errorf("%w: --metric: no case can have verdicts about %q; there are %s",
		ErrOption, o.Metric, prose.Choices(o.Metric, slices.Sorted(maps.Keys(known))))
}

// toolNames returns the names of the tools that the cases use, joined in the order in which they are tried.
func (o Options) toolNames(cases []family.Case) string {
	all, is := o.Tool.(family.Set)
	if !is {
		return o.Tool.Name()
	}
	var used family.Set
	for _, t := range all {
		if slices.ContainsFunc(cases, func(c family.Case) bool { return family.ToolFor(all, c.Workload) == t }) {
			used = append(used, t)
		}
	}
	return used.Name()
}

// Measurable returns nil if a tool can measure a workload on a target, as far as is known before a site is opened. Else
// the error is the reason, with a remedy if there is one.
func Measurable(by family.Tool, places targets.Target, w family.Workload) error {
	if err := by.Supports(w); err != nil {
		return fmt.Errorf("%s cannot: %w", by.Name(), err)
	}
	return places.Supports(Placement(by, w, 0))
}

// Placement returns what a run of a workload by a tool needs of a target's site.
func Placement(by family.Tool, w family.Workload, rotation int) targets.Placement {
	p := w.Traits().Needs
	p.Rotation, p.Program = rotation, by.Program(w)
	return p
}

// checkCase returns an error if the tool or the baseline does not support a case, so that it cannot be measured at all.
func (o Options) checkCase(e *result.Experiment, c family.Case) error {
	baseline := slices.IndexFunc(o.Targets, func(t Target) bool { return t.Name == e.Baseline })
	err := Measurable(o.Tool, o.Targets[baseline].Places, c.Workload)
	if err != nil && o.Tool.Supports(c.Workload) == nil {
		return fmt.Errorf("the baseline %s cannot: %w", e.Baseline, err)
	}
	return err
}

// unsupported lists the cases that a target does not support; in one entry if it is all of them for one reason.
func (o Options) unsupported(e *result.Experiment, t Target, cases []family.Case) []result.NotMeasured {
	var list []result.NotMeasured
	sameReason := true
	for _, c := range cases {
		if c.Role == result.Bound && e.BoundsOf(t.Name) != t.Name {
			continue
		}
		err := Measurable(o.Tool, t.Places, c.Workload)
		if err == nil {
			sameReason = false
			continue
		}
		list = append(list, result.NotMeasured{Target: t.Name, Case: c.Name(), Reason: err.Error()})
		sameReason = sameReason && list[0].Reason == err.Error()
	}
	if sameReason && len(list) > 1 {
		return []result.NotMeasured{{Target: t.Name, Case: "*", Reason: list[0].Reason}}
	}
	return list
}

// CaseTimes returns the usual times of the cases of an experiment that belong to one of the families, by name of the
// case.
func CaseTimes(e result.Experiment, families family.List) map[string]plan.CaseTimes {
	times := map[string]plan.CaseTimes{}
	for _, c := range e.Cases {
		for _, f := range families {
			if !slices.Contains(f.Paths, string(c.Path)) {
				continue
			}
			of := plan.CaseTimes{Family: f.Name}
			if w, err := f.Parse(string(c.Path), c.Workload, c.Definition); err == nil {
				t := w.Traits()
				of.Sitting, of.Application = t.Sitting(), t.Needs.Application
				of.Site, of.First, of.Run, of.Windows = t.Nominal.Site, t.Nominal.First, t.Nominal.Run, t.Nominal.Windows
			}
			times[c.Name] = of
		}
	}
	return times
}
