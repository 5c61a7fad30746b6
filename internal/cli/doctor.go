package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newDoctor(s Streams) *cobra.Command {
	var specs []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what can be measured here, and what can not and why",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(specs) == 0 {
				for _, k := range all.Kinds() {
					if err := features(s, k); err != nil {
						return err
					}
					for _, line := range k.Targets {
						specs = append(specs, line.Spec)
					}
				}
			}
			for _, text := range specs {
				if err := examine(s, text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&specs, "target", nil, "examine this target; repeated (default: all of the lab)")
	return c
}

// features prints what of this machine a kind of target can make use of.
func features(s Streams, k all.Kind) error {
	lines, err := k.Features()
	if err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	for _, line := range lines {
		fmt.Fprintln(s.Out, line)
	}
	fmt.Fprintln(s.Out)
	return nil
}

// examine prints what of the nine paths a target offers.
func examine(s Streams, text string) (err error) {
	spec, t, err := openTarget(text)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	offered := 0
	var reasons []string
	without := map[string][]target.Path{}
	for _, p := range target.Paths() {
		err := t.Supports(target.Placement{Path: p})
		if err == nil {
			offered++
			continue
		}
		reason := err.Error()
		if !errors.Is(err, result.ErrNotSupported) {
			reason = "could not tell: " + reason
		}
		if without[reason] == nil {
			reasons = append(reasons, reason)
		}
		without[reason] = append(without[reason], p)
	}
	fmt.Fprintf(s.Out, "%-24s %d of %d paths\n", spec.Label(), offered, len(target.Paths()))
	for _, reason := range reasons {
		fmt.Fprintf(s.Out, "    not %s:\n      %s\n", pathList(without[reason]), reason)
	}
	return nil
}

func pathList(paths []target.Path) string {
	if len(paths) == len(target.Paths()) {
		return "any"
	}
	text := ""
	for i, p := range paths {
		if i > 0 {
			text += ", "
		}
		text += string(p)
	}
	return text
}
