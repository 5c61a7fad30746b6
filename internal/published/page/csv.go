package page

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// csvSeparator returns the separator of cells, and whether the text is CSV. It is if the file's name ends in .csv or
// .tsv, or if its first two lines with text have the same number of separators, at least two.
func csvSeparator(name string, lines []string) (rune, bool) {
	var firstLines []string
	for _, line := range lines {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			firstLines = append(firstLines, text)
		}
		if len(firstLines) == 2 {
			break
		}
	}
	low := strings.ToLower(name)
	if strings.HasSuffix(low, ".tsv") {
		return '\t', true
	}
	if len(firstLines) == 0 {
		return ',', strings.HasSuffix(low, ".csv")
	}
	best, most := ',', 0
	for _, separator := range ",;\t" {
		if n := strings.Count(firstLines[0], string(separator)); n > most {
			best, most = separator, n
		}
	}
	if strings.HasSuffix(low, ".csv") {
		return best, true
	}
	// Sentences have commas too, but rarely the same number in two lines, and always with a space after them.
	alike := len(firstLines) > 1 && strings.Count(firstLines[1], string(best)) == most
	return best, most > 1 && alike && !strings.Contains(firstLines[0], string(best)+" ")
}

// readCSV reads CSV in the long form, with columns for metric and value, or in the wide form, which is read like any
// other table.
func (b *builder) readCSV(text string, separator rune) error {
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma, reader.Comment, reader.TrimLeadingSpace = separator, '#', separator != '\t'
	reader.FieldsPerRecord = 0 // the header's number
	g := grid{line: 1}
	for {
		cells, err := reader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			if parse, ok := errors.AsType[*csv.ParseError](err); ok {
				return b.formatError(parse.Line, "%w", parse.Err)
			}
			return fmt.Errorf("%s: %w: %w", b.name, ErrFormat, err)
		}
		line, _ := reader.FieldPos(0)
		if g.header == nil {
			g.header, g.line = cells, line
			continue
		}
		g.rows = append(g.rows, gridRow{line, cells})
		for _, c := range cells {
			b.style.observe(c)
		}
	}
	if len(g.header) == 0 {
		return fmt.Errorf("%s: %w: it is empty", b.name, ErrFormat)
	}
	columns := longColumns(g.header)
	if columns == nil {
		b.readGrid(g)
		return nil
	}
	return b.readLong(g, columns)
}

// formatError returns an error about a line. It wraps [ErrFormat].
func (b *builder) formatError(line int, format string, a ...any) error {
	return fmt.Errorf("%s: %w: %w", b.place(line), ErrFormat, fmt.Errorf(format, a...))
}

// longColumns returns the columns of the long form by name; nil if the header is not that of the long form.
func longColumns(header []string) map[string]int {
	aliases := map[string]string{
		"n": audit.FactRuns, "runs": audit.FactRuns, "repetitions": audit.FactRuns, "count": audit.FactRuns,
		"samples": audit.FactSamples, "configuration": "target", "cni": "target",
		"sd": "sd", "stddev": "sd", "mean": "value", "test": "case",
	}
	columns := map[string]int{}
	for i, name := range header {
		name = strings.ToLower(clean(name))
		if alias := aliases[name]; alias != "" {
			name = alias
		}
		if _, twice := columns[name]; !twice {
			columns[name] = i
		}
	}
	for _, needed := range []string{"target", "metric", "value"} {
		if _, ok := columns[needed]; !ok {
			return nil
		}
	}
	return columns
}

// readLong adds a run for each case, target, block, run and attempt; without a column block, one for each row.
func (b *builder) readLong(g grid, columns map[string]int) error {
	if b.cells += len(g.header) * len(g.rows); b.cells > maxCells {
		b.over = g.line
		return nil
	}
	t := tableRuns{builder: b, at: map[string]int{}}
	_, blocks := columns["block"]
	for _, row := range g.rows {
		field := func(name string) string {
			if i, ok := columns[name]; ok {
				return clean(row.cell(i))
			}
			return ""
		}
		if field("metric") == "" && field("value") == "" {
			continue
		}
		r, err := b.longRun(row.line, field)
		if err != nil {
			return err
		}
		key := strings.Join([]string{r.Case, r.Target, field("block"), field("run"), field("attempt")}, "\x00")
		if !blocks {
			key = b.place(row.line)
		}
		t.merge(key, r)
	}
	if t.flush(); len(t.runs) > 0 {
		b.doc.Tables++
	}
	return nil
}

// factColumns lists the columns about how a value was measured.
var factColumns = []string{
	audit.FactRuns, audit.FactSamples, audit.FactConcurrency, audit.FactLoop, audit.FactLink, audit.FactAggregate,
	audit.FactLimitIOPS, audit.FactLimitBytes,
}

// longRun returns the run with the value of a row in the long form.
func (b *builder) longRun(line int, field func(string) string) (result.Run, error) {
	figures, reason := b.parseCell(line, field("value"))
	if reason != "" || len(figures) != 1 {
		return result.Run{}, b.formatError(line, "the value %q is not a number", field("value"))
	}
	f := figures[0]
	if name := field("unit"); name != "" && f.unit == "" {
		var known bool
		if f.scaledUnit, known = unitOf(name); !known && name != "1" {
			scale, u, err := unit.Parse("1 " + name)
			if err != nil {
				return result.Run{}, b.formatError(line, "the unit %q is unknown", name)
			}
			f.scaledUnit = scaledUnit{u, scale}
		}
	}
	f.scaledUnit = cmp.Or(f.scaledUnit, scaledUnit{unit.Count, 1})
	if !finite(f.number*f.scale) || !finite(f.sd*f.scale) {
		return result.Run{}, b.formatError(line, "the value %q is too large", field("value"))
	}
	metric := cmp.Or(strings.ToLower(field("metric")), metricOfUnit(f.unit))
	values := []result.Value{value(metric, f.unit, f.number*f.scale)}
	if sd, _, ok := b.style.number(field("sd")); ok && sd > 0 && finite(sd*f.scale) {
		values = append(values, result.Value{Metric: metric + audit.SpreadSuffix, Unit: f.unit, Number: sd * f.scale})
	}
	r := result.Run{Case: cmp.Or(field("case"), result.Unknown),
		Target: cmp.Or(field("target"), result.Unknown), Tool: field("tool"), Values: values}
	r.Facts = factsWithValues(audit.FactPlace, b.place(line), audit.FactTable, "the table")
	for _, name := range factColumns {
		r.Facts = append(r.Facts, factsWithValues(name, field(name))...)
	}
	if field(audit.FactRuns) != "" {
		if _, err := strconv.Atoi(field(audit.FactRuns)); err != nil {
			return result.Run{}, b.formatError(line, "the number of runs %q is no whole number", field(audit.FactRuns))
		}
	}
	return r, nil
}
