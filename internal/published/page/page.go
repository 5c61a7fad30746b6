// Package page reads published numbers: CSV, Markdown, and plain text as copied from a page.
//
// Like store and importer it produces results. Every figure becomes a run whose facts have its place and what the text
// reports about it, so that the audit can judge it like a run of Knotmeter. It opens no files and judges nothing.
package page

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
	"unicode"
	"unicode/utf8"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/metric"
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
	Unread   []audit.Unread // what looks like a figure and is not read
	Warnings []string       // about texts that look like figures and are not read; each with its place
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
	b := &builder{name: name, families: families,
		runCount: map[[2]string]int{}, targets: map[string]bool{}, cases: map[string]bool{},
		doc: Document{Results: result.Results{Facts: map[string][]result.Fact{}}}}
	separator, isCSV := csvSeparator(name, lines)
	switch {
	case isHTML(name, string(data)):
		lines, b.numbers, b.over = fromHTML(string(data))
		b.readText(lines)
	case isCSV:
		if err := b.readCSV(string(data), separator); err != nil {
			return nil, err
		}
	default:
		lines, b.numbers, b.over = withHTMLTables(lines)
		b.readText(lines)
	}
	if b.over > 0 {
		return nil, fmt.Errorf("%s:%d: %w: the tables up to here have more than %d cells", name, b.over, ErrFormat, maxCells)
	}
	if b.figures == 0 && len(b.doc.Runs) == 0 {
		if hint := importer.Hint(name, data); hint != "" {
			return nil, fmt.Errorf("%s: %w: %s", name, ErrFormat, hint)
		}
		return nil, fmt.Errorf("%s: %w: %swanted CSV with a header, a Markdown or HTML table, lines of a label and its "+
			"numbers, or output of iperf3 or netperf", name, ErrFormat, b.nothingText())
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
	baseUnit string  // unit of all numbers, if the text gives one
	section  section // of what is being read
	numbers  []int   // of the lines in the file; nil: in order, from 1
	style    style   // of its numbers
	skipped  int     // tables without results
	code     bool    // the text has blocks of code, whose output may be the source of a table
}

func (b *builder) place(line int) string { return b.name + ":" + strconv.Itoa(line) }

func (b *builder) warn(line int, format string, a ...any) {
	b.doc.Warnings = append(b.doc.Warnings, b.place(line)+": "+fmt.Sprintf(format, a...))
}

// addUnread records a cell of a table that looks like a figure and is not read.
func (b *builder) addUnread(line int, column, text, reason string) {
	b.doc.Unread = append(b.doc.Unread,
		audit.Unread{Place: b.place(line), Column: short(column), Text: short(text), Reason: reason})
}

