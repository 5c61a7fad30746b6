package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// CSV writes one row per run, valid or not, in the order in which they happened: what identifies the
// run, its times in seconds, then a column for every metric of the experiment with its base unit in
// the header, "throughput [bit/s]", empty where a run has no such value. It is RFC 4180, lines end
// in CR LF.
func CSV(w io.Writer, in Input) error {
	runs := in.runs()
	metrics := metricColumns(runs)
	head := []string{"experiment", "block", "slot", "attempt", "case", "target", "tool", "start", "setup", "window", "valid", "invalid_reason"}
	for _, m := range metrics {
		head = append(head, fmt.Sprintf("%s [%s]", m.name, m.unit))
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(head); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for _, r := range runs {
		if err := out.Write(csvRow(r, metrics)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type metricColumn struct {
	name string
	unit unit.Unit
}

func metricColumns(runs []run) []metricColumn {
	var columns []metricColumn
	seen := map[metricColumn]bool{}
	for _, r := range runs {
		for _, v := range r.Values {
			if c := (metricColumn{v.Metric, v.Unit}); !seen[c] {
				seen[c] = true
				columns = append(columns, c)
			}
		}
	}
	slices.SortFunc(columns, func(a, b metricColumn) int {
		return strings.Compare(a.name+"\x00"+string(a.unit), b.name+"\x00"+string(b.unit))
	})
	return columns
}

func csvRow(r run, metrics []metricColumn) []string {
	row := []string{
		r.experiment, strconv.Itoa(r.Block), strconv.Itoa(r.Slot), strconv.Itoa(r.Attempt), r.Case, r.Target, r.Tool,
		r.Start.UTC().Format(time.RFC3339Nano), float(r.Setup), float(r.Window),
		strconv.FormatBool(r.Valid()), strings.Join(r.Invalid, "; "),
	}
	for _, m := range metrics {
		cell := ""
		if v, ok := r.Value(m.name); ok && v.Unit == m.unit {
			cell = float(v.Number)
		}
		row = append(row, cell)
	}
	return row
}

// float writes the shortest text that reads back as v.
func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
