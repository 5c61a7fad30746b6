// Package table reads published numbers: CSV, Markdown, and plain text as copied from a page.
//
// Like store and importer it produces results. Every figure becomes a run whose facts have its place and what the text
// reports about it, so that the audit can judge it like a run of Knotmeter. It opens no files and judges nothing.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// ErrFormat is wrapped by every error about a text, which begins with the file's name and, if there is one, the line.
var ErrFormat = errors.New("no table that can be read")

// Imported is the imported format in the experiment of a document.
const Imported = "table"

// A Document is the content of a text.
type Document struct {
	result.Results
	Tables   int // with at least one figure
	Figures  int
	Warnings []string // about texts that look like figures and cannot be read; each with its place, without full stop
}

// Limits of a text, far above those of published pages.
const (
	maxBytes  = 16 << 20
	maxLines  = 1 << 20
	maxCells  = 1 << 20 // of all tables
	maxLabel  = 400     // characters of a label; the rest is cut
	maxValues = 1000    // of a run
)

// Read reads a text. name is used in places and errors; if it ends in .csv or .tsv the text is read as such, otherwise
// its first lines tell CSV from Markdown and plain text. families parse the names of cases. Every error wraps
// [ErrFormat].
func Read(name string, data []byte, families family.List) (*Document, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: %w: it is larger than %d MiB", name, ErrFormat, maxBytes>>20)
	}
	lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	if len(lines) > maxLines {
		return nil, fmt.Errorf("%s: %w: it has more than %d lines", name, ErrFormat, maxLines)
	}
	for i, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
			return nil, fmt.Errorf("%s:%d: %w: the line is not text in UTF-8", name, i+1, ErrFormat)
		}
	}
	b := newBuilder(name, families)
	if separator, ok := csvSeparator(name, lines); ok {
		if err := b.readCSV(string(data), separator); err != nil {
			return nil, err
		}
	} else {
		b.readText(lines)
	}
	if b.over > 0 {
		return nil, fmt.Errorf("%s:%d: %w: the tables up to here have more than %d cells", name, b.over, ErrFormat, maxCells)
	}
	if b.figures == 0 && len(b.doc.Runs) == 0 {
		if hint := importer.Hint(name, data); hint != "" {
			return nil, fmt.Errorf("%s: %w: %s", name, ErrFormat, hint)
		}
		return nil, fmt.Errorf("%s: %w: wanted CSV with a header, a Markdown table, lines of a label and its numbers, or "+
			"output of iperf3 or netperf", name, ErrFormat)
	}
	return b.document(), nil
}

// A builder assembles a document.
type builder struct {
	name     string
	doc      Document
	figures  int
	cells    int               // of the tables so far
	over     int               // line of the table that exceeds maxCells; 0: none
	runCount map[[2]string]int // by case and target
	targets  map[string]bool
	families family.List
	cases    map[string]bool
	runs     string // number of runs behind each result, if the text gives one for all of them
	workers  string // outstanding requests, likewise
	listed   []listed
	baseUnit string // unit of all numbers, if the text gives one
	code     bool   // the text has blocks of code, whose output may be the source of a table
}

func newBuilder(name string, families family.List) *builder {
	return &builder{
		name: name, families: families,
		runCount: map[[2]string]int{}, targets: map[string]bool{}, cases: map[string]bool{},
		doc: Document{Results: result.Results{Facts: map[string][]result.Fact{}}},
	}
}

func (b *builder) place(line int) string { return b.name + ":" + strconv.Itoa(line) }

func (b *builder) warn(line int, format string, a ...any) {
	b.doc.Warnings = append(b.doc.Warnings, b.place(line)+": "+fmt.Sprintf(format, a...))
}

