package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// writeCSV writes one row per value of every run, valid or not, in the order of the runs: the long form, which R,
// pandas, DuckDB and spreadsheets group and pivot without preparation. A run without values has one row with an empty
// metric, so that no run is missing. Numbers are in base units, times in seconds. The format is RFC 4180 with CR LF;
// docs/formats.md describes the columns.
func writeCSV(w io.Writer, in Input) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	err := out.Write(csvColumns)
	cases, changes, warnings := in.casesByName(), changesBySession(in.Comparison), recordedWarnings(in.Comparison)
	for _, r := range in.runs() {
		row := csvRun(r, cases[r.Case], changes[sessionKey{r.experiment, r.Session}], warnings)
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

// csvCells makes text from outside safe: control characters become visible, and a text that a spreadsheet would take
// for a formula gets an apostrophe in front. Numbers stay unchanged.
func csvCells(row []string) []string {
	cells := make([]string, len(row))
	for i, text := range row {
		if isFormula(text) {
			text = "'" + text
		}
		cells[i] = prose.PlainLines(text)
	}
	return cells
}

// signedNumber matches numbers and percentages with a sign, which are no formulas.
var signedNumber = regexp.MustCompile(`^[+-](\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?( ?%)?$`)

// isFormula reports whether a spreadsheet may take a cell for a formula, also after it removes leading blanks.
func isFormula(text string) bool {
	begin := strings.TrimLeft(text, " \t\r\n")
	return (begin != "" && strings.ContainsRune("=+-@", rune(begin[0])) ||
		strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "\r")) &&
		!signedNumber.MatchString(text)
}

// csvColumns are the names of the columns: the run, its value, and how it was measured.
var csvColumns = []string{
	"experiment", "run", "block", "attempt", "slot", "target", "case", "role",
	"metric", "main", "unit", "better", "value",
	"start", "setup", "window", "tool", "client", "server", "valid", "counts", "reason",
	"session", "changed", "site", "warnings",
}

// firstValueColumn is the index of the column of the metric's name; the other columns of a value follow.
const firstValueColumn = 8

// csvRun returns the row of a run, in the order of csvColumns, with its value still empty. The warnings are those about
// the whole experiment.
func csvRun(r run, c result.Case, changed string, warnings []string) []string {
	warnings = slices.Clone(warnings)
	for _, w := range r.Warnings {
		warnings = append(warnings, w.Text+".")
	}
	return []string{
		r.experiment, r.ID, strconv.Itoa(r.Block), strconv.Itoa(r.Attempt),
		strconv.Itoa(r.Slot), r.Target, r.Case, string(c.Role),
		"", "", "", "", "",
		timeText(r.Start), formatFloat(r.Setup), formatFloat(r.Window), r.Tool, r.Run.Fact("client"), r.Run.Fact("server"),
		strconv.FormatBool(r.Valid()), strconv.FormatBool(r.state == chart.Counts), result.Joined(r.Invalid),
		numberText(r.Session), changed, numberText(r.Site), strings.Join(warnings, " "),
	}
}

// csvValue writes a value into the row of its run.
func csvValue(row []string, v result.Value, c result.Case) []string {
	if v.Metric == "" {
		return row
	}
	row[firstValueColumn] = v.Metric
	row[firstValueColumn+1] = strconv.FormatBool(v.Metric == c.Metric)
	row[firstValueColumn+2] = string(v.Unit)
	row[firstValueColumn+3] = string(v.Better)
	row[firstValueColumn+4] = formatFloat(v.Number)
	return row
}

// casesByName returns the cases of the experiment by name.
func (in Input) casesByName() map[string]result.Case { return result.CasesByName(in.Experiment.Cases) }

// formatFloat returns the shortest text that reads back as v.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// timeText formats a time; empty for imported runs without a start time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
