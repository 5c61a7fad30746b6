// Package report renders what an experiment says: as a table for a terminal, Markdown, CSV, JSON, the
// Go benchmark format, OpenMetrics, JUnit and one HTML file.
//
// It stands at the right end of the data flow, behind compare, and does no statistics: every verdict,
// interval, median and sentence that it shows comes ready from a [compare.Comparison]. What it adds
// is order, layout and pictures. Equal input gives equal output, byte for byte: nothing here reads a
// clock or depends on the order of a map.
package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An Input is everything that a report is made from.
type Input struct {
	Comparison compare.Comparison
	Experiment result.Experiment
	Runs       []result.Run
	Facts      map[string][]result.Fact // by target
	// Second is the other results directory of an unpaired comparison of two, else nil. Targets then
	// have the names that [compare.CompareUnpaired] gives them.
	Second *result.Results
	// Reference is what others published, to be shown beside; all formats that have words show it.
	Reference []reference.Table
}

// A Format is one way to write a report.
type Format struct {
	Name  string // what -o takes
	File  string // the name of the file in a results directory
	About string // one line for list
	Write func(io.Writer, Input) error
}

// Formats lists the formats in the order of the documentation.
func Formats() []Format {
	return []Format{
		{"table", "report.txt", "a table of at most 80 columns", func(w io.Writer, in Input) error { return Text(w, in, TextOptions{}) }},
		{"html", "report.html", "one self-contained page with figures", HTML},
		{"markdown", "report.md", "tables of cases and targets, for a pull request", Markdown},
		{"csv", "runs.csv", "one row per run", CSV},
		{"json", "comparison.json", "knotmeter/comparison/v1", JSON},
		{"bench", "bench.txt", "Go benchmark format, for benchstat", Bench},
		{"openmetrics", "metrics.txt", "OpenMetrics 1.0 text, for Prometheus", OpenMetrics},
		{"png", "forest.png", "the forest plot as a picture, for wikis and chats", PNG},
		{"junit", "junit.xml", "JUnit XML, for a CI system", JUnit},
	}
}

// JSON writes the comparison as knotmeter/comparison/v1, with what was published elsewhere if that was
// asked for.
func JSON(w io.Writer, in Input) error {
	text, err := json.MarshalIndent(struct {
		compare.Comparison
		Reference []publication `json:"reference,omitempty"`
	}{in.Comparison, publications(in)}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	return write(w, string(text)+"\n")
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
