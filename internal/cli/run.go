package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/runner"
)

func newRun(s Streams, version string) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "run",
		Short: "Measure and compare targets",
		Long: `Measure every case on every target in randomised blocks, each in a fresh site,
and compare the targets with the baseline. After 8, 11, 15, 21 and 30 blocks (--looks)
a case stops if its comparisons are decided; the error probability counts every look.
The results directory is written as the runs end; an interrupted experiment goes on
with --resume.`,
		Example: `  knotmeter run --target lab:native --target lab:vxlan --suite network:quick --budget 5m
  knotmeter run --target lab:native --target 'lab:native?label=again' --blocks 11
  knotmeter run -f experiment.yaml --gate 'pod-pod/*/tcp-rr p99 <= +5%' -o junit`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.read(); err != nil {
				return err
			}
			return o.run(c.Context(), s, version)
		},
	}
	o.register(c)
	return c
}

// run carries out the experiment and prints the comparison, also of one that was cut short.
func (o *options) run(ctx context.Context, s Streams, version string) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	show, err := newProgress(o.progress, s)
	if err != nil {
		return err
	}
	x, err := o.prepare(ctx, s.Err, version)
	if err != nil {
		return err
	}
	defer x.close(s.Err)
	x.config.Events = show
	summary, err := runner.Run(ctx, x.config)
	warn(s.Err, append(x.changes(summary.Session), summary.Warnings...)...)
	if err != nil {
		return failure("%w; what was measured is in %s; when that is mended, go on with: %s", err, x.dir, o.again(x))
	}
	gates, page, err := o.conclude(s, x, summary)
	if err != nil {
		return err
	}
	return worst(o.outcome(x, summary), gates, page)
}

// failure is the error that a run failed.
func failure(format string, a ...any) error {
	return &statusError{statusRunFailed, fmt.Errorf(format, a...)}
}

// worst joins two ends of an experiment, with the status of the one that counts: an interruption,
// then a failed gate, which is a fact whatever else went wrong, then failed runs, then an open gate.
func worst(ends ...error) error {
	order := []int{statusInterrupted, statusGateFailed, statusRunFailed, statusGateOpen}
	first := len(order)
	for _, err := range ends {
		if e, ok := errors.AsType[*statusError](err); ok {
			first = min(first, slices.Index(order, e.status))
		}
	}
	all := errors.Join(ends...)
	if all == nil {
		return nil
	}
	return &statusError{order[first], all}
}

// conclude compares what there is, prints the comparison and writes the report, in this order, so that a page that
// cannot be written costs nothing else. The first error is what became of the gates, the second of the page.
func (o *options) conclude(s Streams, x *experiment, summary runner.Summary) (gates, page, err error) {
	e, err := judgement{reference: o.reference}.load(x.dir)
	if err != nil {
		return nil, nil, err
	}
	if err := e.print(s, o.output); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(s.Err, "%d runs, %.0f %% of the time measuring.\nAgain: %s compare %s\n",
		summary.Runs, 100*summary.Share(), s.caller.command(), x.dir)
	report, err := e.writeFormat(findFormat("html"), x.dir)
	if err != nil {
		page = failure("the report was not written: %w; the results are in %s", err, x.dir)
		return gateStatus(e.Comparison), page, nil
	}
	fmt.Fprintf(s.Err, "Report: %s\n", report)
	return gateStatus(e.Comparison), nil, nil
}

// again is the command that resumes an experiment. What was agreed to has to be again.
func (o *options) again(x *experiment) string {
	command := "knotmeter run --resume " + x.dir
	if o.yes {
		command += " --yes"
	}
	return command
}

// outcome is the error that the experiment's end stands for.
func (o *options) outcome(x *experiment, summary runner.Summary) error {
	switch {
	case summary.Stopped == runner.StopInterrupted:
		return &statusError{statusInterrupted, fmt.Errorf("interrupted; go on with: %s", o.again(x))}
	case summary.Stopped == runner.StopUnavailable:
		return failure("%s; when that is mended, go on with: %s", summary.Unavailable, o.again(x))
	case summary.GivenUp > 0:
		return failure("%d cases were given up after failed attempts; not_measured says why", summary.GivenUp)
	case summary.Runs+len(x.config.Earlier) == 0 && len(summary.NotMeasured) > 0:
		return failure("nothing was measured: %s", summary.NotMeasured[0].Reason)
	}
	return nil
}
