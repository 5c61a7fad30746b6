package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func newExplain(s Streams, version string) *cobra.Command {
	var verbose, confirm, yes bool
	c := &cobra.Command{
		Use:   "explain DIR",
		Short: "Print causes of the differences in a results directory",
		Long: `Print the candidates for the cause of each difference in a results directory, each
with its evidence: supported, a difference without a shown effect, contradicted, or
not observable here. What counts is what differs between the two targets in the
blocks of the verdict. --confirm also runs trials: the better target again, made
like the worse one in one thing at a time. docs/explain.md has the rules;
'compare -o json' has all evidence as data.`,
		Example: `  knotmeter explain results/2026-12-01-a1b2
  knotmeter explain results/2026-12-01-a1b2 --confirm`,
		Args:              operands(1, 1),
		ValidArgsFunction: limitArgs(1, offerResults),
		RunE: func(c *cobra.Command, dirs []string) error {
			if confirm {
				if err := confirmAll(c.Context(), s, version, dirs[0], yes); err != nil {
					return err
				}
			}
			l, err := await(c.Context(), func() (*loaded, error) { return resultOptions{}.load(dirs[0]) })
			if err != nil {
				return err
			}
			warn(s.Err, l.warnings...)
			return report.CausesText(coloured(s.Out), l.Causes, verbose)
		},
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "also the evidence of candidates without support")
	c.Flags().BoolVar(&confirm, "confirm", false, "measure what making one thing equal changes; results go to DIR/"+trials)
	c.Flags().BoolVar(&yes, "yes", false, "consent to the trials' load, as of run")
	return c
}

// trials is the folder of a results directory for the experiments that confirm causes, one per explanation.
const trials = "trials"

// trialName returns the name of a trial's results directory in the one that it belongs to.
func trialName(explanation int) string { return trials + "/" + strconv.Itoa(explanation+1) }

// confirmAll runs a trial for each explanation of a primary case, unless it has one already or cannot have one. It asks
// before it uses what a directory from elsewhere names.
func confirmAll(ctx context.Context, s Streams, version, dir string, yes bool) error {
	l, err := await(ctx, func() (*loaded, error) { return resultOptions{}.load(dir) })
	if err != nil {
		return err
	}
	if l.Experiment.InTurn() {
		fmt.Fprintln(s.Err, "No trials: the targets were measured in turn, and a trial would not switch to them.")
		return nil
	}
	if e := l.Experiment; e.Imported != "" {
		return fmt.Errorf("--confirm: %s was imported from another tool (%s) and cannot be measured again", dir, e.Imported)
	}
	if err := trust(ctx, s, "--confirm", dir, l.Experiment, specsOf(l.Experiment), yes); err != nil {
		return err
	}
	planned := 0
	for i, x := range l.Causes {
		of, _ := l.Experiment.Case(x.Case)
		t, ok := explain.NewConfirmationPlan(x, l.Experiment)
		if !ok || of.Role != result.Primary {
			continue
		}
		planned++
		if has, err := store.HasDir(dir, trialName(i)); has || err != nil {
			if err != nil {
				return fmt.Errorf("trial of %s: %w", x.Case, err)
			}
			continue
		}
		out := filepath.Join(dir, trialName(i))
		fmt.Fprintf(s.Err, "Trial %d: %s of %s, in %s\n", planned, x.Case, unit.Plural(len(t.Targets), "target"), out)
		run := newRun(Streams{In: s.In, Out: io.Discard, Err: s.Err}, version)
		run.SetArgs(trialArgs(t, l.Experiment.Design, out, yes))
		run.SilenceErrors, run.SilenceUsage = true, true
		if err := run.ExecuteContext(ctx); err != nil {
			return fmt.Errorf("trial of %s: %w", x.Case, err)
		}
	}
	if planned == 0 {
		fmt.Fprintln(s.Err, "No trials: nothing that may be a cause can be made equal on these targets.")
	}
	return nil
}

// trialBlocks is the number of blocks of a trial.
const trialBlocks = 8

// trialArgs returns the arguments of run for a trial, with the window and warm-up of the experiment.
func trialArgs(t explain.ConfirmationPlan, d result.Design, out string, yes bool) []string {
	seconds := func(v float64) string { return time.Duration(v * float64(time.Second)).String() }
	args := []string{"--out", out, "--blocks", strconv.Itoa(trialBlocks), "--primary", "*",
		"--duration", seconds(d.Duration), "--warmup", seconds(d.Warmup)}
	for _, text := range t.Targets {
		args = append(args, "--target", text)
	}
	for _, name := range t.Cases {
		args = append(args, "--case", name)
	}
	if yes {
		args = append(args, "--yes")
	}
	return args
}

// addConfirmations adds the results of existing trials to the explanations.
func addConfirmations(dir string, e result.Experiment, list []explain.Explanation) error {
	for i := range list {
		x := &list[i]
		t, ok := explain.NewConfirmationPlan(*x, e)
		if !ok {
			continue
		}
		has, err := store.HasDir(dir, trialName(i))
		if err == nil && !has {
			continue
		}
		var r *store.Results
		if err == nil {
			r, err = openResults(filepath.Join(dir, trialName(i)))
		}
		if err != nil {
			return fmt.Errorf("trial of %s: %w", x.Case, err)
		}
		if t.Matches(r.Experiment) {
			x.Decide(t.Confirm(r.Results, x.Metric))
		}
	}
	return nil
}
