// Package report writes the results of an experiment: as a table for a terminal, Markdown, CSV, JSON, the Go benchmark
// format, OpenMetrics, JUnit, SVG figures and one HTML page.
//
// It does no statistics: every verdict, interval and median comes from a [compare.Comparison]. The package adds order,
// layout, figures, and the words of warnings. Equal input gives equal output, byte for byte: it reads no clock and does
// not depend on the order of a map.
package report

import (
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An Input is everything that a report is made from. [compare.Join] makes one input of several experiments.
type Input struct {
	Comparison compare.Comparison
	Experiment result.Experiment
	Sites      []result.Site
	Runs       []result.Run
	Facts      map[string][]result.Fact // by target
	// Histogram reads a histogram of a run by its name, if the run has it without its encoded data; nil if nothing can be
	// read.
	Histogram func(r *result.Run, name string) (result.Histogram, error)
	// Reference holds tables that others published; all formats with text show them.
	Reference []published.Table
	// Causes are the explanations of differences.
	Causes []explain.Explanation
	// Matches are pairs of a target and a published target, which are shown next to each other with the changes of both.
	Matches []published.Match
}

// A Format is one way to write a report.
type Format struct {
	Name  string // value of --format
	File  string // file in a results directory, or with a final slash a directory of files
	About string // one line, for the command list
	Write func(io.Writer, Input) error
	// Files returns the files of a format that has several; Write is nil then.
	Files func(Input) ([]File, error)
	// Makes reports whether Files may create a file of this name for some input, so that those of an earlier report are
	// removed.
	Makes func(name string) bool
}

// Formats returns the formats in the order of the documentation.
func Formats() []Format {
	return []Format{
		{Name: "table", File: "report.txt", About: "a table of at most 80 columns", Write: func(w io.Writer, in Input) error {
			return Text(w, in, TextOptions{Verbose: true})
		}},
		{Name: "html", File: "report.html", About: "one self-contained page with figures", Write: writeHTML},
		{Name: "markdown", File: "report.md", About: "tables of cases and targets, for a pull request", Write: writeMarkdown},
		{Name: "csv", File: "runs.csv", About: "one row per run", Write: writeCSV},
		{Name: "json", File: "comparison.json", About: "knotmeter/comparison/v1", Write: writeJSON},
		{Name: "bench", File: "bench.txt", About: "Go benchmark format, for benchstat", Write: writeBench},
		{Name: "openmetrics", File: "metrics.txt", About: "OpenMetrics 1.0 text, for Prometheus", Write: writeOpenMetrics},
		{Name: "svg", File: "figures/", About: "each figure of the page as a file, and card.svg for links and chats",
			Files: svgFiles, Makes: figureFile.MatchString},
		{Name: "junit", File: "junit.xml", About: "JUnit XML, for a CI system", Write: writeJUnit},
	}
}

// write writes a report.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