// add appends a run and registers its case and target.
func (b *builder) add(r result.Run) {
	key := [2]string{r.Case, r.Target}
	b.runCount[key]++
	r.Schema, r.ID = result.RunSchema, b.nextID()
	r.Block, r.Attempt, r.Slot = b.runCount[key], 1, 1
	r.Tool = cmp.Or(r.Tool, result.Unknown)
	r.Facts = append(slices.Clip(r.Facts), factsWithValues(audit.FactSection, b.section.name)...)
	if r.Fact(audit.FactRuns) == "" {
		r.Facts = append(r.Facts, factsWithValues(audit.FactRuns, b.section.runs)...)
	}
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

// nothingText describes tables of which nothing was read; empty if there are none.
func (b *builder) nothingText() string {
	if n := len(b.doc.Unread); n > 0 {
		u := b.doc.Unread[0]
		return fmt.Sprintf("%d of %s were not read, the first in line %s, column %s (%q: %s); ", n, unit.Plural(n, "figure"),
			strings.TrimPrefix(u.Place, b.name+":"), u.Column, u.Text, u.Reason)
	}
	if b.skipped == 0 {
		return ""
	}
	return unit.Plural(b.skipped, "table") +
		" without results, which would have a unit such as Gbit/s or a metric such as p99 in a header or a label; "
}

// document completes the document.
func (b *builder) document() *Document {
	d := &b.doc
	b.matchListed()
	for i, r := range d.Runs {
		if r.Fact(audit.FactGap) != "" {
			continue
		}
		if mesh := meshWord.FindString(r.Target); mesh != "" && !otherwise.MatchString(r.Target) {
			r.Facts = append(r.Facts, result.Fact{Name: result.MeshIntercepted, Value: "yes",
				Evidence: "the target's name has " + mesh})
		}
		if r.Fact(audit.FactRuns) == "" {
			r.Facts = append(r.Facts, factsWithValues(audit.FactRuns, b.runs)...)
		}
		if r.Fact(audit.FactConcurrency) == "" {
			r.Facts = append(r.Facts, factsWithValues(audit.FactConcurrency, b.workers)...)
		}
		d.Runs[i].Facts = r.Facts
	}
	if b.style.doubts > 0 {
		b.warn(b.style.firstLine, "%s", b.style.doubtText())
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
	line    int    // of the header, from 1
	title   string // the line before it
	heading string // heading above it
	header  []string
	rows    []gridRow
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

// readGrid adds runs with the figures of a table. A table without results, such as one of options, is skipped.
func (b *builder) readGrid(g grid) {
	if b.cells += len(g.header) * len(g.rows); b.cells > maxCells {
		b.over = g.line
		return
	}
	t := tableRuns{builder: b, grid: g, name: "the table in line " + strconv.Itoa(g.line), at: map[string]int{}}
	t.parseColumns()
	figures := t.with(isFigure)
	if len(figures) > 0 {
		t.parseLabels(figures)
	}
	if !t.hasResults(figures) {
		b.skipped++
		return
	}
	b.doc.Tables++
	for i, name := range g.header {
		filled := func(r gridRow) bool { return !missing(r.cell(i)) }
		if i > 0 && strings.TrimSpace(name) != "" && !slices.ContainsFunc(g.rows, filled) {
			b.addGap(g.line, audit.GapColumn, clean(name))
		}
	}
	t.hasChanges = len(t.with(isChange)) > 0
	for at := range g.rows {
		t.readRow(at, figures)
	}
	t.readChanges(figures)
	t.flush()
}

// parseLabels parses the labels of the rows, and finds out where the targets are.
func (t *tableRuns) parseLabels(figures []int) {
	columns, rows := make([]label, len(t.columns)), make([]label, len(t.grid.rows))
	for i, c := range t.columns {
		columns[i] = c.label
	}
	t.repeatLabels(figures[0])
	for i, r := range t.grid.rows {
		name, params := t.rowLabel(r)
		t.params = append(t.params, params)
		rows[i] = newLabel(name)
	}
	t.labels, t.title = rows, parseMeasure(t.grid.title)
	t.oneTarget = targetOutside(figures, columns, rows)
	named := slices.ContainsFunc(rows, func(l label) bool { return l.text != "" })
	t.byRow = named && !t.oneTarget && targetsInRows(figures, columns, rows)
	if t.repeated = repetitions(figures, columns); t.repeated > 0 {
		t.byRow = named && !slices.ContainsFunc(rows, func(l label) bool { return l.measure.describesMeasurement() })
	}
	for i, params := range t.params {
		if !t.byRow && params != "" {
			rows[i] = newLabel(rows[i].text + " " + params)
		}
	}
}

var (
	// option matches a header that only tables of options have.
	option = regexp.MustCompile(`(?i)^(?:default|default values?|required|required\?|mandatory)$`)
	// offer matches the first header of a table of what a provider sells; its figures are limits.
	offer = regexp.MustCompile(`(?i)^(?:size(?: name)?|sku|(?:service )?tier|plan)$`)
	// setting matches the first header of a table of what can be set, or of what is allowed.
	setting = regexp.MustCompile(`(?i)^(?:annotation|option|setting|flag|field|(?:environment )?variable|argument|` +
		`limits?|quota|requirements?|thresholds?|slo|sla|kpi|alert)s?$`)
	// parameterName matches the first header of a table of parameters if the other is that of their values.
	parameterName = regexp.MustCompile(`(?i)^(?:parameter|key|property|attribute|item)$`)
	// virtualCPUs and memory are the headers of a table of machines.
	virtualCPUs = regexp.MustCompile(`(?i)^(?:#? ?of )?vcpus?\b`)
	memory      = regexp.MustCompile(`(?i)^(?:memory|ram)\b`)
)

// isDocumentation reports whether a table is one of options, limits, offers or machines, by its headers. Sizes that are
// numbers are those of messages.
func (t *tableRuns) isDocumentation() bool {
	has := func(pattern *regexp.Regexp) bool {
		return slices.ContainsFunc(t.columns, func(c column) bool { return pattern.MatchString(c.text) })
	}
	number := func(r gridRow) bool { return leadingNumber.MatchString(clean(r.cell(0))) }
	first := t.columns[0].text
	return has(option) || setting.MatchString(first) || has(virtualCPUs) && has(memory) ||
		parameterName.MatchString(first) && len(t.columns) > 1 && strings.EqualFold(t.columns[1].text, "value") ||
		offer.MatchString(first) && !slices.ContainsFunc(t.grid.rows, number)
}

// timeWord matches a label of times.
var timeWord = regexp.MustCompile(`(?i)\b(?:time|duration|delay)\b`)

// hasResults reports whether a table has results: a figure with a rate, or one whose labels name what it measures.
func (t *tableRuns) hasResults(figures []int) bool {
	if t.isDocumentation() {
		return false
	}
	for at, r := range t.grid.rows {
		for _, i := range figures {
			parsed, reason := t.style.peek(r.cell(i))
			p := t.position(at, i)
			if reason != "" {
				if looksMeasured(r.cell(i), measure{}) && p.measure.metric != "" {
					return true
				}
				continue
			}
			if cmp.Or(parsed[0].unit, p.measure.unit) == "" { // the title alone says little of plain numbers
				p.measure = p.label.measure.withDefaults(t.columns[i].measure)
			}
			timed := parsed[0].unit == unit.Second && (timeWord.MatchString(p.label.text) || timeWord.MatchString(p.column))
			if timed || p.measure.measured(parsed[0]) {
				return true
			}
		}
	}
	return false
}

// position returns the context of a cell.
func (t *tableRuns) position(at, i int) position {
	row, head := t.labels[at], t.columns[i]
	p := position{line: t.grid.rows[at].line, column: head.text, target: head.name, label: row}
	switch params := t.params[at]; {
	case t.repeated > 0 && t.byRow:
		p.target, p.label = row.text, newLabel(t.grid.title)
	case t.oneTarget, t.repeated > 0:
		p.target = t.grid.heading
	case t.byRow && params != "":
		p.target, p.label = row.text, newLabel(head.text+" "+params)
	case t.byRow:
		p.target, p.label = row.text, head.label
	}
	m := p.label.measure
	if m.workload == "" && m.path == "" && head.measure.workload != "" && row.text != "" && !t.byRow {
		m.params = slug(row.text) // rows of one workload that differ in something else are different cases
		if row.text == t.params[at] {
			m.params = paramsOf(strings.ToLower(row.text))
		}
	}
	p.measure = m.withDefaults(head.measure).withDefaults(t.title)
	if m := head.measure.metric; t.oneTarget && m != "" && m != metric.Mean && m != metric.Max && m != metric.Min {
		p.measure.metric = m // the row names the workload
	}
	return p
}

// readRow adds the figures of a row.
func (t *tableRuns) readRow(at int, figures []int) {
	r := t.grid.rows[at]
	switch role := roleOf(t.labels[at]); {
	case role == isParameter, role == isDuration, role == isCount, role == isGoal:
		return
	case role == isChange, role == isSpread, role == isLow, role == isHigh:
		reason := "a spread in a row of its own"
		if role == isChange {
			reason = unknownBase
		}
		for _, i := range figures {
			if !missing(r.cell(i)) {
				t.addUnread(r.line, t.columns[i].text, r.cell(i), reason)
			}
		}
		return
	}
	runs := ""
	if t.repeated > 0 {
		runs = strconv.Itoa(t.repeated)
	}
	if counts := t.with(isCount); len(counts) > 0 {
		runs = ""
		if n, err := strconv.Atoi(clean(r.cell(counts[0]))); err == nil && n > 0 {
			runs = strconv.Itoa(n)
		}
	}
	for _, i := range figures {
		p := t.position(at, i)
		if of := t.nearest(i, isUnit, 1); of >= 0 {
			if u, ok := unitOf(clean(r.cell(of))); ok {
				p.measure.scaledUnit = u
			}
		}
		if of := t.nearest(i, isSpread, 1); of >= 0 {
			p.spread = r.cell(of)
		}
		if low, high := t.nearest(i, isLow, -1), t.nearest(i, isHigh, -1); low >= 0 && high >= 0 {
			p.low, p.high = r.cell(low), r.cell(high)
		}
		p.runs = runs
		t.addCell(p, r.cell(i))
	}
	for i, c := range t.columns {
		if c.role == isLabel && i > figures[0] && looksMeasured(r.cell(i), c.measure) {
			t.addUnread(r.line, c.text, r.cell(i), "most cells of its column are no figures")
		}
	}
}

// leadingNumber matches a number at the begin of a cell, perhaps with a bound, and the words after it.
var leadingNumber = regexp.MustCompile(`^[~≈<>≤≥]*\s*[+-]?\d[\d.,]*`)

// unitAfter matches a word after a digit.
var unitAfter = regexp.MustCompile(`\d\s*([^\s\d.,;()+-]+)`)

// looksMeasured reports whether a short cell begins with a number, below a unit or with a unit of its own.
func looksMeasured(text string, m measure) bool {
	text = strings.TrimFunc(clean(text), decoration)
	if !leadingNumber.MatchString(text) || utf8.RuneCountInString(text) > maxQuote/2 {
		return false
	}
	if m.unit != "" {
		return true
	}
	for _, found := range unitAfter.FindAllStringSubmatch(text, -1) {
		if u, ok := unitOf(found[1]); ok && u.unit != unit.Byte && u.unit != unit.Ratio {
			return true
		}
	}
	return false
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

// targetOutside reports whether neither rows nor columns are targets: all rows name a path, a workload or parameters,
// and all columns of figures what they measure. Then the figures are of one target, which the text around the table
// names.
func targetOutside(numeric []int, header, rows []label) bool {
	seen := map[[5]string]bool{}
	for _, i := range numeric {
		m := header[i].measure
		of := [...]string{m.metric, m.workload, m.path, m.params, m.aggregate}
		if m.unit == "" && m.metric == "" && m.workload == "" || seen[of] { // alike, they differ in their targets
			return false
		}
		seen[of] = true
	}
	return !slices.ContainsFunc(rows, func(r label) bool {
		return r.text != "" && r.measure.path == "" && r.measure.workload == ""
	})
}

// targetWord matches the header of a column of targets.
var targetWord = regexp.MustCompile(`(?i)^(?:targets?|(?:cni|network|k8s|kubernetes|cilium|calico|os|kernel|linux)? ?` +
	`(?:cni|plug-?in|datapath|data ?plane|configuration|config|set-?up|environment|cluster|provider|cloud|platform|` +
	`vendor|product|solution|implementation|variant|version|release|driver|backend|mesh|service mesh|distribution|` +

	`instance(?: type)?|vm(?: type| size)?|machine(?: type)?|storage ?class|encryption|kernel|system|配置|模式))` +
	`(?: (?:name|mode|type))?$`)

// targetsInRows reports whether rows are targets and columns are measurements. They are if the first header is a word
// for targets and no row names a measurement, if most numeric columns name a measurement and have a unit, or if most
// numeric columns name a measurement or have a unit, and most rows name none.
func targetsInRows(numeric []int, header, rows []label) bool {
	if numeric[0] > 0 && targetWord.MatchString(header[0].text) &&
		!slices.ContainsFunc(rows, func(r label) bool { return r.measure.workload != "" || r.measure.metric != "" }) {
		return true
	}
	described, measuredColumns, measuredRows := 0, 0, 0
	for _, i := range numeric {
		m := header[i].measure
		hasUnit := m.unit != "" || len(m.parts) > 1
		if hasUnit || m.describesMeasurement() {
			described++
		}
		if hasUnit && m.describesMeasurement() {
			measuredColumns++
		}
	}
	for _, r := range rows {
		if r.measure.describesMeasurement() {
			measuredRows++
		}
	}
	return 2*measuredColumns > len(numeric) || 2*described > len(numeric) && 2*measuredRows <= len(rows)
}

// A tableRuns merges the cells of a table into runs: those of one case and target become one run, until a metric
// repeats.
type tableRuns struct {
	*builder
	name       string
	grid       grid
	columns    []column
	labels     []label  // of the rows
	params     []string // of the rows, in words
	title      measure
	oneTarget  bool // neither rows nor columns are targets
	byRow      bool // rows are targets
	repeated   int  // number of columns that are runs of the same test; 0: columns are something else
	hasChanges bool
	runs       []result.Run
	at         map[string]int // index of the last run, by key
}

// parseCell parses a cell, and notes the line of the first number with two readings.
func (b *builder) parseCell(line int, text string) (figures []figure, reason string) {
	figures, reason = b.style.parseCell(text)
	if b.style.doubts > 0 && b.style.firstLine == 0 {
		b.style.firstLine = line
	}
	return figures, reason
}

// A position is the context of a cell in a table.
type position struct {
	line      int
	column    string // header
	target    string
	label     label
	measure   measure
	runs      string // number of runs behind its row; empty: unknown
	spread    string // cell with the standard deviation; empty: none
	low, high string // cells with the ends of an interval; empty: none
}

// addCell adds the figures of a cell. A cell without any is a gap; one that cannot be read is recorded as unread.
func (t *tableRuns) addCell(p position, text string) {
	line, target := p.line, cmp.Or(p.target, result.Unknown)
	if missing(text) {
		t.addGap(line, audit.GapCell, p.label.text+" of "+target)
		return
	}
	figures, reason := t.parseCell(line, text)
	switch {
	case reason != "" && !strings.ContainsFunc(text, unicode.IsDigit):
		t.warn(line, "%q of %s is no figure", short(text), target)
		return
	case reason != "":
		t.addUnread(line, p.column, text, reason)
		return
	case len(figures) == 1 && figures[0].isChange() && p.measure.unit != unit.Ratio && p.measure.metric != metric.Loss:
		t.addUnread(line, p.column, text, unknownBase)
		return
	}
	for _, f := range figures {
		if f.share != "" {
			t.addUnread(line, p.column, f.share, unknownBase)
		}
	}
	if sd, _, ok := t.style.number(clean(p.spread)); ok && sd > 0 && figures[0].sd == 0 {
		figures[0].sd = sd
	}
	if len(figures) == 1 || len(p.measure.parts) > 0 {
		reason = t.addFigures(p, p.measure, figures)
	} else { // the label does not name the parts: they are different cases
		for i, f := range figures {
			m := p.measure
			m.params = strings.TrimPrefix(m.params+",figure="+strconv.Itoa(i+1), ",")
			if reason = t.addFigures(p, m, []figure{f}); reason != "" {
				break
			}
		}
	}
	if reason != "" {
		t.addUnread(line, p.column, text, reason)
	}
}

// addFigures adds figures of a cell as the values of a run. If it cannot, the reason is a phrase.
func (t *tableRuns) addFigures(p position, m measure, figures []figure) (reason string) {
	values, err := m.values(figures)
	if err != nil {
		return err.Error()
	}
	c := m.caseOf(p.label.text, values, t.families)
	t.registerCase(c, values)
	facts := factsWithValues(audit.FactPlace, t.place(p.line), audit.FactTable, t.name, audit.FactRow, p.label.short,
		audit.FactRuns, p.runs, audit.FactTool, m.tool, audit.FactAggregate, m.aggregate,
		audit.FactInterval, t.interval(p, figures[0], values[0]))
	if t.code || t.hasChanges {
		facts = append(facts, digits(figures, values)...)
	}
	target := cmp.Or(p.target, result.Unknown)
	t.merge(c.Name+"\x00"+target, result.Run{Case: c.Name, Target: target, Tool: m.tool, Values: values, Facts: facts})
	return ""
}

// interval returns the interval around a value as text; empty if the row has none.
func (t *tableRuns) interval(p position, f figure, v result.Value) string {
	low, _, isLow := t.style.number(clean(p.low))
	high, _, isHigh := t.style.number(clean(p.high))
	if !isLow || !isHigh || f.number == 0 {
		return ""
	}
	scale := v.Number / f.number
	return unit.Join(unit.Format(low*scale, v.Unit), unit.Format(high*scale, v.Unit))
}

// digits returns facts with the value of one unit in the last digit of each figure, in the base unit.
func digits(figures []figure, values []result.Value) (facts []result.Fact) {
	isSpread := func(v result.Value) bool { return strings.HasSuffix(v.Metric, audit.SpreadSuffix) }
	values = slices.DeleteFunc(slices.Clone(values), isSpread)
	for i, f := range figures {
		if f.number != 0 && f.digit > 0 {
			facts = append(facts, digitFact(values[i].Metric, math.Abs(f.digit/f.number*values[i].Number)))
		}
	}
	return facts
}

// digitFact returns a fact with the value of one unit in the last digit of a metric.
func digitFact(metric string, digit float64) result.Fact {
	return result.Fact{Name: audit.FactDigit + "." + metric, Value: strconv.FormatFloat(digit, 'g', 3, 64)}
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

// merge adds the values of r to the run of its key, with the place of each, or begins a new run if that one has
// maxValues, or one of the metrics already.
func (t *tableRuns) merge(key string, r result.Run) {
	i, ok := t.at[key]
	repeated := func(v result.Value) bool { _, found := t.runs[i].Value(v.Metric); return found }
	if !ok || len(t.runs[i].Values) >= maxValues || slices.ContainsFunc(r.Values, repeated) {
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

// flush adds the runs to the document.
func (t *tableRuns) flush() {
	for _, r := range t.runs {
		t.add(r)
	}
}

// value returns a number in the base unit as a value with its metric's direction. An unknown metric that is a time is
// better if lower.
func value(name string, u unit.Unit, number float64) result.Value {
	v := result.Value{Metric: name, Unit: u, Better: metric.Neutral, Number: number}
	m, known := metric.Find(name)
	switch {
	case known && (u == m.Unit || m.Unit != unit.Second):
		v.Better = m.Better
	case u == unit.Second && !known && !strings.HasSuffix(name, audit.SpreadSuffix):
		v.Better = metric.Lower
	}
	return v
}
