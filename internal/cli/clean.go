package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newClean(s Streams) *cobra.Command {
	var specs []string
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove everything that Knotmeter ever left anywhere",
		Long: `Remove what interrupted runs left behind, found by its label. The lab leaves nothing when it
ends, in whatever way; after a crash of its holder, empty control groups may be left.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kinds, err := cleanKinds(specs)
			if err != nil {
				return err
			}
			removed := 0
			var errs []error
			for _, k := range kinds {
				names, err := k.Clean(c.Context())
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
	c.Flags().StringArrayVar(&specs, "target", nil, "only what belongs to this target; repeated")
	return c
}

// cleanKinds are the kinds of the targets, each once; all kinds without targets.
func cleanKinds(specs []string) ([]all.Kind, error) {
	if len(specs) == 0 {
		return all.Kinds(), nil
	}
	var kinds []all.Kind
	seen := map[string]bool{}
	for _, text := range specs {
		spec, err := target.ParseSpec(text)
		if err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
		k, err := all.FindKind(spec.Kind)
		if err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
		if !seen[k.Name] {
			kinds = append(kinds, k)
		}
		seen[k.Name] = true
	}
	return kinds, nil
}
