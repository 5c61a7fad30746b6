// Package importer converts the output of other tools to runs: iperf3, netperf, knb, fio, vault-benchmark, and tables
// with case, target, metric, unit and value.
//
// In the data flow it takes the place of runner, target and tool: it turns bytes that were measured elsewhere into the
// content of a results directory. Packages that read the results need no special cases; only the experiment names the
// imported format. The package opens no files and judges nothing: implausible values are the audit's business, missing
// ones are unknown. A malformed file gives an error with the file and the line or JSON path.
package importer

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// ErrFormat is wrapped by every error about a file's content.
var ErrFormat = errors.New("cannot be imported")

// A Format is one kind of file that can be imported.
type Format struct {
	Name   string // argument of the command import
	About  string // one line for the command list
	wanted string // what is read, and the command that makes it
	// Read returns the content of a file, with at least one record. name is the file's name and only used in errors. Every
	// error wraps [ErrFormat], begins with name, and states the place and what was expected.
	Read func(name string, data []byte) (Content, error)
}

// Formats lists the formats in the order of the documentation.
func Formats() []Format { return formats }

var formats = []Format{
	{"iperf3", "JSON of iperf3 -J, or its output on a terminal", wantedIperf3, readIperf3},
	{"netperf", "tables, -o, -k or -O output of netperf", wantedNetperf, readNetperf},
	{"knb", "JSON of knb -o json (k8s-bench-suite)", wantedKnb, readWhole(readKnb)},
	{"fio", "JSON or JSON+ of fio, also inside kubestr's", wantedFio, readWhole(readFio)},
	{"vault-benchmark", "JSON of vault-benchmark (report_mode=json) or vegeta", wantedVault, readWhole(readVault)},
	{"csv", "a table with columns case, target, metric, unit, value", wantedTable, readTable},
}

// A Content is what a file holds.
type Content struct {
	Records []Record
	Rows    iter.Seq[Record] // instead of Records, those of a table, which may be a million
	Figures int              // results on a terminal, read or not; 0 for files that are read as a whole
	Unread  []UnreadLine
}

// all returns an iterator over the records.
func (c Content) all() iter.Seq[Record] {
	if c.Rows != nil {
		return c.Rows
	}
	return slices.Values(c.Records)
}

// An UnreadLine is a line with a figure that was not read.
type UnreadLine struct {
	Line int
	Why  string // in a few words
}

// readWhole adapts the reader of a format whose files are read as a whole.
func readWhole(read func(name string, data []byte) ([]Record, error)) func(string, []byte) (Content, error) {
	return func(name string, data []byte) (Content, error) {
		records, err := read(name, data)
		return Content{Records: records}, err
	}
}

// A Record is one measurement in a file. Fields that the file does not have are empty.
type Record struct {
	Path        string // one of the nine, or app
	Workload    string // second part of the case's name; empty: unknown
	Case        string // full name of the case
	Synonym     string // the workload as a user's own job file names it; empty: none
	Part        string // name of this test in a report whose total is another record; empty: none
	Shares      bool   // other tests of the report ran at the same time, with the same workers
	Target      string
	Block       int // from 1; 0: none
	Start       time.Time
	Tool        string
	Environment []result.Fact // about the target, not the measurement
	result.Measurement
	Place  string // line, JSON path, or both, within the file
	Text   []byte // raw part of the file, shared by the records of one document
	Metric string // preferred for verdicts on the case; empty: no preference
}

// name returns the name of the case as far as it is in the file, with "unknown" for a missing workload.
func (r Record) name() string {
	switch {
	case r.Case != "":
		return r.Case
	case r.Path == "":
		return orUnknown(r.Workload)
	}
	return r.Path + "/" + orUnknown(r.Workload)
}

// orUnknown returns the text without surrounding space, or "unknown" if nothing is left.
func orUnknown(text string) string {
	if strings.TrimSpace(text) == "" {
		return result.Unknown
	}
	return strings.TrimSpace(text)
}

// formatError returns an error about a line of a file, or about the whole file if line is 0. It wraps [ErrFormat].
func formatError(name string, line int, format string, a ...any) error {
	place := name
	if line > 0 {
		place = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%s: %w: %w", place, ErrFormat, fmt.Errorf(format, a...))
}

// largest is the greatest magnitude that is accepted as a measured value.
const largest = 1e18

// usable reports whether a number can be a measured value: finite, with a magnitude of at most largest.
func usable(v float64) bool { return math.Abs(v) <= largest }

// values collects the values that a parser finds.
type values []result.Value

// add appends a value in the metric's base unit, unless it is unusable or negative: tools write -1 for unknown.
func (v *values) add(name string, number float64) {
	if usable(number) && number >= 0 {
		*v = append(*v, result.NewValue(metric.Named(name), number))
	}
}
