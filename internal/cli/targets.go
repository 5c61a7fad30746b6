package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
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
