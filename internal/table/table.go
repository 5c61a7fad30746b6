// Package table reads published numbers: CSV, Markdown and plain text as it is when copied out of a
// page.
//
// It stands beside store and foreign at the left of result: text that somebody wrote for people comes
// in, and every figure goes out as a run whose facts say where it stands and what the text says of
// it, so that the audit can judge it like a run of ours. It opens no file and judges nothing.
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
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// ErrFormat is what every error about a text is; it names the file, and the line if there is one.
var ErrFormat = errors.New("no table that can be read")

// Imported is what the experiment of a document says it was imported as.
const Imported = "table"

// A Document is what was read of a text.
type Document struct {
	result.Results
	Tables   int      // with at least one figure
	Figures  int      // in tables and in sentences
	Warnings []string // what looks like a figure and was not understood; each with its place, without full stop
}

// limits of a text; nothing that was written for people is near them.
const (
	maxBytes  = 16 << 20
	maxLines  = 1 << 20
	maxCells  = 1 << 20 // of all tables
	maxLabel  = 400     // characters that are read of a label
	maxValues = 1000    // of a run
)

// Read reads a text. The name is for places and errors; if it ends in .csv or .tsv the text is taken
// as that, otherwise it is Markdown, plain text, or what its first line says. The families know cases of ours by their
// names.
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
	if separator, ok := separated(name, lines); ok {
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
		return nil, fmt.Errorf("%s: %w: wanted CSV with a header, a Markdown table, lines of a label and its numbers, or "+
			"figures with units in sentences", name, ErrFormat)
	}
	return b.document(), nil
}

// A builder collects the runs of a document.
type builder struct {
	name     string
	doc      Document
	figures  int
	cells    int               // of the tables so far
	over     int               // line of the table with which they are too many
	seen     map[[2]string]int // runs of a case on a target
	targets  map[string]bool
	families family.List
	cases    map[string]bool
	runs     string // how many, that the text says all its results are of
	workers  string // requests outstanding, likewise
	listed   []listed
	baseUnit string // that the text says its numbers have
	code     bool   // the text has blocks of code, which may have the output that a table is of
}

// A listed configuration is one that the text says was tested.
type listed struct{ name, place string }

func newBuilder(name string, families family.List) *builder {
	return &builder{
		name: name, families: families,
		seen: map[[2]string]int{}, targets: map[string]bool{}, cases: map[string]bool{},
		doc: Document{Results: result.Results{Facts: map[string][]result.Fact{}}},
	}
}

func (b *builder) place(line int) string { return b.name + ":" + strconv.Itoa(line) }

func (b *builder) warn(line int, format string, a ...any) {
	b.doc.Warnings = append(b.doc.Warnings, b.place(line)+": "+fmt.Sprintf(format, a...))
}

// add appends a run and registers its case and target.
func (b *builder) add(r result.Run) {
	b.seen[[2]string{r.Case, r.Target}]++
	r.Schema, r.ID = result.RunSchema, b.nextID()
	r.Block, r.Attempt, r.Slot = b.seen[[2]string{r.Case, r.Target}], 1, 1
	r.Tool = cmp.Or(r.Tool, result.Unknown)
	b.figures += len(r.Values)
	b.doc.Runs = append(b.doc.Runs, r)
	b.compare(r.Target)
	if !b.cases[r.Case] {
		b.measures(b.families.ImportedCase(r.Case), r.Values)
	}
}

// measures registers a case, of which these are the first values.
func (b *builder) measures(c result.Case, values []result.Value) {
	if b.cases[c.Name] {
		return
	}
	b.cases[c.Name] = true
	if len(values) > 0 {
		c.Metric = values[0].Metric
	}
	b.doc.Experiment.Cases = append(b.doc.Experiment.Cases, c)
}

// compare registers a name as one of the things that are compared.
func (b *builder) compare(name string) {
	if !b.targets[name] {
		b.targets[name] = true
		b.doc.Experiment.Targets = append(b.doc.Experiment.Targets, result.Target{Name: name, Spec: name})
	}
}

