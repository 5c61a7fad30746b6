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

// neededColumns lists the required columns; target, run, block, n and better are optional.
var neededColumns = []string{"case", "metric", "unit", "value"}

// A row is a line of the table.
type row struct {
	line  int
	cells map[string]string // by column
}

// readTable reads a table with one value per line. Lines with the same target, case, run and block are one run; without
// a column run, a repeated metric begins the next one.
func readTable(name string, data []byte) ([]Record, error) {
	var records []Record
	index := map[string]int{} // index of the record, by run
	times := map[string]int{} // how often a metric was seen, by metric and run
	err := eachRow(name, data, func(r row) error {
		v, err := r.value(name)
		if err != nil {
			return err
		}
		key := r.cells["target"] + "\x00" + r.cells["case"] + "\x00"
		repeated := key + v.Metric + "\x00" + r.cells["run"] + "\x00" + r.cells["block"]
		times[repeated]++
		run := key + r.cells["run"] + "\x00" + r.cells["block"]
		if r.cells["run"] == "" {
			run += "\x00" + strconv.Itoa(times[repeated])
		} else if times[repeated] > 1 {
			return formatError(name, r.line, "run %q of %s has %s a second time", r.cells["run"], r.cells["case"], v.Metric)
		}
		i, found := index[run]
		if !found {
			record, err := r.record(name)
			if err != nil {
				return err
			}
			record.Text = data
			i = len(records)
			index[run], records = i, append(records, record)
		}
		records[i].Values = append(records[i].Values, v)
		return nil
	})
	return records, err
}

// eachRow calls take for the lines below the header, at least one. The cells are valid until take returns.
func eachRow(name string, data []byte, take func(row) error) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	header, _, _ := bytes.Cut(data, []byte{'\n'})
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comma = separator(string(header))
	reader.TrimLeadingSpace = reader.Comma != '\t'
	reader.FieldsPerRecord, reader.ReuseRecord = -1, true
	columns, err := reader.Read()
	names := slices.Clone(columns)
	if err != nil {
		return formatError(name, 1, "%w; wanted %s", notEOF(err), wantedTable)
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	for _, needed := range neededColumns {
		if !slices.Contains(names, needed) {
			return formatError(name, 1, "there is no column %q among %q; wanted %s", needed, names, wantedTable)
		}
	}
	texts := map[string]string{} // few cells differ from row to row, apart from values
	r := row{cells: map[string]string{}}
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var at *csv.ParseError
		switch {
		case errors.As(err, &at):
			return formatError(name, at.Line, "%w", at.Err)
		case err != nil:
			return formatError(name, 0, "%w", err)
		}
		line, _ := reader.FieldPos(0)
		if len(cells) != len(names) {
			return formatError(name, line, "it has %d cells, the header %d", len(cells), len(names))
		}
		r.line = line
		for i, n := range names {
			r.cells[n] = shared(texts, strings.TrimSpace(cells[i]))
		}
		if err := take(r); err != nil {
			return err
		}
	}
	if r.line == 0 {
		return formatError(name, 1, "there are no lines below the header")
	}
	return nil
}

// shared returns one copy of each of up to 10 000 texts, and copies of others, so that no text keeps its whole line.
func shared(texts map[string]string, text string) string {
	if same, ok := texts[text]; ok {
		return same
	}
	text = strings.Clone(text)
	if len(texts) < 10_000 {
		texts[text] = text
	}
	return text
}

// notEOF replaces io.EOF by an error for users.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// separator returns the most frequent of tab, semicolon and comma in the header.
func separator(header string) rune {
	best := ','
	for _, c := range []rune{'\t', ';'} {
		if strings.Count(header, string(c)) > strings.Count(header, string(best)) {
			best = c
		}
	}
	return best
}

// value returns the value in the line, in its base unit.
func (r row) value(name string) (result.Value, error) {
	of := strings.ToLower(r.cells["metric"])
	if of == "" {
		return result.Value{}, formatError(name, r.line, "the metric is empty")
	}
	text := r.cells["value"]
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return result.Value{}, formatError(name, r.line,
			"the value %q is not a number, such as 9.41 (with a point, without spaces)", text)
	}
	number, u, err := unit.Parse(text + " " + r.cells["unit"])
	if err != nil || !usable(number) {
		return result.Value{}, formatError(name, r.line,
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
		return result.Value{}, formatError(name, r.line, "better is %q; wanted higher, lower or none", b)
	}
	return result.Value{Metric: of, Unit: u, Better: better, Number: number}, nil
}

// record returns a new record for the run of the line, without values.
func (r row) record(name string) (Record, error) {
	record := Record{Case: r.cells["case"], Target: r.cells["target"], Tool: result.Unknown,
		Place: fmt.Sprintf("line %d", r.line)}
	if record.Case == "" {
		return record, formatError(name, r.line, "the case is empty")
	}
	if b := r.cells["block"]; b != "" {
		n, err := strconv.Atoi(b)
		if err != nil || n < 1 {
			return record, formatError(name, r.line, "the block %q is not a whole number from 1", b)
		}
		record.Block = n
	}
	if n := r.cells["n"]; n != "" {
		if v, err := strconv.ParseFloat(n, 64); err != nil || v < 1 {
			return record, formatError(name, r.line, "n is %q; wanted the number of runs behind the value, from 1", n)
		}
		record.Facts = append(record.Facts, result.Fact{Name: "runs", Value: n})
	}
	return record, nil
}
