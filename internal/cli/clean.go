package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newClean(s Streams) *cobra.Command {
	var texts []string
	var flags kindFlags
	var yes bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove everything that Knotmeter ever left anywhere",
		Long: `Remove what interrupted runs left behind, found by its label. The lab leaves nothing when it
ends, in whatever way; after a crash of its holder, empty control groups may be left. On a cluster, which
--target kube:CONTEXT names, everything of Knotmeter's is removed, and so are its mounts in the Vault that a
target's option vault= or VAULT_ADDR names: experiments that run there now lose their places too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			specs, err := flags.specs(texts)
			if err != nil {
				return err
			}
			kinds, targets, err := cleanKinds(specs)
			if err != nil {
				return err
			}
			if err := agreeToClean(s.Err, specs, yes); err != nil {
				return err
			}
			removed := 0
			var errs []error
			for _, k := range kinds {
				names, err := k.Clean(c.Context(), targets[k.Name])
				errs = append(errs, err)
				for _, name := range names {
					fmt.Fprintln(s.Out, "removed "+name)
				}
				removed += len(names)
			}
			if removed == 0 && errors.Join(errs...) == nil {
				fmt.Fprintln(s.Out, "nothing was left behind")
			}
			return errors.Join(errs...)
		},
	}
	flags.register(c)
	c.Flags().StringArrayVar(&texts, "target", nil, "only what belongs to this target; repeated")
	c.Flags().BoolVar(&yes, "yes", false, "agree to what needs consent, such as a token for the Vault that VAULT_ADDR names")
	return c
}

// agreeToClean asks for consent to what cleaning sends to Vaults, and writes which ones.
func agreeToClean(errs io.Writer, specs []target.Spec, yes bool) error {
	var x experiment
	defer x.close(errs)
	targets, err := x.openTargets(specs)
	if err != nil {
		return err
	}
	var list []concern
	asked := vaults(targets)
	for _, to := range asked {
		list = append(list, destinationConcerns(to)...)
	}
	if err := consent(unique(list), yes); err != nil {
		return err
	}
	announce(errs, asked)
	return nil
}

// cleanKinds are the kinds of the targets, each once, and the targets by kind; all kinds without targets.
func cleanKinds(specs []target.Spec) ([]all.Kind, map[string][]target.Spec, error) {
	if len(specs) == 0 {
		return all.Kinds(), nil, nil
	}
	var kinds []all.Kind
	targets := map[string][]target.Spec{}
	for _, spec := range specs {
		k, err := all.FindKind(spec.Kind)
		if err != nil {
			return nil, nil, fmt.Errorf("--target: %w", err)
		}
		if targets[k.Name] == nil {
			kinds = append(kinds, k)
		}
		targets[k.Name] = append(targets[k.Name], spec)
	}
	return kinds, targets, nil
}