// add appends a run and registers its case and target.
func (b *builder) add(r result.Run) {
	key := [2]string{r.Case, r.Target}
	b.runCount[key]++
	r.Schema, r.ID = result.RunSchema, b.nextID()
	r.Block, r.Attempt, r.Slot = b.runCount[key], 1, 1
	r.Tool = cmp.Or(r.Tool, result.Unknown)
	b.figures += len(r.Values)
	b.doc.Runs = append(b.doc.Runs, r)
	b.registerTarget(r.Target)
	if !b.cases[r.Case] {
		b.registerCase(b.families.ImportedCase(r.Case), r.Values)
	}
}

// registerCase adds a case once. Its metric is that of its first value.
func (b *builder) registerCase(c result.Case, values []result.Value) {
	if b.cases[c.Name] {
		return
	}
	b.cases[c.Name] = true
	if len(values) > 0 {
		c.Metric = values[0].Metric
	}
	b.doc.Experiment.Cases = append(b.doc.Experiment.Cases, c)
}

// registerTarget adds a target once.
func (b *builder) registerTarget(name string) {
	if !b.targets[name] {
		b.targets[name] = true
		b.doc.Experiment.Targets = append(b.doc.Experiment.Targets, result.Target{Name: name, Spec: result.SpecOf(name)})
	}
}

// addGap adds a place of a table without figures, as a run without values.
func (b *builder) addGap(line int, gap, label string) {
	b.doc.Runs = append(b.doc.Runs, result.Run{
		Schema: result.RunSchema, ID: b.nextID(), Case: "gap", Target: "gap", Block: 1, Attempt: 1, Slot: 1,
		Tool:  result.Unknown,
		Facts: factsWithValues(audit.FactPlace, b.place(line), audit.FactGap, gap, audit.FactRow, short(label)),
	})
}

func (b *builder) nextID() string { return fmt.Sprintf("%04d", len(b.doc.Runs)+1) }

// maxQuote is the number of characters of a quoted text that are kept.
const maxQuote = 80

// short returns a text with single spaces, cut to maxQuote characters.
func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxQuote {
		return string(runes)
	}
	return string(runes[:maxQuote-1]) + "…"
}

// document completes the document.
func (b *builder) document() *Document {
	d := &b.doc
	b.matchListed()
	for i, r := range d.Runs {
		if r.Fact(audit.FactGap) != "" {
			continue
		}
		if b.runs != "" && r.Fact(audit.FactRuns) == "" {
			d.Runs[i].Facts = append(d.Runs[i].Facts, result.Fact{Name: audit.FactRuns, Value: b.runs})
		}
		if b.workers != "" && r.Fact(audit.FactConcurrency) == "" {
			d.Runs[i].Facts = append(d.Runs[i].Facts, result.Fact{Name: audit.FactConcurrency, Value: b.workers})
		}
	}
	e := &d.Experiment
	e.Schema, e.Imported, e.Tool = result.ExperimentSchema, Imported, result.Unknown
	e.ID = strings.TrimSuffix(path.Base(strings.ReplaceAll(b.name, "\\", "/")), path.Ext(b.name))
	if len(e.Targets) > 0 {
		e.Baseline = e.Targets[0].Name
	}
	d.Figures = b.figures
	return d
}

// A grid is a table of text: a header, and rows of cells, of which the first are labels.
type grid struct {
	line   int    // of the header, from 1
	title  string // the line before it
	header []string
	rows   []gridRow
}

type gridRow struct {
	line  int
	cells []string
}

// cell returns a cell of a row; empty if the row is shorter.
func (r gridRow) cell(i int) string {
	if i >= len(r.cells) {
		return ""
	}
	return r.cells[i]
}

// numeric returns the columns of which most filled cells are figures.
func (g grid) numeric() []int {
	var columns []int
	for i := range g.header {
		figures, filled := 0, 0
		for _, r := range g.rows {
			text := r.cell(i)
			if missing(text) {
				continue
			}
			filled++
			if _, ok := parseCell(text); ok {
				figures++
			}
		}
		if 2*figures > filled {
			columns = append(columns, i)
		}
	}
	return columns
}

