package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newReport(s Streams) *cobra.Command {
	var formats []string
	var j judgement
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a results directory into files",
		Long: `Render a results directory again, into files beside the results: by default report.html,
one page without outside parts. 'knotmeter list formats' shows the others.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, name := range formats {
				if err := oneOf("--format", name, formatNames()); err != nil {
					return err
				}
			}
			l, err := j.load(args[0])
			if err != nil {
				return err
			}
			warn(s.Err, l.warnings...)
			for _, name := range formats {
				path, err := l.writeFormat(findFormat(name), args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, path)
			}
			return nil
		},
	}
	j.register(c.Flags())
	c.Flags().StringSliceVar(&formats, "format", []string{"html"}, "formats, separated by commas")
	return c
}
