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

// usedColumns lists all columns that are read.
var usedColumns = append([]string{"target", "run", "block", "n", "better"}, neededColumns...)

// A row is a line of the table.
type row struct {
	line  int
	cells map[string]string // by column
}

// A tableRun is a run of a table, in little memory.
type tableRun struct {
	line, block int
	of, target  string
	n           string // runs behind the values; empty: not stated
	values      []result.Value
}

// A runKey is what the lines of a run have in common.
type runKey struct{ target, of, run, block string }

// A repetition is the number of times that a metric was seen in lines of one key.
type repetition struct{ key, times int }

// readTable reads a table with one value per line. Lines with the same target, case, run and block are one run; without
// a column run, a repeated metric begins the next one.
func readTable(name string, data []byte) (Content, error) {
	type seenMetric struct {
		key    int
		metric string
	}
	var runs []tableRun
	texts := map[string]string{}
	keys := map[runKey]int{}
	times := map[seenMetric]int{}
	index := map[repetition]int{} // of the run
	err := eachRow(name, data, func(r row) error {
		v, err := r.value(name)
		if err != nil {
			return err
		}
		v.Metric, v.Unit = shared(texts, v.Metric), unit.Unit(shared(texts, string(v.Unit)))
		of := runKey{shared(texts, r.cells["target"]), shared(texts, r.cells["case"]), r.cells["run"], r.cells["block"]}
		key, found := keys[of]
		if !found {
			key = len(keys)
			of.run, of.block = strings.Clone(of.run), shared(texts, of.block)
			keys[of] = key
		}
		times[seenMetric{key, v.Metric}]++
		nth := repetition{key, times[seenMetric{key, v.Metric}]}
		if of.run != "" && nth.times > 1 {
			return formatError(name, r.line, "run %q of %s has %s a second time", of.run, of.of, v.Metric)
		}
		i, found := index[nth]
		if !found {
			run, err := r.tableRun(name)
			if err != nil {
				return err
			}
			run.of, run.target, run.n = of.of, of.target, shared(texts, run.n)
			i = len(runs)
			index[nth], runs = i, append(runs, run)
		}
		runs[i].values = append(runs[i].values, v)
		return nil
	})
	return Content{Rows: func(yield func(Record) bool) {
		for _, run := range runs {
			if !yield(run.record(data)) {
				return
			}
		}
	}}, err
}

// eachRow calls take for the lines below the header, at least one. What is kept of a cell keeps its whole line.
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
			if slices.Contains(usedColumns, n) {
				r.cells[n] = strings.TrimSpace(cells[i])
			}
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

// tableRun returns a new run that begins with the line, without values.
func (r row) tableRun(name string) (tableRun, error) {
	run := tableRun{line: r.line, of: r.cells["case"], target: r.cells["target"], n: r.cells["n"]}
	if run.of == "" {
		return run, formatError(name, r.line, "the case is empty")
	}
	if b := r.cells["block"]; b != "" {
		n, err := strconv.Atoi(b)
		if err != nil || n < 1 {
			return run, formatError(name, r.line, "the block %q is not a whole number from 1", b)
		}
		run.block = n
	}
	if run.n != "" {
		if v, err := strconv.ParseFloat(run.n, 64); err != nil || v < 1 {
			return run, formatError(name, r.line, "n is %q; wanted the number of runs behind the value, from 1", run.n)
		}
	}
	return run, nil
}

// record returns the run as a record of a file with this text.
func (run tableRun) record(text []byte) Record {
	r := Record{Case: run.of, Target: run.target, Block: run.block, Tool: result.Unknown, Text: text,
		Place: fmt.Sprintf("line %d", run.line)}
	r.Values = run.values
	if run.n != "" {
		r.Facts = []result.Fact{{Name: "runs", Value: run.n}}
	}
	return r
}
