// Package importer turns the output of other tools into runs: iperf3, netperf, knb, fio,
// vault-benchmark, and tables that name case, target, metric, unit and value.
//
// In the data flow it stands where the runner, a target and a tool stand otherwise: bytes that
// somebody measured elsewhere come in, a result directory's content goes out, and nothing to the
// right of it sees a difference except that the experiment says where it was imported from. It opens
// no file and judges nothing: what is implausible is the audit's, what is missing is unknown. What is
// broken is an error that names the file and the line or the JSON path.
package importer

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// ErrFormat is what every error about a file's content is.
var ErrFormat = errors.New("cannot be imported")

// A Format is one kind of file that can be imported.
type Format struct {
	Name  string // what import takes
	About string // one line for list
	// Read finds the measurements of a file, at least one. Name is the file's, for errors and nothing
	// else; every error Is [ErrFormat], begins with it and says where and what was expected.
	Read func(name string, data []byte) ([]Record, error)
}

// Formats lists the formats in the order of the documentation.
func Formats() []Format { return formats }

var formats = []Format{
	{"iperf3", "JSON of iperf3 -J, or its output on a terminal", readIperf3},
	{"netperf", "tables, -o, -k or -O output of netperf", readNetperf},
	{"knb", "JSON of knb -o json (k8s-bench-suite)", readKnb},
	{"fio", "JSON or JSON+ of fio, also inside kubestr's", readFio},
	{"vault-benchmark", "JSON of vault-benchmark (report_mode=json) or vegeta", readVault},
	{"csv", "a table with columns case, target, metric, unit, value", readTable},
}

// A Record is one measurement that a file holds. What the file does not tell is empty.
type Record struct {
	Path     string // of the nine, or app, where the file tells
	Workload string // the other part of a case's name; unknown if empty
	Case     string // the whole name of the case, where the file gives it
	Synonym  string // the workload as a user's own file would name it; empty is none
	Part     string // of what another record of the document is the whole of: by which name; empty is none
	Target   string
	Block    int // where the file gives it, from 1
	Start    time.Time
	Tool     string
	// Environment is what the file says of the target, rather than of the measurement.
	Environment []result.Fact
	result.Measurement
	Place string // within the file: a line, or a JSON path
	Text  []byte // the part of the file that it is from, the same for the records of one document
	// Metric is what a verdict on the case should be about, where that follows from how it was measured.
	Metric string
}

// name is the case's name as far as the file tells it.
func (r Record) name() string {
	switch {
	case r.Case != "":
		return r.Case
	case r.Path == "":
		return orUnknown(r.Workload)
	}
	return r.Path + "/" + orUnknown(r.Workload)
}

func orUnknown(text string) string {
	if strings.TrimSpace(text) == "" {
		return result.Unknown
	}
	return strings.TrimSpace(text)
}

// broken is an error about a place in a file. Line 0 is none.
func broken(name string, line int, format string, a ...any) error {
	place := name
	if line > 0 {
		place = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%s: %w: %w", place, ErrFormat, fmt.Errorf(format, a...))
}

// largest is the greatest magnitude of a number that is believed to be one.
const largest = 1e18

// usable says whether a number can be a measured value: finite, and not absurd.
func usable(v float64) bool { return math.Abs(v) <= largest }

// values collects what a parser finds.
type values []result.Value

// add appends a value of a metric in its base unit unless it is unusable; tools write -1 for unknown.
func (v *values) add(name string, number float64) {
	if usable(number) && number >= 0 {
		*v = append(*v, result.NewValue(metric.Named(name), number))
	}
}
