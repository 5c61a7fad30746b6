package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newReport(s Streams) *cobra.Command {
	var formats []string
	var out string
	var hideNodes bool
	var j resultOptions
	c := &cobra.Command{
		Use:   "report DIR…",
		Short: "Write results directories as HTML, Markdown, CSV and more",
		Long: `Write reports of a results directory into it: by default report.html, a single
page that loads nothing. 'knotmeter list formats' lists the others. Several
directories are compared as 'knotmeter compare' does, and need --out.`,
		Example: `  knotmeter report results/2026-12-01-a1b2 --format html,svg
  knotmeter report results/a results/b results/c --out results/all`,
		Args:              operands(1, -1),
		ValidArgsFunction: offerResults,
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range formats {
				if err := oneOf("--format", name, formatNames()); err != nil {
					return err
				}
			}
			if out == "" && len(args) > 1 {
				return errors.New("--out: name the directory to write the report of several directories into")
			}
			l, err := await(c.Context(), func() (*loaded, error) { return j.load(args...) })
			if err != nil {
				return err
			}
			l.hideNodes = hideNodes
			warn(s.Err, l.warnings...)
			into := args[0]
			if out != "" {
				into = out
				if err := os.MkdirAll(into, 0o755); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			for _, name := range formats {
				paths, err := l.writeFormat(findFormat(name), into)
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, strings.Join(paths, "\n"))
			}
			return nil
		},
	}
	j.register(c.Flags())
	c.Flags().StringVar(&out, "out", "", "`DIR` directory to write into (default: the results directory)")
	c.Flags().BoolVar(&hideNodes, "hide-nodes", false,
		"replace names of nodes and IP addresses, as in a report to publish")
	c.Flags().StringSliceVar(&formats, "format", []string{"html"},
		"`FORMAT,…` formats of the files: "+strings.Join(formatNames(), ", "))
	return c
}