// readGrid adds runs with the figures of a table.
func (b *builder) readGrid(g grid) {
	if b.cells += len(g.header) * len(g.rows); b.cells > maxCells {
		b.over = g.line
		return
	}
	numeric := g.numeric()
	if len(numeric) == 0 {
		return
	}
	b.doc.Tables++
	t := tableRuns{builder: b, name: "the table in line " + strconv.Itoa(g.line), at: map[string]int{}}
	for _, i := range g.emptyColumns() {
		b.addGap(g.line, audit.GapColumn, clean(g.header[i]))
	}
	columns, title := make([]label, len(g.header)), parseMeasure(g.title)
	for i, name := range g.header {
		columns[i] = newLabel(name)
	}
	labels := make([]label, len(g.rows))
	for i, r := range g.rows {
		labels[i] = newLabel(g.label(r, numeric))
	}
	countAt := slices.IndexFunc(columns, func(l label) bool { return countColumn.MatchString(l.text) })
	byRow := targetsInRows(numeric, columns, labels)
	for at, r := range g.rows {
		runs := g.runs(r, countAt)
		for _, i := range numeric {
			if countColumn.MatchString(columns[i].text) {
				continue
			}
			p := position{line: r.line, target: columns[i].name, label: labels[at], runs: runs}
			if byRow {
				p.target, p.label = labels[at].text, columns[i]
			}
			p.measure = p.label.measure.withDefaults(columns[i].measure).withDefaults(title)
			t.addCell(p, r.cell(i))
		}
	}
	t.flush()
}

// A label is the parsed head of a row or a column.
type label struct {
	text    string // clean, at most maxLabel characters
	name    string // text without units
	short   string // text, at most maxQuote characters
	measure measure
}

func newLabel(text string) label {
	text = clean(text)
	if runes := []rune(text); len(runes) > maxLabel {
		text = string(runes[:maxLabel]) + "…"
	}
	return label{text: text, name: clean(withoutUnit(text)), short: short(text), measure: parseMeasure(text)}
}

// countColumn matches the header of a column with the number of runs behind a row.
var countColumn = regexp.MustCompile(
	`(?i)^(?:n|(?:#|no\.?|number)?\s*(?:of)?\s*(?:samples|runs|repetitions|repeats|iterations))$`)

// runs returns the number of runs behind a row, from a column; empty if there is none. A negative column means that the
// table has no such column.
func (g grid) runs(r gridRow, column int) string {
	if column < 0 {
		return ""
	}
	if n, err := strconv.Atoi(clean(r.cell(column))); err == nil && n > 0 {
		return strconv.Itoa(n)
	}
	return ""
}

// emptyColumns returns the columns that have a name, but only empty cells or placeholders.
func (g grid) emptyColumns() []int {
	var columns []int
	for i := 1; i < len(g.header); i++ {
		filled := func(r gridRow) bool { return !missing(r.cell(i)) }
		if strings.TrimSpace(g.header[i]) != "" && !slices.ContainsFunc(g.rows, filled) {
			columns = append(columns, i)
		}
	}
	return columns
}

