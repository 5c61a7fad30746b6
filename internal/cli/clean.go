package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newClean(s Streams) *cobra.Command {
	var texts []string
	var flags kindFlags
	var how target.Cleaning
	var yes bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove leftovers of interrupted experiments",
		Long: `List what experiments left, and remove it where the experiment was interrupted. What belongs to one that
runs stays, and so does what Knotmeter did not make or cannot tell of; --all removes these too. The lab leaves nothing
but, after a crash of its holder, empty control groups. On a cluster, which --target kube:CONTEXT names, leftovers have
Knotmeter's label; an experiment that was killed counts as running for two minutes. Its mounts in the Vault that a
target's option vault= or VAULT_ADDR names are removed when their run must be over.`,
		Example: `  knotmeter clean --target kube:production --dry-run
  knotmeter clean --target kube:production`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			specs, err := flags.specs(texts)
			if err != nil {
				return err
			}
			if err := agreeToClean(s.Err, specs, yes); err != nil {
				return err
			}
			return clean(c.Context(), s, specs, how, yes)
		},
	}
	flags.register(c)
	f := c.Flags()
	f.StringArrayVar(&texts, "target", nil, "only what belongs to this target; repeated")
	f.BoolVar(&how.DryRun, "dry-run", false, "list, and remove nothing")
	f.BoolVar(&how.All, "all", false,
		"also what running experiments use, and what nothing tells of whether it is in use; wants --yes")
	f.BoolVar(&yes, "yes", false, "agree to what needs consent: --all, or a token for the Vault that VAULT_ADDR names")
	return c
}

// clean lists what there is and removes what is left over; with --all, which wants --yes, the rest too.
func clean(ctx context.Context, s Streams, specs []target.Spec, how target.Cleaning, yes bool) error {
	unwanted := how.All && !yes && !how.DryRun
	how.DryRun = how.DryRun || unwanted
	found := 0
	how.Found = func(l target.Leftover) {
		found++
		switch {
		case !l.Removed:
			fmt.Fprintf(s.Out, "left alone: %s: %s\n", l.Name, l.Doubt)
		case l.Doubt != "":
			fmt.Fprintf(s.Out, "to remove all the same: %s: %s\n", l.Name, l.Doubt)
		default:
			fmt.Fprintln(s.Out, "left over: "+l.Name)
		}
	}
	var errs []error
	for _, k := range registry.Kinds() {
		own := slices.DeleteFunc(slices.Clone(specs), func(s target.Spec) bool { return s.Kind != k.Name })
		if len(specs) > 0 && len(own) == 0 {
			continue
		}
		names, err := k.Clean(ctx, own, how)
		errs = append(errs, err)
		for _, name := range names {
			fmt.Fprintln(s.Out, "removed "+name)
		}
	}
	err := errors.Join(errs...)
	switch {
	case err == nil && found == 0:
		fmt.Fprintln(s.Out, "nothing was left behind")
	case err == nil && unwanted:
		return errors.New("--all: experiments that run lose what is listed, and it may not be Knotmeter's; " +
			"add --yes to remove it")
	}
	return err
}

// agreeToClean asks for consent to what cleaning sends to Vaults, and writes which ones.
func agreeToClean(errs io.Writer, specs []target.Spec, yes bool) error {
	var x experiment
	defer x.close(errs)
	if err := x.openTargets(specs); err != nil {
		return err
	}
	var list []plan.Concern
	asked := applications("", x.config.Targets)
	for _, to := range asked {
		list = append(list, destinationConcerns(to)...)
	}
	if err := consent(unique(list), yes); err != nil {
		return err
	}
	announce(errs, asked)
	return nil
}
