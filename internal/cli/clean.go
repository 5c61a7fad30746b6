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
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func newClean(s Streams) *cobra.Command {
	var texts []string
	var how targets.Cleaning
	var yes bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove leftovers of interrupted experiments",
		Long: `List what experiments left behind, and remove what belongs to an interrupted one.
What a running experiment uses stays, and so does what Knotmeter did not make or
cannot attribute; --all removes most of these too.

On a cluster, leftovers carry Knotmeter's label; a killed experiment counts as
running for two minutes. Mounts in the Vault that the option vault= or VAULT_ADDR
names are removed once so much time has passed that their run must have ended.
The lab leaves only empty control groups, and only if the process that holds its
namespaces crashed. Even --all keeps control groups without Knotmeter's mark and
work directories that a running program uses. Without TARGET, partial results of
killed imports in this directory and in results/ are removed too.`,
		Example: `  knotmeter clean kube:production --dry-run
  knotmeter clean kube:production`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := setTargetFlag(c.Flags(), args); err != nil {
				return err
			}
			// setTargetFlag added the arguments to texts.
			specs, err := await(c.Context(), func() ([]result.Spec, error) { return parseTargets(texts) })
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
	f.StringArrayVar(&texts, targetFlag, nil, "`TARGET` clean only this target, the same as an argument; may be repeated")
	f.BoolVar(&how.DryRun, "dry-run", false, "list leftovers and remove nothing")
	f.BoolVar(&how.All, "all", false, "also remove what is or may be in use, or may not be Knotmeter's; needs --yes")
	f.BoolVar(&yes, "yes", false, "consent to --all, and to sending a token or secret to a Vault")
	return c
}

// clean lists and removes leftovers; with --all, which needs --yes, also those that are or
// may be in use, or may not be Knotmeter's.
func clean(ctx context.Context, s Streams, specs []result.Spec, how targets.Cleaning, yes bool) error {
	unconfirmed := how.All && !yes && !how.DryRun // only list, and fail if there is anything to remove
	how.DryRun = how.DryRun || unconfirmed
	found, removable := 0, 0
	how.Found = func(l targets.Leftover) {
		found++
		if l.Removable {
			removable++
		}
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
		ofKind := slices.DeleteFunc(slices.Clone(specs), func(spec result.Spec) bool { return spec.Kind != k.Name })
		if len(specs) > 0 && len(ofKind) == 0 {
			continue // without any targets each kind cleans what it can find by itself, such as the control groups of labs
		}
		names, err := k.Clean(ctx, ofKind, how)
		errs = append(errs, err)
		for _, name := range names {
			fmt.Fprintln(s.Out, "removed "+name)
		}
	}
	if len(specs) == 0 {
		errs = append(errs, cleanImports(s, how))
	}
	err := errors.Join(errs...)
	switch {
	case err == nil && found == 0:
		fmt.Fprintln(s.Out, "no leftovers")
	case err == nil && unconfirmed && removable > 0:
		return errors.New("--all: running experiments lose what is listed, and it may not be Knotmeter's; " +
			"add --yes to remove it")
	}
	return err
}

// cleanImports removes what killed imports left in the working directory and in the usual parent of results.
func cleanImports(s Streams, how targets.Cleaning) error {
	var errs []error
	for _, dir := range []string{".", resultsParent} {
		removed, err := store.CleanPartials(dir, func(path string, held bool) bool {
			if held {
				how.Found(targets.Leftover{Name: path, Reason: "a running import writes it"}) // even with --all
				return false
			}
			return how.Report(path, "")
		})
		errs = append(errs, err)
		for _, path := range removed {
			fmt.Fprintln(s.Out, "removed "+path)
		}
	}
	return errors.Join(errs...)
}

// agreeToClean asks for consent to the requests that cleaning sends to Vaults, and prints their destinations. Without
// targets no Vault is cleaned.
func agreeToClean(ctx context.Context, s Streams, specs []result.Spec, yes bool) error {
	var opened experiment // never run
	defer opened.close(s.Err)
	if err := opened.openTargets(ctx, specs); err != nil {
		return err
	}
	var concerns []plan.Concern
	vaults := applications(everyApplication, opened.config.Targets) // no other application is used without being deployed
	for _, vault := range vaults {
		concerns = append(concerns, destinationConcerns(vault)...)
	}
	if err := consent(ctx, s, unique(concerns), &yes); err != nil {
		return err
	}
	announce(s.Err, vaults)
	return nil
}
