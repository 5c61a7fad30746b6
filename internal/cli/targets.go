package cli

import (
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
)

// targetFlag is the flag for targets, which may be arguments instead.
const targetFlag = "target"

// acceptTargetArgs makes the arguments of a command targets.
func acceptTargetArgs(c *cobra.Command) {
	c.Use += " [TARGET…]"
	c.Args = cobra.ArbitraryArgs
	c.ValidArgsFunction = offerTargets
}

// setTargetFlag sets the flag for targets from the arguments. Using both is an error: the first target is the baseline,
// and users would have to know whether flags or arguments come first.
func setTargetFlag(flags *pflag.FlagSet, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if flags.Changed(targetFlag) {
		return fmt.Errorf("--target: targets are given as arguments too (%s); name all of them one way", args[0])
	}
	var errs []error
	for _, text := range args {
		errs = append(errs, flags.Set(targetFlag, text))
	}
	return errors.Join(errs...)
}

// knownTargets returns the texts of known targets, and the form of others, such as kube:CONTEXT.
func knownTargets() []string {
	var list []string
	for _, k := range registry.Kinds() {
		for _, line := range k.Targets {
			list = append(list, line.Spec)
		}
	}
	return list
}

// parseTargets parses the texts of targets.
func parseTargets(texts []string) ([]result.Spec, error) {
	var specs []result.Spec
	for _, text := range texts {
		spec, err := result.ParseSpec(text)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, prose.DidYouMean(text, knownTargets()))
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// specs parses the targets and adds the options that the experiment file has for all Kubernetes targets. Those of a
// target itself take precedence.
func (o *options) specs() ([]result.Spec, error) {
	specs, err := parseTargets(o.targets)
	for i, spec := range specs {
		if spec.Kind != "kube" {
			continue
		}
		options := maps.Clone(o.kubernetes)
		if spec.Name != "" {
			delete(options, "context") // the name is the context
		}
		specs[i] = spec.With(options)
	}
	return specs, err
}

// movedFlag returns where the value of a flag that no command has belongs if it is an option of targets, else "".
func movedFlag(name string) string {
	for _, k := range registry.Kinds() {
		for _, o := range k.Options {
			switch {
			case o.Name != name:
			case o.Refused != nil:
				return ": " + o.Refused.Error()
			default:
				return fmt.Sprintf("; it is an option of %s: targets: %s:?%s", k.Name, k.Name, o)
			}
		}
	}
	return ""
}
