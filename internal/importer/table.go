package importer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const wantedTable = "a header with at least the columns case, metric, unit and value, " +
	"separated by commas, semicolons or tabs"

// neededColumns are those that a table must have; target, run, block, n and better are read too.
var neededColumns = []string{"case", "metric", "unit", "value"}

// A row is one line of the table, by column.
type row struct {
	line  int
	cells map[string]string
}

// readTable reads a table with a value a line. Lines of equal target, case and run are one run; without
// a column run, a metric that comes again begins the next one.
func readTable(name string, data []byte) ([]Record, error) {
	rows, err := tableRows(name, data)
	if err != nil {
		return nil, err
	}
	var records []Record
	at := map[string]int{} // index of the record, by run
	times := map[string]int{}
	for _, r := range rows {
		v, err := r.value(name)
		if err != nil {
			return nil, err
		}
		key := r.cells["target"] + "\x00" + r.cells["case"] + "\x00"
		again := key + v.Metric + "\x00" + r.cells["run"] + "\x00" + r.cells["block"]
		times[again]++
		run := key + r.cells["run"] + "\x00" + r.cells["block"]
		if r.cells["run"] == "" {
			run += "\x00" + strconv.Itoa(times[again])
		} else if times[again] > 1 {
			return nil, broken(name, r.line, "run %q of %s has %s a second time", r.cells["run"], r.cells["case"], v.Metric)
		}
		i, begun := at[run]
		if !begun {
			record, err := r.record(name)
			if err != nil {
				return nil, err
			}
			record.Text = data
			i = len(records)
			at[run], records = i, append(records, record)
		}
		records[i].Values = append(records[i].Values, v)
	}
	return records, nil
}

// tableRows reads the lines below the header.
func tableRows(name string, data []byte) ([]row, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	header, _, _ := bytes.Cut(data, []byte{'\n'})
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comma = separator(string(header))
	reader.TrimLeadingSpace = reader.Comma != '\t'
	reader.FieldsPerRecord = -1
	names, err := reader.Read()
	if err != nil {
		return nil, broken(name, 1, "%w; wanted %s", notEOF(err), wantedTable)
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	for _, needed := range neededColumns {
		if !slices.Contains(names, needed) {
			return nil, broken(name, 1, "there is no column %q among %q; wanted %s", needed, names, wantedTable)
		}
	}
	var rows []row
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var at *csv.ParseError
		switch {
		case errors.As(err, &at):
			return nil, broken(name, at.Line, "%w", at.Err)
		case err != nil:
			return nil, broken(name, 0, "%w", err)
		}
		line, _ := reader.FieldPos(0)
		if len(cells) != len(names) {
			return nil, broken(name, line, "it has %d cells, the header %d", len(cells), len(names))
		}
		r := row{line: line, cells: map[string]string{}}
		for i, n := range names {
			r.cells[n] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, broken(name, 1, "there are no lines below the header")
	}
	return rows, nil
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// separator is the one of tab, semicolon and comma that the header has most of.
func separator(header string) rune {
	best := ','
	for _, c := range []rune{'\t', ';'} {
		if strings.Count(header, string(c)) > strings.Count(header, string(best)) {
			best = c
		}
	}
	return best
}

func (r row) value(name string) (result.Value, error) {
	of := strings.ToLower(r.cells["metric"])
	if of == "" {
		return result.Value{}, broken(name, r.line, "the metric is empty")
	}
	text := r.cells["value"]
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return result.Value{}, broken(name, r.line,
			"the value %q is not a number, such as 9.41 (with a point, without spaces)", text)
	}
	number, u, err := unit.Parse(text + " " + r.cells["unit"])
	if err != nil || !usable(number) {
		return result.Value{}, broken(name, r.line,
			"the value %q in unit %q: wanted a number and a unit such as Gbit/s, us, op/s, %%, B or 1", text, r.cells["unit"])
	}
	known, _ := metric.Find(of)
	better := known.Better
	switch b := strings.ToLower(r.cells["better"]); b {
	case "":
	case "higher", "lower":
		better = metric.Better(b)
	case "none", "neutral", "-":
		better = metric.Neutral
	default:
		return result.Value{}, broken(name, r.line, "better is %q; wanted higher, lower or none", b)
	}
	return result.Value{Metric: of, Unit: u, Better: better, Number: number}, nil
}

// record begins the run that the line is of.
func (r row) record(name string) (Record, error) {
	record := Record{Case: r.cells["case"], Target: r.cells["target"], Tool: result.Unknown,
		Place: fmt.Sprintf("line %d", r.line)}
	if record.Case == "" {
		return record, broken(name, r.line, "the case is empty")
	}
	if b := r.cells["block"]; b != "" {
		n, err := strconv.Atoi(b)
		if err != nil || n < 1 {
			return record, broken(name, r.line, "the block %q is not a whole number from 1", b)
		}
		record.Block = n
	}
	if n := r.cells["n"]; n != "" {
		if v, err := strconv.ParseFloat(n, 64); err != nil || v < 1 {
			return record, broken(name, r.line, "n is %q; wanted the number of runs behind the value, from 1", n)
		}
		record.Facts = append(record.Facts, result.Fact{Name: "runs", Value: n})
	}
	return record, nil
}
