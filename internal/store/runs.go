package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// parseRuns reads the whole lines of runs.ndjson, and returns how many bytes they are and whether there
// is more after the last newline. It holds one line in memory at a time, and of texts that are the same
// in many runs one copy: an experiment may have a hundred thousand.
func parseRuns(name string, in io.Reader, e result.Experiment) (runs []result.Run, size int64, torn bool, err error) {
	seen, texts := map[string]int{}, interner{}
	size, torn, err = eachLine(name, in, func(number int, line []byte) error {
		var run result.Run
		err := json.Unmarshal(line, &run)
		if err != nil || run.Schema != result.RunSchema {
			return brokenLine(name, number, line, result.RunSchema, err)
		}
		if first, again := seen[run.ID]; again {
			return fmt.Errorf("%s:%d: %w: run %q is in line %d already", name, number, ErrFormat, run.ID, first)
		}
		if err := checkRun(run, e); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
		seen[run.ID] = number
		runs = append(runs, texts.compact(run))
		return nil
	})
	return runs, size, torn, err
}

// eachLine has whole lines taken one after another, without their newline, and returns how many bytes they are and
// whether there is more after the last newline.
func eachLine(name string, in io.Reader, take func(number int, line []byte) error) (size int64, torn bool, err error) {
	lines := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, len(line) > 0, nil
		}
		if err != nil {
			return size, false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if err := take(number, line[:len(line)-1]); err != nil {
			return size, false, err
		}
		size += int64(len(line))
	}
}

// brokenLine says what is wrong with a line that could not be decoded, or is of another schema. The schema says more
// than the error: a newer version may have changed the types.
func brokenLine(name string, number int, line []byte, schema string, err error) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return broken(name, line, number, err)
	}
	if err := checkSchema(head.Schema, schema); err != nil {
		return fmt.Errorf("%s:%d: %w", name, number, err)
	}
	return broken(name, line, number, err)
}

// An interner has one copy of each text, up to a number of them: those that differ from run to run would
// take more room in it than they save.
type interner map[string]string

const mostTexts = 10_000

func (in interner) text(s string) string {
	if same, ok := in[s]; ok {
		return same
	}
	if len(in) < mostTexts {
		in[s] = s
	}
	return s
}

// compact is the same run with common texts shared and slices of the size that they need.
func (in interner) compact(r result.Run) result.Run {
	r.Schema, r.Case, r.Target, r.Tool = in.text(r.Schema), in.text(r.Case), in.text(r.Target), in.text(r.Tool)
	r.Values, r.Facts = slices.Clone(r.Values), slices.Clone(r.Facts)
	for i, v := range r.Values {
		v.Metric = in.text(v.Metric)
		v.Unit, v.Better = unit.Unit(in.text(string(v.Unit))), metric.Better(in.text(string(v.Better)))
		r.Values[i] = v
	}
	for i, f := range r.Facts {
		r.Facts[i] = result.Fact{Name: in.text(f.Name), Value: in.text(f.Value)}
	}
	for i, s := range r.Series {
		s.Name, s.Unit, s.Values = in.text(s.Name), unit.Unit(in.text(string(s.Unit))), slices.Clone(s.Values)
		r.Series[i] = s
	}
	for i, h := range r.Histograms {
		h.Name, h.Unit = in.text(h.Name), in.text(h.Unit)
		r.Histograms[i] = h
	}
	return r
}