// label joins the cells of a row before the first numeric column.
func (g grid) label(r gridRow, numeric []int) string {
	var parts []string
	for i := range min(numeric[0], len(r.cells)) {
		if text := clean(r.cells[i]); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// targetsInRows reports whether rows are targets and columns are measurements. They are if the first header is a word
// for targets, if most numeric columns have a unit and name a measurement, or if most have a unit and most rows name
// none.
func targetsInRows(numeric []int, header, rows []label) bool {
	for _, word := range []string{"target", "cni", "plugin", "datapath", "configuration", "cluster", "provider", "配置",
		"模式"} {
		if numeric[0] > 0 && strings.EqualFold(header[0].text, word) {
			return true
		}
	}
	units, measuredColumns, measuredRows := 0, 0, 0
	for _, i := range numeric {
		m := header[i].measure
		if m.unit != "" || len(m.parts) > 1 {
			units++
			if m.describesMeasurement() {
				measuredColumns++
			}
		}
	}
	for _, r := range rows {
		if r.measure.describesMeasurement() {
			measuredRows++
		}
	}
	return 2*measuredColumns > len(numeric) || 2*units > len(numeric) && 2*measuredRows <= len(rows)
}

// A tableRuns merges the cells of a table into runs: those of one case and target become one run, until a metric
// repeats.
type tableRuns struct {
	*builder
	name string
	runs []result.Run
	at   map[string]int // index of the last run, by key
}

// A position is the context of a cell in a table.
type position struct {
	line    int
	target  string
	label   label
	measure measure
	runs    string // number of runs behind its row; empty: unknown
}

// addCell adds the figures of a cell; a cell without any is recorded as a gap or a warning.
func (t *tableRuns) addCell(p position, text string) {
	line, target, m := p.line, cmp.Or(p.target, result.Unknown), p.measure
	if missing(text) {
		t.addGap(line, audit.GapCell, p.label.text+" of "+target)
		return
	}
	figures, ok := parseCell(text)
	if !ok {
		t.warn(line, "%q of %s is no figure", short(text), target)
		return
	}
	values, err := m.values(figures)
	if err != nil {
		t.warn(line, "%q of %s: %s", short(text), target, err)
		return
	}
	c := m.caseOf(p.label.text, t.families)
	t.registerCase(c, values)
	facts := factsWithValues(audit.FactPlace, t.place(line), audit.FactTable, t.name, audit.FactRow, p.label.short,
		audit.FactRuns, p.runs, audit.FactTool, m.tool, audit.FactAggregate, m.aggregate)
	if t.code {
		facts = append(facts, digits(figures, values)...)
	}
	t.merge(c.Name+"\x00"+target, result.Run{Case: c.Name, Target: target, Tool: m.tool, Values: values, Facts: facts})
}

// digits returns facts with the value of one unit in the last digit of each figure, in the base unit.
func digits(figures []figure, values []result.Value) (facts []result.Fact) {
	values = slices.DeleteFunc(slices.Clone(values), func(v result.Value) bool {
		return strings.HasSuffix(v.Metric, audit.SpreadSuffix)
	})
	for i, f := range figures {
		if f.number != 0 && f.digit > 0 {
			digit := math.Abs(f.digit / f.number * values[i].Number)
			facts = append(facts, result.Fact{Name: audit.FactDigit + "." + values[i].Metric,
				Value: strconv.FormatFloat(digit, 'g', 3, 64)})
		}
	}
	return facts
}

// factsWithValues converts pairs of name and value to facts, except those with an empty value.
func factsWithValues(pairs ...string) []result.Fact {
	var facts []result.Fact
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			facts = append(facts, result.Fact{Name: pair[0], Value: pair[1]})
		}
	}
	return facts
}

// merge adds the values of r to the run of its key, with the place of each, or begins a new run if that one is full.
func (t *tableRuns) merge(key string, r result.Run) {
	i, ok := t.at[key]
	if !ok || isFull(t.runs[i], r) {
		t.at[key] = len(t.runs)
		t.runs = append(t.runs, r)
		return
	}
	for _, v := range r.Values {
		t.runs[i].Values = append(t.runs[i].Values, v)
		digit := audit.FactDigit + "." + v.Metric
		t.runs[i].Facts = append(t.runs[i].Facts,
			factsWithValues(audit.FactPlace+"."+v.Metric, r.Fact(audit.FactPlace), digit, r.Fact(digit))...)
	}
}

// isFull reports whether a run has maxValues values, or already has a metric of more.
func isFull(run, more result.Run) bool {
	repeated := func(v result.Value) bool { _, found := run.Value(v.Metric); return found }
	return len(run.Values) >= maxValues || slices.ContainsFunc(more.Values, repeated)
}

// flush adds the runs to the document.
func (t *tableRuns) flush() {
	for _, r := range t.runs {
		t.add(r)
	}
}

// value returns a number in the base unit as a value with its metric's direction.
func value(metric string, u unit.Unit, number float64) result.Value {
	return result.Value{Metric: metric, Unit: u, Better: direction(metric, u), Number: number}
}
