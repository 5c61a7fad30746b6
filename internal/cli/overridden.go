package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// overridden returns a warning for each single-valued flag that is given several values: the flag library silently uses
// the last one. Wrappers rely on that, so it is no error. Other mistakes are left to the library.
func overridden(root *cobra.Command, args []string) []string {
	c, rest, err := root.Find(args)
	if err != nil || c.DisableFlagParsing {
		return nil
	}
	c.InitDefaultHelpFlag()
	given := map[string]string{}
	var warnings []string
	_ = c.Flags().ParseAll(rest, func(f *pflag.Flag, value string) error { // ParseAll sets no flags
		first, before := given[f.Name]
		if before && first != value && !accumulates(f.Value) {
			warnings = append(warnings, fmt.Sprintf("--%s: %q is overridden by %q, which comes later", f.Name, first, value))
		}
		given[f.Name] = value
		return nil
	})
	return warnings
}

// accumulates reports whether a flag may be repeated.
func accumulates(v pflag.Value) bool {
	_, list := v.(pflag.SliceValue)
	several := []string{(*publishedTables)(nil).Type(), (*matches)(nil).Type(),
		(prices)(nil).Type(), (*labels)(nil).Type()}
	return list || slices.Contains(several, v.Type())
}
