package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report"
)

func newReport(s Streams) *cobra.Command {
	var formats []string
	var elsewhere published
	var j judgement
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a results directory into files",
		Long: `Render a results directory again, into files beside the results: by default report.html,
one page without outside parts. 'knotmeter list formats' shows the others.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			known := map[string]report.Format{}
			var names []string
			for _, f := range report.Formats() {
				known[f.Name] = f
				names = append(names, f.Name)
			}
			for _, name := range formats {
				if !slices.Contains(names, name) {
					return fmt.Errorf("--format: %q is not one of %s", name, prose.Choices(name, names))
				}
			}
			l, err := j.load(args[0])
			if err != nil {
				return err
			}
			l.Reference = elsewhere
			l.warn(s)
			for _, name := range formats {
				path, err := l.writeFormat(known[name], args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, path)
			}
			return nil
		},
	}
	elsewhere.flag(c.Flags())
	j.prices.flag(c.Flags())
	c.Flags().StringSliceVar(&formats, "format", []string{"html"}, "formats, separated by commas")
	return c
}
