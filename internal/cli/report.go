package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newReport(s Streams) *cobra.Command {
	var formats []string
	var j judgement
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Write a results directory as HTML, Markdown, CSV and more",
		Long: `Write reports of a results directory into it: by default report.html, a single
page that loads nothing. 'knotmeter list formats' lists the others.`,
		Example:           `  knotmeter report results/2026-12-01-a1b2 --format html,svg`,
		Args:              operands(1, 1),
		ValidArgsFunction: upTo(1, offerResults),
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
				paths, err := l.writeFormat(findFormat(name), args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, strings.Join(paths, "\n"))
			}
			return nil
		},
	}
	j.register(c.Flags())
	c.Flags().StringSliceVar(&formats, "format", []string{"html"},
		"`FORMAT,…` formats of the files: "+strings.Join(formatNames(), ", "))
	return c
}
