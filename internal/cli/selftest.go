package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func newSelftest(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "selftest",
		Short: "Measure the load generator itself on this machine",
		Long: `Measure the load generator's ceiling and overhead on this machine, and its accuracy
against known truths: the rate of a link, a delay, a loss. It takes under a minute.`,
		Args: operands(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			for _, tool := range registry.Families().Tools() {
				if tested, is := tool.(family.Selftester); is {
					if err := selftest(c.Context(), s, tested); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// selftest runs the self-test of a tool and prints its checks. It returns an error if one failed.
func selftest(ctx context.Context, s Streams, tested family.Selftester) error {
	group := ""
	failed, err := tested.Selftest(ctx, openTarget, func(k family.Check) {
		if k.Group != group {
			group = k.Group
			fmt.Fprintln(s.Out, group)
		}
		printCheck(s, k)
	})
	switch {
	case ctx.Err() != nil:
		return stopped(ctx, "")
	case err != nil:
		return failure("selftest: %w", err)
	}
	if failed > 0 {
		return failure("selftest: %s failed: do not trust measurements on this machine until the cause is known",
			unit.Plural(failed, "check"))
	}
	return nil
}

func printCheck(s Streams, k family.Check) {
	fmt.Fprintf(s.Out, "  %-44s %s\n", k.Name, k.Measured)
	if k.Expected != "" {
		word := "ok"
		if !k.Passed {
			word = "FAILED"
		}
		fmt.Fprintf(s.Out, "  %-44s %s: %s\n", "", k.Expected, word)
	}
	if k.Reason != "" {
		fmt.Fprintf(s.Out, "      %s\n", k.Reason)
	}
}
