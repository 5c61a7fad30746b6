package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func newRun(s Streams, version string) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "run",
		Short: "Measure and compare targets",
		Long: `Measure every case on every target in randomised blocks, each in a fresh site, and compare the targets with the
first, the baseline. A TARGET is lab:DATAPATH, kube:CONTEXT or local:DIR ('knotmeter list targets'). After 8, 11, 15, 21
and 30 blocks (--looks) a case ends if it is decided. Results are written as runs end; --resume continues them.`,
		Example: `  knotmeter run lab:native lab:vxlan --suite network:quick --budget 5m
  knotmeter run lab:native 'lab:native?label=again' --blocks 11
  knotmeter run -f experiment.yaml --gate 'pod-pod/*/tcp-rr p99 <= +5%' -o junit`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.read(c.Context(), args); err != nil {
				return err
			}
			return o.run(c.Context(), s, version)
		},
	}
	acceptTargetArgs(c)
	o.register(c)
	completeFlag(c, "output", outputs)
	return c
}

// run carries out the experiment and prints the comparison, even if the experiment ended early.
func (o *options) run(ctx context.Context, s Streams, version string) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	shown, err := newProgress(o.progress, s)
	if err != nil {
		return err
	}
	x, err := o.prepare(ctx, s, version)
	if err != nil {
		return err
	}
	defer x.close(s.Err)
	x.config.Events, x.config.Decide = shown.event, shown.withBoard(x.config.Experiment, x.config.Decide)
	summary, err := runner.Run(ctx, x.config)
	warn(s.Err, append(x.changes(summary.Session), summary.Warnings...)...)
	left := notRestored(x.config.Experiment, summary)
	if err != nil {
		return worstError(failure("%w; the results so far are in %s; fix this, then resume with: %s",
			err, x.dir, o.resumeCommand(x)), left)
	}
	var trials error
	if o.explain && summary.Stopped == runner.StopComplete {
		x.close(s.Err) // trials are experiments that claim the same targets
		trials = confirmAll(ctx, s, version, x.dir, o.yes)
	}
	gates, output, err := o.conclude(s, x, summary)
	if err != nil {
		return worstError(err, left)
	}
	return worstError(o.outcome(ctx, x, summary), left, trials, gates, output)
}

// failure returns an error with the status of a failed run.
func failure(format string, a ...any) error {
	return &statusError{statusRunFailed, fmt.Errorf(format, a...)}
}

// worstError joins errors and gives them the most important status: an interruption, then a failed gate, then failed
// runs, then a closed output, then an inconclusive gate. Errors without one of these count as failed runs.
func worstError(errs ...error) error {
	order := []int{statusInterrupted, statusGateFailed, statusRunFailed, statusClosed, statusGateOpen}
	first := len(order)
	for _, err := range errs {
		if err == nil {
			continue
		}
		status := slices.Index(order, statusRunFailed)
		if e, ok := errors.AsType[*statusError](err); ok && slices.Contains(order, e.status) {
			status = slices.Index(order, e.status)
		}
		first = min(first, status)
	}
	all := errors.Join(errs...)
	if all == nil {
		return nil
	}
	return &statusError{order[first], all}
}

// conclude compares the results so far, prints the comparison and writes the report. If printing fails, it still writes
// the report. It returns the error of the gates and that of the output separately.
func (o *options) conclude(s Streams, x *experiment, summary runner.Summary) (gates, output, err error) {
	e, err := resultOptions{reference: o.reference, matches: o.matches}.load(x.dir)
	if err != nil {
		return nil, nil, err
	}
	e.verbose = o.verbose
	printed := e.print(s, o.output)
	if printed == nil && o.explain && o.output == "table" {
		printed = report.CausesText(coloured(s.Out), e.Causes, false)
	}
	switch {
	case errors.Is(printed, errClosed):
		printed = &statusError{statusClosed, fmt.Errorf("%w; the results are in %s", errClosed, x.dir)}
	case printed != nil:
		printed = failure("the comparison was not printed: %w; the results are in %s", printed, x.dir)
	}
	gates = gateStatus(e.Comparison)
	pages, err := e.writeFormat(findFormat("html"), x.dir)
	if err != nil {
		unwritten := failure("the report was not written: %w; the results are in %s", err, x.dir)
		return gates, worstError(printed, unwritten), nil
	}
	fmt.Fprintf(s.Err, "Report: %s (%s, %.0f %% of the time measuring)\n",
		pages[0], unit.Plural(summary.Runs, "run"), 100*summary.Share())
	return gates, printed, nil
}

// resumeCommand returns the command that resumes the experiment. It repeats --yes, since consent is not recorded.
func (o *options) resumeCommand(x *experiment) string {
	command := "knotmeter run --resume " + x.dir
	if o.yes {
		command += " --yes"
	}
	return command
}

// outcome returns the error for the way in which the experiment ended, nil if it succeeded.
func (o *options) outcome(ctx context.Context, x *experiment, summary runner.Summary) error {
	switch {
	case summary.Stopped == runner.StopInterrupted:
		return stopped(ctx, "; resume with: "+o.resumeCommand(x))
	case summary.Stopped == runner.StopUnavailable:
		return failure("%s; fix this, then resume with: %s", summary.Unavailable, o.resumeCommand(x))
	case summary.GivenUp > 0:
		last := summary.NotMeasured[len(summary.NotMeasured)-1]
		return failure("%s given up after failed attempts, which the results list as not measured; %s: %s",
			unit.Plural(summary.GivenUp, "case"), last.Case, last.Reason)
	case summary.Runs+len(x.config.Earlier) == 0 && len(summary.NotMeasured) > 0:
		return failure("nothing was measured: %s", summary.NotMeasured[0].Reason)
	}
	return nil
}
