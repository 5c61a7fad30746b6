// Package report renders what an experiment says: as a table for a terminal, Markdown, CSV, JSON, the
// Go benchmark format, OpenMetrics, JUnit and one HTML file.
//
// It stands at the right end of the data flow, behind compare, and does no statistics: every verdict,
// interval, median and sentence that it shows comes ready from a [compare.Comparison]. What it adds
// is order, layout and pictures. Equal input gives equal output, byte for byte: nothing here reads a
// clock or depends on the order of a map.
package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An Input is everything that a report is made from, which of several experiments is what [compare.Join] makes of them.
type Input struct {
	Comparison compare.Comparison
	Experiment result.Experiment
	Sites      []result.Site
	Runs       []result.Run
	Facts      map[string][]result.Fact // by target
	// Histogram reads a histogram of a run by its name, where the run has it without its code; nil if
	// there is nothing to read from.
	Histogram func(r *result.Run, name string) (result.Histogram, error)
	// Reference is what others published, to be shown beside; all formats that have words show it.
	Reference []reference.Table
	// Causes are what is known of why comparisons came out different.
	Causes []explain.Explanation
	// Matches are the targets of these tables that are seen next to ours, with the changes of both.
	Matches []reference.Match
}

// A Format is one way to write a report.
type Format struct {
	Name  string // what -o takes
	File  string // the name of the file in a results directory, or of the directory of several, with a slash
	About string // one line for list
	Write func(io.Writer, Input) error
	// Files are those of a format that has several; Write is nil then.
	Files func(Input) ([]File, error)
	// Makes reports whether Files may make a file of this name of some input, so that those of an earlier report go.
	Makes func(name string) bool
}

// Formats lists the formats in the order of the documentation.
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
		{Name: "published", File: "published.txt", Write: writePublished,
			About: "means and variances of runs, as Constellation's Vault measurements were published"},
		{Name: "junit", File: "junit.xml", About: "JUnit XML, for a CI system", Write: writeJUnit},
	}
}

// A Document is knotmeter/comparison/v1 as JSON writes it: a comparison, with what was published
// elsewhere if that was asked for.
type Document struct {
	compare.Comparison
	Reference []publication         `json:"reference,omitempty"`
	Causes    []explain.Explanation `json:"causes,omitempty"`
}

// writeJSON writes the comparison as a [Document], row by row: those of many runs are large.
func writeJSON(w io.Writer, in Input) error {
	d := Document{in.Comparison, publications(in), in.Causes}
	rows := d.Comparisons
	d.Comparisons = []compare.Row{}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	// This line is there once: within texts of JSON there are no line breaks.
	const place = "\n  \"comparisons\": ["
	head, tail, found := bytes.Cut(text, []byte(place+"]"))
	if !found {
		return errors.New("encode the comparison as JSON: it has no list of comparisons")
	}
	out := bufio.NewWriter(w)
	out.Write(head) // an error stays with out until Flush
	out.WriteString(place)
	for i, r := range rows {
		line, err := json.MarshalIndent(r, "    ", "  ")
		if err != nil {
			return fmt.Errorf("encode the comparison as JSON: %w", err)
		}
		out.WriteString(map[bool]string{true: "\n    ", false: ",\n    "}[i == 0])
		out.Write(line)
	}
	if len(rows) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]")
	out.Write(tail)
	out.WriteString("\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
