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

// parseLines opens an NDJSON file and parses it.
func (d dir) parseLines(name string, parse func(name string, in io.Reader) error) error {
	file, err := d.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return parse(d.full(name), file)
}

// eachLine decodes complete lines of a schema and calls take for each. It returns their size in bytes and whether there
// is a torn line after the last newline. It holds one line in memory at a time.
func eachLine[T any](
	name string, in io.Reader, schema string, schemaOf func(T) string, take func(number int, v T) error,
) (size int64, torn bool, err error) {
	lines := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return size, len(line) > 0, nil
		}
		if err != nil {
			return size, false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		size += int64(len(line))
		line = line[:len(line)-1]
		var v T
		if err := json.Unmarshal(line, &v); err != nil || schemaOf(v) != schema {
			return size, false, lineError(name, number, line, schema, err)
		}
		if err := take(number, v); err != nil {
			return size, false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
}

// readLine returns a line of at most maxRead bytes with its newline. With io.EOF it returns the rest without newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxRead:
			return nil, errTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// parseSessions reads sessions, which must be numbered in order. A torn last line is dropped without a warning, because
// its session has no runs.
func (r *Results) parseSessions(name string, in io.Reader) (err error) {
	schema := func(s result.Session) string { return s.Schema }
	r.sessionsSize, _, err = eachLine(name, in, result.SessionSchema, schema, func(number int, s result.Session) error {
		if s.Number != number {
			return fmt.Errorf("%w: session %d stands here; restore the file", ErrFormat, s.Number)
		}
		for _, facts := range s.Facts {
			result.ReadFacts(facts)
		}
		r.Sessions = append(r.Sessions, s)
		return nil
	})
	return err
}

// parseSwitches reads switches, which must be numbered in order. A torn last line belongs to a visit without runs.
func (r *Results) parseSwitches(name string, in io.Reader) error {
	schema := func(s result.Switch) string { return s.Schema }
	size, torn, err := eachLine(name, in, result.SwitchSchema, schema, func(number int, s result.Switch) error {
		if s.Number != number {
			return fmt.Errorf("%w: switch %d stands here; restore the file", ErrFormat, s.Number)
		}
		if err := checkSwitch(s, r.Experiment); err != nil {
			return err
		}
		if err := r.checkSession(s.Session); err != nil {
			return fmt.Errorf("%w: switch %d %w", ErrFormat, s.Number, err)
		}
		result.ReadFacts(s.Facts)
		r.Switches = append(r.Switches, s)
		return nil
	})
	if r.switchesSize = size; torn {
		r.warnTorn(name, len(r.Switches)+1)
	}
	return err
}

func (r *Results) parseSites(name string, in io.Reader) error {
	seen := map[int]int{}
	schema := func(s result.Site) string { return s.Schema }
	size, torn, err := eachLine(name, in, result.SiteSchema, schema, func(number int, s result.Site) error {
		if first, again := seen[s.Number]; again {
			return fmt.Errorf("%w: site %d is in line %d already", ErrFormat, s.Number, first)
		}
		if err := checkSite(s, r.Experiment); err != nil {
			return err
		}
		if err := r.checkSession(s.Session); err != nil {
			return fmt.Errorf("%w: site %d %w", ErrFormat, s.Number, err)
		}
		seen[s.Number] = number
		r.Sites = append(r.Sites, s)
		return nil
	})
	if r.sitesSize = size; torn {
		r.warnTorn(name, len(r.Sites)+1)
	}
	return err
}

// parseRuns reads runs. Texts that many runs have in common are kept once: an experiment may have a hundred thousand
// runs.
func (r *Results) parseRuns(name string, in io.Reader) error {
	r.runIndex = map[string]int{}
	texts := interner{}
	schema := func(run result.Run) string { return run.Schema }
	size, torn, err := eachLine(name, in, result.RunSchema, schema, func(_ int, run result.Run) error {
		if first, again := r.runIndex[run.ID]; again {
			return fmt.Errorf("%w: run %q is in line %d already", ErrFormat, run.ID, first+1)
		}
		if err := checkRun(run, r.Experiment); err != nil {
			return err
		}
		if err := r.checkSession(run.Session); err != nil {
			return fmt.Errorf("%w: run %q %w", ErrFormat, run.ID, err)
		}
		r.runIndex[run.ID] = len(r.Runs)
		r.Runs = append(r.Runs, texts.compact(run))
		return nil
	})
	if r.runsSize = size; torn {
		r.warnTorn(name, len(r.Runs)+1)
	}
	return err
}

// lineError returns the error about a line, or a file that begins with it, that could not be decoded or has another
// schema. An error about the schema takes precedence: a newer version may have changed the types.
func lineError(name string, number int, line []byte, schema string, err error) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return jsonError(name, line, number, err)
	}
	if err := checkSchema(head.Schema, schema); err != nil {
		return fmt.Errorf("%s:%d: %w", name, number, err)
	}
	return jsonError(name, line, number, err)
}

// An interner holds one copy of each of up to maxTexts texts. Texts that differ from run to run would use more memory
// than they save.
type interner map[string]string

const maxTexts = 10_000

func (in interner) text(s string) string {
	if same, ok := in[s]; ok {
		return same
	}
	if len(in) < maxTexts {
		in[s] = s
	}
	return s
}

// compact returns the run with common texts shared and slices without spare capacity.
func (in interner) compact(r result.Run) result.Run {
	r.Schema, r.Case, r.Target, r.Tool = in.text(r.Schema), in.text(r.Case), in.text(r.Target), in.text(r.Tool)
	r.Values, r.Facts = slices.Clone(r.Values), slices.Clone(r.Facts)
	for i, v := range r.Values {
		v.Metric = in.text(v.Metric)
		v.Unit, v.Better = unit.Unit(in.text(string(v.Unit))), metric.Better(in.text(string(v.Better)))
		r.Values[i] = v
	}
	for i, f := range r.Facts {
		f = f.Read()
		r.Facts[i] = result.Fact{Name: in.text(f.Name), Value: in.text(f.Value), Evidence: in.text(f.Evidence)}
	}
	for i, s := range r.Series {
		s.Name, s.Unit, s.Values = in.text(s.Name), unit.Unit(in.text(string(s.Unit))), slices.Clone(s.Values)
		s.Marks = slices.Clone(s.Marks)
		for k, m := range s.Marks {
			s.Marks[k].Name = in.text(m.Name)
		}
		r.Series[i] = s
	}
	for i, h := range r.Histograms {
		h.Name, h.Unit = in.text(h.Name), in.text(h.Unit)
		r.Histograms[i] = h
	}
	return r
}
