package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// writeCSV writes one row per value of every run, valid or not, in the order in which they happened: the long
// form, which R, pandas, DuckDB and spreadsheets group and pivot without preparation. A run without any
// value has one row, with empty cells for the metric, so that no run is missing. Numbers are in base
// units, times in seconds. It is RFC 4180, lines end in CR LF; docs/formats.md describes the columns.
func writeCSV(w io.Writer, in Input) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	err := out.Write(csvColumns)
	cases, changes := in.casesByName(), changesBySession(in.Comparison)
	for _, r := range in.runs() {
		row := csvRun(r, cases[r.Case], changes[inSession{r.experiment, r.Session}])
		values := r.Values
		if len(values) == 0 {
			values = []result.Value{{}}
		}
		for _, v := range values {
			if err == nil {
				err = out.Write(csvCells(csvValue(row, v, cases[r.Case])))
			}
		}
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// csvCells makes text from outside safe: control characters become visible, and what a spreadsheet would take for a
// formula begins with an apostrophe. Numbers stay numbers.
func csvCells(row []string) []string {
	cells := make([]string, len(row))
	for i, text := range row {
		if formula(text) {
			text = "'" + text
		}
		cells[i] = prose.PlainLines(text)
	}
	return cells
}

var signedNumber = regexp.MustCompile(`^[+-](\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?( ?%)?$`)

// formula says whether a spreadsheet takes a cell for a formula, or may once it has left out blanks.
func formula(text string) bool {
	begin := strings.TrimLeft(text, " \t\r\n")
	return (begin != "" && strings.ContainsRune("=+-@", rune(begin[0])) ||
		strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "\r")) &&
		!signedNumber.MatchString(text)
}

// csvColumns are the names of the columns: what tells the run, its value, and how it was measured.
var csvColumns = []string{
	"experiment", "run", "block", "attempt", "slot", "target", "case", "role",
	"metric", "main", "unit", "better", "value",
	"start", "setup", "window", "tool", "client", "server", "valid", "counts", "reason",
	"session", "changed", "site",
}

// firstOfValue is the column of the metric's name, which the others of a value follow.
const firstOfValue = 8

// csvRun is the row of a run, its value still empty. The cells are those of csvColumns.
func csvRun(r run, c result.Case, changed string) []string {
	return []string{
		r.experiment, r.ID, strconv.Itoa(r.Block), strconv.Itoa(r.Attempt),
		strconv.Itoa(r.Slot), r.Target, r.Case, string(c.Role),
		"", "", "", "", "",
		began(r.Start), float(r.Setup), float(r.Window), r.Tool, r.Run.Fact("client"), r.Run.Fact("server"),
		strconv.FormatBool(r.Valid()), strconv.FormatBool(r.state == chart.Counts), result.Joined(r.Invalid),
		numberText(r.Session), changed, numberText(r.Site),
	}
}

// csvValue puts a value into the row of its run.
func csvValue(row []string, v result.Value, c result.Case) []string {
	if v.Metric == "" {
		return row
	}
	row[firstOfValue] = v.Metric
	row[firstOfValue+1] = strconv.FormatBool(v.Metric == c.Metric)
	row[firstOfValue+2] = string(v.Unit)
	row[firstOfValue+3] = string(v.Better)
	row[firstOfValue+4] = float(v.Number)
	return row
}

// casesByName are the cases of the experiment by their names.
func (in Input) casesByName() map[string]result.Case { return result.CasesByName(in.Experiment.Cases) }

// float writes the shortest text that reads back as v.
func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// began is a time as text; runs of another tool may have begun nobody knows when.
func began(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
