package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkTwice refuses a flag that takes one value and is given two: the library would drop the first without a word.
// What else is wrong with the arguments is the library's to report.
func checkTwice(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || c.DisableFlagParsing {
		return nil
	}
	c.InitDefaultHelpFlag()
	given := map[string]string{}
	var twice error
	_ = c.Flags().ParseAll(rest, func(f *pflag.Flag, value string) error { // it sets no flag
		first, before := given[f.Name]
		if before && first != value && !accumulates(f.Value) && twice == nil {
			twice = fmt.Errorf("--%s: it is given twice, as %q and %q; give it once", f.Name, first, value)
		}
		given[f.Name] = value
		return nil
	})
	return twice
}

// accumulates reports whether a flag may be repeated.
func accumulates(v pflag.Value) bool {
	_, list := v.(pflag.SliceValue)
	return list || slices.Contains([]string{(*published)(nil).Type(), (costs)(nil).Type()}, v.Type())
}
