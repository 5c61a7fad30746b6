package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func newPlan(s Streams, version string) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what run would do, and what it could detect",
		Long: `Show the cases, blocks and minutes of an experiment, and the smallest change that
it detects with a probability of 80 %. It measures and writes nothing.

How many blocks a verdict takes depends on how much runs spread here. --from takes
that from earlier results, with the duration of runs; --pilot measures four blocks
of the primary cases and keeps none of them.`,
		Example: `  knotmeter plan lab:native lab:vxlan --suite network:quick --pilot --budget 5m
  knotmeter plan -f experiment.yaml --from results/2026-12-01-a1b2 -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.read(c.Context(), args); err != nil {
				return err
			}
			return o.plan(c.Context(), s, version)
		},
	}
	acceptTargetArgs(c)
	o.register(c)
	completeFlag(c, "output", tableOrJSON)
	return c
}

// tableOrJSON are the output formats of commands that print text or one JSON document.
var tableOrJSON = []string{"table", "json"}

// plan resolves an experiment as run does, and prints it.
func (o *options) plan(ctx context.Context, s Streams, version string) (err error) {
	if err := oneOf("--output", o.output, tableOrJSON); err != nil {
		return err
	}
	if o.pilot && o.from != "" {
		return errors.New("--pilot: --from already gives the spread of runs; leave one of them out")
	}
	var x experiment
	shown, err := newProgress(o.progress, s)
	if err != nil {
		return err
	}
	x.config.Events = shown.event
	defer x.close(s.Err)
	if err := x.resolve(ctx, o, version); err != nil {
		return err
	}
	e := x.config.Experiment
	if err := warnOfDesign(s.Err, e); err != nil {
		return err
	}
	d := plan.Document{Schema: plan.Schema, Experiment: e, Consent: concerns(e, x.config.Targets)}
	if d.Rotation, err = rotation(ctx, x.config.Targets); err != nil {
		return err
	}
	var k plan.EarlierResults
	switch {
	case o.from != "":
		k, err = await(ctx, func() (plan.EarlierResults, error) { return earlier(o.from, e) })
	case o.pilot:
		k, err = x.pilot(ctx, s, o)
	}
	if err != nil {
		return err
	}
	if err := d.Predict(k, runner.CaseTimes(d.Experiment, x.config.Families)); err != nil {
		return err
	}
	if o.output == "json" {
		return printJSON(s.Out, d)
	}
	return report.Plan(s.Out, d)
}

// rotation returns the pairs of nodes of the targets that rotate, by target.
func rotation(ctx context.Context, measured []runner.Target) (map[string][]plan.NodePair, error) {
	pairs := map[string][]plan.NodePair{}
	for _, t := range measured {
		r, is := t.Places.(targets.Rotator)
		if !is {
			continue
		}
		nodes, err := r.Nodes(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		for _, n := range nodes {
			pairs[t.Name] = append(pairs[t.Name], plan.NodePair{Client: n[0], Server: n[1]})
		}
	}
	return pairs, nil
}

// earlier returns the results of a directory for the cases and targets of an experiment.
func earlier(dir string, e result.Experiment) (plan.EarlierResults, error) {
	r, err := store.Open(dir)
	if err != nil {
		return plan.EarlierResults{}, fmt.Errorf("--from: %w", err)
	}
	k, err := plan.Earlier(dir, r.Results, e)
	if err != nil {
		return plan.EarlierResults{}, fmt.Errorf("--from: %w", err)
	}
	return k, nil
}

// pilotBlocks is the number of blocks of a pilot: few, but enough for a first estimate of the spread.
const pilotBlocks = 4

// pilot measures the primary cases of an experiment in a few blocks, if the user consents. The runs are kept in memory
// only. Just their spread and durations are used, never the differences between targets.
func (x *experiment) pilot(ctx context.Context, s Streams, o *options) (plan.EarlierResults, error) {
	if err := x.askConsent(ctx, s, &o.yes); err != nil {
		return plan.EarlierResults{}, err
	}
	c, e := x.config, x.config.Experiment
	if _, err := x.begin(ctx, s.Err, o.share); err != nil {
		return plan.EarlierResults{}, fmt.Errorf("--pilot: %w", err)
	}
	p := e
	p.Design.Blocks, p.Design.Looks, p.Design.Budget, p.Gates = pilotBlocks, nil, 0, nil
	p.Cases = nil
	for _, rc := range e.Cases {
		if rc.Role == result.Primary {
			rc.Bound = ""
			p.Cases = append(p.Cases, rc)
		}
	}
	if plan.Comparisons(p) == 0 {
		return plan.EarlierResults{}, errors.New("--pilot: there is nothing to decide: no primary case has two targets")
	}
	var m memorySink
	c.Experiment, c.Sink, c.Decide = p, &m, nil
	summary, err := runner.Run(ctx, c)
	warn(s.Err, summary.Warnings...)
	left := notRestored(e, summary)
	switch {
	case err != nil || left != nil:
		return plan.EarlierResults{}, failure("--pilot: %w", errors.Join(err, left))
	case summary.Stopped == runner.StopInterrupted:
		return plan.EarlierResults{}, stopped(ctx, "; nothing is kept of a pilot")
	case summary.Stopped == runner.StopUnavailable:
		return plan.EarlierResults{}, failure("--pilot: %s", summary.Unavailable)
	case summary.Runs == 0:
		return plan.EarlierResults{}, failure("--pilot: no run succeeded: %s", m.failureReason(summary))
	}
	p.NotMeasured = summary.NotMeasured
	return plan.EarlierResults{
		Source:  plan.Source{Kind: "pilot", Blocks: pilotBlocks, Seconds: summary.Total},
		Results: result.Results{Experiment: p, Switches: m.switches, Sites: m.sites, Runs: m.runs},
	}, nil
}

// A memorySink is a sink that keeps runs, sites and switches in memory.
type memorySink struct {
	switches []result.Switch
	sites    []result.Site
	runs     []result.Run
}

func (m *memorySink) WriteFacts(string, []result.Fact) error    { return nil }
func (m *memorySink) WriteSession(result.Session) error         { return nil }
func (m *memorySink) WriteNotMeasured(result.NotMeasured) error { return nil }
func (m *memorySink) BeginSwitch(result.Switch) error           { return nil }
func (m *memorySink) WriteSwitch(s result.Switch) (int, error) {
	m.switches = append(m.switches, s)
	return len(m.switches), nil
}
func (m *memorySink) WriteSite(s result.Site) error {
	m.sites = append(m.sites, s)
	return nil
}
func (m *memorySink) Append(r result.Run, _ []result.File) error {
	r.Histograms = nil
	m.runs = append(m.runs, r)
	return nil
}

// failureReason returns the reason why no run succeeded.
func (m *memorySink) failureReason(s runner.Summary) string {
	if len(s.NotMeasured) > 0 {
		return s.NotMeasured[len(s.NotMeasured)-1].Reason
	}
	return "there is nothing to measure"
}

// warnOfDesign prints a warning if the design cannot give a verdict.
func warnOfDesign(errs io.Writer, e result.Experiment) error {
	warning, err := plan.TooFew(e)
	if err == nil && warning != "" {
		warn(errs, warning)
	}
	return err
}
