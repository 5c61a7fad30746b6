package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func newClean(s Streams) *cobra.Command {
	var texts []string
	var flags kindFlags
	var how targets.Cleaning
	var yes bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove leftovers of interrupted experiments",
		Long: `List what experiments left behind, and remove what belongs to an interrupted one.
What a running experiment uses stays, and so does what Knotmeter did not make or
cannot attribute; --all removes these too.

On a cluster, leftovers carry Knotmeter's label; a killed experiment counts as
running for two minutes. Mounts in the Vault that the option vault= or VAULT_ADDR
names are removed once their run must be over. The lab leaves only empty control
groups, and only if its holder crashed. Even with --all, groups without
Knotmeter's mark stay, and directories that a running program works in.`,
		Example: `  knotmeter clean kube:production --dry-run
  knotmeter clean kube:production`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := setTargetFlag(c.Flags(), args); err != nil {
				return err
			}
			specs, err := flags.specs(texts)
			if err != nil {
				return err
			}
			if err := agreeToClean(c.Context(), s, specs, yes); err != nil {
				return err
			}
			return clean(c.Context(), s, specs, how, yes)
		},
	}
	acceptTargetArgs(c)
	f := c.Flags()
	f.StringArrayVar(&texts, targetFlag, nil, "`TARGET` clean only this target, the same as an argument; repeated")
	f.BoolVar(&how.DryRun, "dry-run", false, "list leftovers and remove nothing")
	f.BoolVar(&how.All, "all", false, "remove also what is in use or may be; needs --yes")
	f.BoolVar(&yes, "yes", false, "consent to --all, or to sending a token to the Vault that VAULT_ADDR names")
	flags.register(c)
	return c
}

// clean lists and removes leftovers; with --all, which needs --yes, also those that are or may be in use.
func clean(ctx context.Context, s Streams, specs []result.Spec, how targets.Cleaning, yes bool) error {
	unconfirmed := how.All && !yes && !how.DryRun // only list, then fail
	how.DryRun = how.DryRun || unconfirmed
	found := 0
	how.Found = func(l targets.Leftover) {
		found++
		switch {
		case !l.Removable:
			fmt.Fprintf(s.Out, "kept: %s: %s\n", l.Name, l.Reason)
		case l.Reason != "":
			fmt.Fprintf(s.Out, "leftover, perhaps in use: %s: %s\n", l.Name, l.Reason)
		default:
			fmt.Fprintln(s.Out, "leftover: "+l.Name)
		}
	}
	var errs []error
	for _, k := range registry.Kinds() {
		// Without targets each kind cleans what it can find by itself, such as the control groups of labs.
		own := slices.DeleteFunc(slices.Clone(specs), func(s result.Spec) bool { return s.Kind != k.Name })
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
		fmt.Fprintln(s.Out, "no leftovers")
	case err == nil && unconfirmed:
		return errors.New("--all: running experiments lose what is listed, and it may not be Knotmeter's; " +
			"add --yes to remove it")
	}
	return err
}

// agreeToClean asks for consent to the requests that cleaning sends to Vaults, and prints their destinations. Without
// targets no Vault is cleaned.
func agreeToClean(ctx context.Context, s Streams, specs []result.Spec, yes bool) error {
	var x experiment
	defer x.close(s.Err)
	if err := x.openTargets(specs); err != nil {
		return err
	}
	var list []plan.Concern
	vaults := applications(everyApplication, x.config.Targets)
	for _, to := range vaults {
		list = append(list, destinationConcerns(to)...)
	}
	if err := consent(ctx, s, unique(list), &yes); err != nil {
		return err
	}
	announce(s.Err, vaults)
	return nil
}
