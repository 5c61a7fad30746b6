package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

func newCompare(s Streams) *cobra.Command {
	var output string
	var every bool
	c := &cobra.Command{
		Use:   "compare DIR [DIR]",
		Short: "Compare again, from a results directory",
		Long: `Print the comparison of a results directory again. Of two directories the targets of the
second are compared with those of the first, unpaired: what changed between the two
times of measurement is part of every difference then.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			l, err := loadAll(dirs)
			if err != nil {
				return err
			}
			l.every = every
			l.warn(s)
			return l.print(s, output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "how the comparison is printed: "+strings.Join(outputs(), ", "))
	c.Flags().BoolVar(&every, "all", false, "in the table, every metric and not only the one that a case is measured for")
	return c
}

// outputs are the formats that -o takes: those that make sense on a terminal or in a pipe.
func outputs() []string {
	var names []string
	for _, f := range report.Formats() {
		if f.Name != "html" {
			names = append(names, f.Name)
		}
	}
	return names
}

func checkOutput(name string) error {
	if !slices.Contains(outputs(), name) {
		return fmt.Errorf("--output: %q is not one of %s", name, strings.Join(outputs(), ", "))
	}
	return nil
}

// loaded is one or two results directories, compared.
type loaded struct {
	report.Input
	warnings []string
	every    bool // metrics in the table
}

// loadAll reads and compares one results directory, or two.
func loadAll(dirs []string) (*loaded, error) {
	if len(dirs) == 1 {
		return load(dirs[0])
	}
	a, err := store.Open(dirs[0])
	if err != nil {
		return nil, err
	}
	b, err := store.Open(dirs[1])
	if err != nil {
		return nil, err
	}
	c, err := compare.CompareUnpaired(compared(a), compared(b))
	if err != nil {
		return nil, err
	}
	second := compared(b)
	return &loaded{
		Input:    report.Input{Comparison: c, Experiment: a.Experiment, Runs: a.Runs, Facts: a.Facts, Second: &second},
		warnings: slices.Concat(a.Warnings, b.Warnings),
	}, nil
}

func compared(r *store.Results) result.Results {
	return result.Results{Experiment: r.Experiment, Runs: r.Runs, Facts: r.Facts}
}

// load reads one results directory, with the histograms of its runs.
func load(dir string) (*loaded, error) {
	r, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{warnings: r.Warnings}
	for i, run := range r.Runs {
		for j, h := range run.Histograms {
			full, err := r.Histogram(run.ID, h.Name)
			if err != nil {
				l.warnings = append(l.warnings, err.Error())
				continue
			}
			r.Runs[i].Histograms[j] = full
		}
	}
	c, err := compare.Compare(r.Experiment, r.Runs, r.Facts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	l.Input = report.Input{Comparison: c, Experiment: r.Experiment, Runs: r.Runs, Facts: r.Facts}
	return l, nil
}

func (l *loaded) warn(s Streams) {
	for _, w := range l.warnings {
		fmt.Fprintln(s.Err, "warning: "+w)
	}
}

// print writes the comparison to stdout in a format that checkOutput has seen.
func (l *loaded) print(s Streams, output string) error {
	if output == "table" {
		return report.Text(s.Out, l.Input, report.TextOptions{Colour: s.Color, All: l.every})
	}
	return findFormat(output).Write(s.Out, l.Input)
}

func findFormat(name string) report.Format {
	formats := report.Formats()
	return formats[slices.IndexFunc(formats, func(f report.Format) bool { return f.Name == name })]
}

// writeReport writes the page with the figures.
func (l *loaded) writeReport(path string) error {
	return l.writeFormat(findFormat("html"), path)
}

func (l *loaded) writeFormat(f report.Format, path string) error {
	var page bytes.Buffer
	if err := f.Write(&page, l.Input); err != nil {
		return err
	}
	return createFile(path, page.Bytes())
}

// targetNames are the names of an experiment's targets.
func targetNames(targets []result.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}
