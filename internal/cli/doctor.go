package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newDoctor(s Streams) *cobra.Command {
	var texts []string
	var rbac bool
	var flags kindFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what can be measured here, and what can not and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			specs, err := flags.specs(texts)
			if err != nil {
				return err
			}
			if rbac {
				return printRBAC(s, specs)
			}
			if len(specs) == 0 {
				return examineMachine(c.Context(), s)
			}
			for _, spec := range specs {
				if err := examine(c.Context(), s, spec); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&rbac, "rbac", false, "print what the target has to be allowed, as Kubernetes manifests")
	flags.register(c)
	c.Flags().StringArrayVar(&texts, "target", nil, "examine this target; repeated (default: all of the lab)")
	return c
}

// examineMachine prints what this machine has, and what targets can be made of that.
func examineMachine(ctx context.Context, s Streams) error {
	for _, k := range all.Kinds() {
		lines, err := k.Features()
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		if lines == nil {
			continue // a kind that depends on more than this machine
		}
		features(s, lines)
		for _, line := range k.Targets {
			spec, err := target.ParseSpec(line.Spec)
			if err == nil {
				err = examine(ctx, s, spec)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// printRBAC prints the manifests of each target.
func printRBAC(s Streams, specs []target.Spec) error {
	if len(specs) == 0 {
		return errors.New("--rbac: name a cluster with --target, such as kube:production")
	}
	for _, spec := range specs {
		k, err := all.FindKind(spec.Kind)
		if err != nil {
			return fmt.Errorf("--target: %w", err)
		}
		if k.RBAC == nil {
			return fmt.Errorf("--rbac: %s asks nobody for permission", spec.Label())
		}
		manifests, err := k.RBAC(spec)
		if err != nil {
			return fmt.Errorf("--target: %w", err)
		}
		fmt.Fprint(s.Out, manifests)
	}
	return nil
}

// features prints what of this machine a kind of target can make use of.
func features(s Streams, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(s.Out, line)
	}
	fmt.Fprintln(s.Out)
}

// examine prints what of the nine paths a target offers.
func examine(ctx context.Context, s Streams, spec target.Spec) (err error) {
	t, err := all.Target(spec)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	facts, err := inspect(ctx, spec, t)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Label(), err)
	}
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
	storage := t.Supports(target.Placement{Path: target.Storage})
	also := ""
	if storage == nil {
		also = ", and storage"
	}
	fmt.Fprintf(s.Out, "%-24s %d of %d paths%s\n", spec.Label(), offered, len(target.Paths()), also)
	for _, reason := range reasons {
		fmt.Fprintf(s.Out, "    not %s:\n      %s\n", pathList(without[reason]), reason)
	}
	if storage != nil && offered == 0 {
		fmt.Fprintf(s.Out, "    not storage:\n      %s\n", storage)
	}
	for _, f := range facts {
		fmt.Fprintf(s.Out, "    %-24s %s\n", f.Name, f.Value)
	}
	return nil
}

// inspect asks for the facts of a target that has to be reached before it can be said what it offers.
func inspect(ctx context.Context, spec target.Spec, t target.Target) ([]result.Fact, error) {
	k, err := all.FindKind(spec.Kind)
	if err != nil || !k.Inspect {
		return nil, err
	}
	return t.Facts(ctx)
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