// say adds a sentence.
func (b *builder) say(line int, said, quote string, values ...result.Value) {
	b.figures += len(values)
	b.doc.Runs = append(b.doc.Runs, result.Run{
		Schema: result.RunSchema, ID: b.nextID(), Case: "text", Target: "text", Block: 1, Attempt: 1, Slot: 1,
		Tool: result.Unknown, Values: values,
		Facts: known(audit.FactPlace, b.place(line), audit.FactSaid, said, audit.FactQuote, short(quote)),
	})
}

func (b *builder) nextID() string { return fmt.Sprintf("%04d", len(b.doc.Runs)+1) }

// maxQuote is how many characters of a sentence are kept.
const maxQuote = 80

func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxQuote {
		return string(runes)
	}
	return string(runes[:maxQuote-1]) + "…"
}

// document finishes what was collected.
func (b *builder) document() *Document {
	d := &b.doc
	b.matchListed()
	for i, r := range d.Runs {
		if r.Fact(audit.FactSaid) != "" {
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

// A grid is a table as it stands: a header, and rows of a label and cells.
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

// cell is a cell of a row, "" if the row is shorter.
func (r gridRow) cell(i int) string {
	if i >= len(r.cells) {
		return ""
	}
	return r.cells[i]
}

// numeric lists the columns most of whose cells that have anything are figures.
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

// readGrid makes a run of each figure, and returns how many there were.
func (b *builder) readGrid(g grid) int {
	if b.cells += len(g.header) * len(g.rows); b.cells > maxCells {
		b.over = g.line
		return 0
	}
	numeric := g.numeric()
	if len(numeric) == 0 {
		return 0
	}
	b.doc.Tables++
	before := b.figures
	t := tableRuns{builder: b, name: "the table in line " + strconv.Itoa(g.line), at: map[string]int{}}
	for _, i := range g.emptyColumns() {
		b.say(g.line, audit.SaidColumn, clean(g.header[i]))
	}
	columns, title := make([]label, len(g.header)), measureOf(g.title)
	for i, name := range g.header {
		columns[i] = newLabel(name)
	}
	labels := make([]label, len(g.rows))
	for i, r := range g.rows {
		labels[i] = newLabel(g.label(r, numeric))
	}
	counts := slices.IndexFunc(columns, func(l label) bool { return countColumn.MatchString(l.text) })
	byRow := targetsInRows(numeric, columns, labels)
	for at, r := range g.rows {
		runs := g.runs(r, counts)
		for _, i := range numeric {
			if countColumn.MatchString(columns[i].text) {
				continue
			}
			p := position{line: r.line, target: columns[i].name, label: labels[at], runs: runs}
			if byRow {
				p.target, p.label = labels[at].text, columns[i]
			}
			p.measure = p.label.measure.orOf(columns[i].measure).orOf(title)
			t.cell(p, r.cell(i))
		}
	}
	t.flush()
	return b.figures - before
}

// A label is what heads a row or a column, understood once for all its cells.
type label struct {
	text    string // clean, at most maxLabel characters
	name    string // without its unit
	short   string
	measure measure
}

func newLabel(text string) label {
	text = clean(text)
	if runes := []rune(text); len(runes) > maxLabel {
		text = string(runes[:maxLabel]) + "…"
	}
	return label{text: text, name: clean(withoutUnit(text)), short: short(text), measure: measureOf(text)}
}

// countColumn is the header of a column that says how many runs the numbers of a row are of.
var countColumn = regexp.MustCompile(
	`(?i)^(?:n|(?:#|no\.?|number)?\s*(?:of)?\s*(?:samples|runs|repetitions|repeats|iterations))$`)

// runs is how many runs a row is of, by the column that says so; "" without one, if column is below 0.
func (g grid) runs(r gridRow, column int) string {
	if column < 0 {
		return ""
	}
	if n, err := strconv.Atoi(clean(r.cell(column))); err == nil && n > 0 {
		return strconv.Itoa(n)
	}
	return ""
}

// emptyColumns lists the columns that have a name and nothing else, or placeholders alone.
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

// label joins what a row has before its first figure.
func (g grid) label(r gridRow, numeric []int) string {
	var parts []string
	for i := range min(numeric[0], len(r.cells)) {
		if text := clean(r.cells[i]); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// targetsInRows says whether the columns are what was measured and the rows on what: if the first header
// is a word for targets, or most headers of figures have a unit and a metric, or a unit where the
// labels of the rows have no metric.
func targetsInRows(numeric []int, header, rows []label) bool {
	for _, word := range []string{"target", "cni", "plugin", "datapath", "configuration", "cluster", "provider", "配置",
		"模式"} {
		if numeric[0] > 0 && strings.EqualFold(header[0].text, word) {
			return true
		}
	}
	units, columns, metrics := 0, 0, 0
	for _, i := range numeric {
		m := header[i].measure
		if m.unit != "" || len(m.parts) > 1 {
			units++
			columns += map[bool]int{true: 1}[m.says()]
		}
	}
	for _, r := range rows {
		metrics += map[bool]int{true: 1}[r.measure.says()]
	}
	return 2*columns > len(numeric) || 2*units > len(numeric) && 2*metrics <= len(rows)
}

// tableRuns makes runs of the cells of a table: what is of one case and target becomes one run, as
// long as no metric comes twice.
type tableRuns struct {
	*builder
	name string
	runs []result.Run
	at   map[string]int // by key
}

// A position is where in a table a cell is: of which target, under which label, with what measured.
type position struct {
	line    int
	target  string
	label   label
	measure measure
	runs    string // that its row is of, if a column says so
}

func (t *tableRuns) cell(p position, text string) {
	line, target, m := p.line, cmp.Or(p.target, result.Unknown), p.measure
	if missing(text) {
		t.say(line, audit.SaidEmpty, p.label.text+" of "+target)
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
	c := m.typed(p.label.text, t.families)
	t.measures(c, values)
	facts := known(audit.FactPlace, t.place(line), audit.FactTable, t.name, audit.FactRow, p.label.short,
		audit.FactRuns, p.runs, audit.FactTool, m.tool, audit.FactAggregate, m.aggregate)
	if t.code {
		facts = append(facts, digits(figures, values)...)
	}
	t.merge(c.Name+"\x00"+target, result.Run{Case: c.Name, Target: target, Tool: m.tool, Values: values, Facts: facts})
}

// digits are the facts that say what one of the last digit of each figure is, in the unit of its value.
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

// known are the facts, each a name and a value, that have a value.
func known(pairs ...string) []result.Fact {
	var facts []result.Fact
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			facts = append(facts, result.Fact{Name: pair[0], Value: pair[1]})
		}
	}
	return facts
}

// merge adds the values of a cell to the run of its key, if that has none of them yet; the place of each metric is
// kept.
func (t *tableRuns) merge(key string, r result.Run) {
	i, ok := t.at[key]
	if !ok || full(t.runs[i], r) {
		t.at[key] = len(t.runs)
		t.runs = append(t.runs, r)
		return
	}
	for _, v := range r.Values {
		t.runs[i].Values = append(t.runs[i].Values, v)
		digit := audit.FactDigit + "." + v.Metric
		t.runs[i].Facts = append(t.runs[i].Facts,
			known(audit.FactPlace+"."+v.Metric, r.Fact(audit.FactPlace), digit, r.Fact(digit))...)
	}
}

// full says whether a run has a value of another one already, or so many that it gets no more.
func full(run, more result.Run) bool {
	has := func(v result.Value) bool { _, has := run.Value(v.Metric); return has }
	return len(run.Values) >= maxValues || slices.ContainsFunc(more.Values, has)
}

func (t *tableRuns) flush() {
	for _, r := range t.runs {
		t.add(r)
	}
}

// value is a figure in its base unit, with the direction that its metric has.
func value(metric string, u unit.Unit, number float64) result.Value {
	return result.Value{Metric: metric, Unit: u, Better: direction(metric, u), Number: number}
}
