package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A page holds everything that the template shows: texts unescaped, figures drawn.
type page struct {
	Style   template.CSS
	Policy  string // Content-Security-Policy
	Scripts []template.HTML

	JSON     template.JS
	JSONRest string // note about rows that the JSON leaves out

	Title      string
	RunInfo    []string // targets, numbers of blocks and runs, duration, suite and date
	Comparison compare.Comparison
	Experiment result.Experiment

	Sessions         []string // changes between sessions
	Answer           answer
	Rankings         []ranking    // shown instead of Answer: primary cases, then the others
	Sheet            []sheetEntry // specification sheet of a single target
	Detectable       string       // detectable change of a comparison with a single target
	Why              string       // sentence about supported causes
	Explanations     folded[explanation]
	ExplanationsRest string
	Legend           string   // legend of Answer or Rankings
	Sentences        []string // primary comparisons in words, for screen readers
	Chips            []chip
	Shapes           template.HTML // shapes that the rows of all forest plots refer to
	Forests          []forest
	Noise            noise
	Trends           capped[trend] // if targets differ in a numeric option
	Paths            *pathView
	Nothing          string    // message if there is no result
	Measured         doc.Block // medians, if nothing is compared
	Undrawn          string    // note about cases without figures
	Further          *matrix   // metrics other than the main ones
	Cases            folded[caseRuns]
	Latency          folded[latencySection]
	Cost             *matrix
	Sections         []doc.Block
	Subjects         capped[string]
	Order            *order
	Timing           timing
	Series           folded[seriesSection]
	Timelines        folded[timelineSection]
	Differing        *matrix
	AllFacts         *matrix
	Findings         findingList
	Command          []string // each part stays on one line
	Design           []pair
	Reading          string
	Lab              bool // whether a target is of the lab
}

// CostFolded reports whether the table of costs is too long to be shown open.
func (p *page) CostFolded() bool { return len(p.Cost.Rows) > 4*manyCases }

type pair struct{ Name, Value string }

// folded holds parts of a page: the first or primary ones shown, the others folded.
type folded[T any] struct{ Shown, Folded []T }

// Any reports whether there is a part.
func (f folded[T]) Any() bool { return len(f.Shown)+len(f.Folded) > 0 }

// add appends a section: shown if its role is primary, else folded.
func (f *folded[T]) add(role result.Role, section T) {
	if role == result.Primary {
		f.Shown = append(f.Shown, section)
	} else {
		f.Folded = append(f.Folded, section)
	}
}

// Limits of what a page shows, so that every browser can open it. A page that leaves something out has a note; the
// other formats have everything. docs/formats.md has these numbers.
const (
	maxRows  = html.MaxRows // rows of a table or of a forest plot, entries of a list
	maxCases = 60           // cases with figures
	maxDots  = 1000         // runs of a target in the figure of every run
)

// MaxRows returns maxRows to the template.
func (*page) MaxRows() int { return maxRows }

// MaxCases returns maxCases to the template.
func (*page) MaxCases() int { return maxCases }

// capped holds the first rows of a list, and the number of all.
type capped[T any] struct {
	Rows []T
	All  int
}

// firstRows returns the first maxRows rows of a list.
func firstRows[T any](list []T) capped[T] {
	return capped[T]{list[:min(len(list), maxRows)], len(list)}
}

// Rest returns a note about the rows that are left out; empty if none are.
func (c capped[T]) Rest() string { return html.Rest(len(c.Rows), c.All) }

// newPage returns the page of an input, without styles, scripts and JSON.
func newPage(in Input) *page {
	c, all := in.Comparison, groups(in)
	runs := in.runs()
	b := newBuilder(in, all, runs)
	p := &page{
		Title: pageTitle(in), RunInfo: runInfo(in), Comparison: c, Experiment: in.Experiment, Findings: b.findings,
		Timing: timingOf(in), Reading: howToRead(c), Design: design(in),
	}
	p.Sessions = sessionChanges(c)
	p.Sentences = b.primarySentences()
	axis := b.axis()
	p.Answer, p.Legend = b.answer(axis), legend(c)
	if p.Answer.ranked(in) {
		p.Rankings = []ranking{b.ranking(p.Answer, p.Answer.Rows)}
		if folded := p.Answer.Only(p.Answer.Folded); len(folded.Rows) > 0 {
			p.Rankings = append(p.Rankings, b.ranking(folded, folded.Rows))
		}
		p.Legend = p.Rankings[0].legend(c)
	}
	p.Shapes, p.Forests = axis.Shapes(), b.forests(axis)
	p.Why = causesSentence(in)
	p.Explanations, p.ExplanationsRest = newExplanations(in)
	p.Chips = chips(in, all)
	p.Noise = b.noise()
	p.Trends = firstRows(trends(c))
	p.Paths = b.paths()
	p.Further = furtherMetrics(c, all)
	if list, others := splitMedians(in); len(list) > 0 {
		p.Further, p.Paths = mediansMatrix(others), nil // Paths would repeat the numbers
		p.Measured, _ = measured(in)
		p.Sheet, p.Detectable = specificationSheet(in, list), detectableText(in, list)
	} else if len(p.Forests) == 0 {
		p.Nothing = nothingToCompareText
	}
	if drawn := len(b.casesWithFigures()); drawn < len(b.results) {
		p.Undrawn = fmt.Sprintf("The first %d of %d cases have figures in this page.", drawn, len(b.results))
	}
	p.Cases = b.cases()
	p.Latency = b.latencies()
	p.Cost = costs(c, all)
	p.Sections = sections(in)
	p.Subjects = firstRows(subjectSentences(c))
	p.Order = b.order()
	p.Series = b.series()
	p.Timelines = b.timelines()
	p.Differing, p.AllFacts = factTables(in)
	p.Command = command(in)
	p.nameFigures()
	p.Lab = slices.ContainsFunc(in.Experiment.Targets, func(t result.Target) bool {
		return t.Spec.Kind == "lab"
	})
	return p
}

// pageTitle names the compared targets.
func pageTitle(in Input) string {
	if !in.Experiment.Design.AllPairs {
		return title(in.Comparison)
	}
	return prose.Enumerate(columns(in.Comparison)) + ", each with each"
}

// A builder draws the parts of a page that need all cases and targets.
type builder struct {
	in       Input
	groups   []group
	results  []caseResult
	columns  []string
	runs     map[string]map[string][]run // by case and target
	rank     map[string]int              // index of each target in columns
	boxes    map[string][]compare.Box    // by case
	findings findingList
}

// A caseResult is a case in one metric, usually its main metric, on all targets.
type caseResult struct {
	Case, Metric string
	Planned      result.Case // the planned case
	Unit         unit.Unit
	Better       metric.Better
	Role         result.Role
	Bound        *compare.UpperBound
	Bounds       map[string]compare.Number // medians of the node-to-node reference, by target
	Medians      map[string]compare.Number // by target
}

// newBuilder returns a builder for an input, its groups and runs.
func newBuilder(in Input, all []group, runs []run) *builder {
	b := &builder{in: in, groups: all, columns: runTargets(in, runs),
		runs: map[string]map[string][]run{}, rank: map[string]int{}, boxes: map[string][]compare.Box{}}
	for i, name := range b.columns {
		b.rank[name] = i
	}
	for _, r := range runs {
		if b.runs[r.Case] == nil {
			b.runs[r.Case] = map[string][]run{}
		}
		b.runs[r.Case][r.Target] = append(b.runs[r.Case][r.Target], r)
	}
	for _, x := range in.Comparison.Boxes {
		b.boxes[x.Case] = append(b.boxes[x.Case], x)
	}
	b.results = caseResultsOf(slices.Concat(all, medianGroups(in)))
	b.findings = newFindings(in.Comparison)
	return b
}

// casesWithFigures returns the cases that have figures: the first maxCases.
func (b *builder) casesWithFigures() []caseResult { return b.results[:min(len(b.results), maxCases)] }

// caseResultsOf joins the groups of a case in its main metric; with several baselines a case has several groups.
func caseResultsOf(all []group) []caseResult {
	var list []caseResult
	at := index[[2]string]{}
	for _, g := range all {
		if !g.Main && g.Role != result.Primary {
			continue
		}
		i, first := at.add([2]string{g.Case, g.Metric})
		if first {
			list = append(list, caseResult{Case: g.Case, Planned: g.Planned, Metric: g.Metric, Unit: g.Unit,
				Better: g.Better, Role: g.Role, Bounds: map[string]compare.Number{}, Medians: map[string]compare.Number{}})
		}
		m := &list[i]
		if m.Unit == "" {
			m.Unit, m.Better = g.Unit, g.Better
		}
		if m.Bound == nil {
			m.Bound = g.Bound
		}
		maps.Copy(m.Bounds, g.bounds())
		for _, r := range g.Rows {
			m.Medians[r.Target] = r.TargetMedian
		}
		m.Medians[g.Baseline] = g.BaselineMedian
	}
	return list
}

// primarySentences returns the primary comparisons in words.
func (b *builder) primarySentences() []string {
	var list []string
	for _, r := range b.in.Comparison.Primary() {
		list = append(list, r.Sentence)
	}
	return list[:min(len(list), maxRows)]
}

// answer returns the matrix of the first screen.
func (b *builder) answer(axis chart.Forest) answer {
	return newAnswer(b.in, b.groups, &axis, func(r compare.Row) []finding {
		return b.findings.marks(r.Case, r.Target, r.Baseline, r.Metric)
	})
}

// Only returns the matrix of exploratory cases with these rows.
func (h answer) Only(rows []answerRow) answer {
	return answer{File: h.File + "-exploratory", Columns: h.Columns, Rows: rows}
}

// Shown returns the rows that a page shows.
func (h answer) Shown() capped[answerRow] { return firstRows(h.Rows) }

// legend explains the signs of the matrix and the forest plot.
func legend(c compare.Comparison) string {
	return fmt.Sprintf("Triangles point up for better and down for worse, squares are equivalent, hollow circles "+
		"undecided. Bars are the interval of the change on one logarithmic axis; the band is ±%.3g %%, the smallest "+
		"difference that matters, and an arrow is an end beyond the axis or without a bound.", c.Delta*100)
}

// runInfo returns the targets, the number of blocks and runs that took place (not those planned), their duration, the
// suite and the date.
func runInfo(in Input) []string {
	e := in.Experiment
	list := []string{pageTitle(in)}
	blocks := 0
	for _, r := range in.Runs {
		blocks = max(blocks, r.Block)
	}
	if most := e.Design.Blocks; blocks > 0 && in.Comparison.Paired {
		text := unit.Plural(blocks, "block")
		if most > blocks {
			text = fmt.Sprintf("%d of at most %d blocks", blocks, most)
		}
		list = append(list, text)
	}
	if n := len(in.Runs); n > 0 {
		list = append(list, unit.Plural(n, "run"))
	}
	if t := timingOf(in); t.Total > 0 {
		list = append(list, prose.Clock(t.Total))
	}
	if e.Suite != "" {
		list = append(list, "suite "+e.Suite)
	}
	if !e.Created.IsZero() {
		list = append(list, e.Created.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	return list
}

// A chip is a count on the first screen that opens a list.
type chip struct {
	Count int
	Name  string
	Class string
	Items capped[string]
}

// chips returns the counts of warnings, notes and other caveats.
func chips(in Input, all []group) []chip {
	c := in.Comparison
	everyNote, _ := rowNotes(all, math.MaxInt)
	var list []chip
	for _, count := range []struct {
		noun, nouns, class string
		items              []string
	}{
		{"warning", "warnings", "worse", warningSentences(c.Warnings)},
		{"note on a comparison", "notes on comparisons", "", everyNote},
		{"not measured", "not measured", "", notMeasured(c.NotMeasured)},
		{"target with invalid runs", "targets with invalid runs", "", invalidRuns(c)},
		{"target differs in other facts too", "targets differ in other facts too", "", alsoDiffers(c)},
	} {
		if len(count.items) == 0 {
			continue
		}
		name := count.nouns
		if len(count.items) == 1 {
			name = count.noun
		}
		list = append(list, chip{Count: len(count.items), Name: name, Class: count.class, Items: firstRows(count.items)})
	}
	return list
}

// gateClass returns the CSS class of the outcome of a gate.
func gateClass(o compare.Outcome) string {
	switch o {
	case compare.Passed, compare.Failed:
		return string(o)
	}
	return "undecided"
}

// class returns the CSS class of a verdict: better, worse, same or undecided.
func class(r compare.Row) string { return string(mark(r)) }

// mark returns the mark of a verdict.
func mark(r compare.Row) chart.Mark {
	switch {
	case r.Verdict == compare.Equivalent:
		return chart.Same
	case r.Verdict == compare.Different && r.Direction == compare.BetterThan:
		return chart.Better
	case r.Verdict == compare.Different && r.Direction == compare.WorseThan:
		return chart.Worse
	}
	return chart.Undecided
}

// An order shows when every run happened, and when their sites were set up and cleaned up.
type order struct {
	Rows []orderRow
	Axis template.HTML
}

type orderRow struct {
	Target, Count string
	Strip         template.HTML
}

// order returns the figure of the order of runs; nil if they have no times.
func (b *builder) order() *order {
	t := timingOf(b.in)
	if t.Total <= 0 {
		return nil
	}
	spans, runs, invalid := map[string][]chart.Span{}, map[string]int{}, map[string]int{}
	for _, s := range b.in.Sites {
		spans[s.Target] = append(spans[s.Target],
			chart.Span{Start: s.Start.Sub(t.First).Seconds(), Setup: s.Setup, Valid: true},
			chart.Span{Start: s.Start.Sub(t.First).Seconds() + s.Setup + s.Used, Cleanup: s.Cleanup, Valid: true})
	}
	for _, r := range b.in.runs() {
		runs[r.Target]++
		spans[r.Target] = append(spans[r.Target], chart.Span{
			Start: r.Start.Sub(t.First).Seconds(), Setup: r.Setup, Window: r.Window, Cleanup: r.Cleanup, Valid: r.Valid(),
		})
		if !r.Valid() {
			invalid[r.Target]++
		}
	}
	o := &order{Axis: chart.StripAxis(t.Total)}
	for i, target := range b.columns {
		count := fmt.Sprintf("%s, %d invalid", unit.Plural(runs[target], "run"), invalid[target])
		caption := chart.Caption{ID: "order-" + strconv.Itoa(i+1), Title: "When " + target + " was measured: " + count}
		o.Rows = append(o.Rows, orderRow{target, count, chart.Strip(caption, spans[target], t.Total)})
	}
	return o
}

// reasons returns the reasons of an invalid run, after a comma.
func reasons(r *result.Run) string {
	if r.Valid() {
		return ""
	}
	return ", invalid: " + result.Joined(r.Invalid)
}

// design returns the parameters of the experiment.
func design(in Input) []pair {
	e := in.Experiment
	if e.ID == "" {
		return nil
	}
	d := e.Design
	kind := d.Kind
	if d.Parallel {
		kind += ", the runs of a case in a block measured at the same time"
	}
	list := []pair{{"Experiment", e.ID}, {"Imported from", e.Imported}, {"Design", kind}}
	if d.Blocks > 0 {
		list = append(list, pair{"Blocks", strconv.Itoa(d.Blocks)})
	}
	if len(d.Looks) > 0 {
		list = append(list, pair{"Looks after", strings.Join(integerTexts(d.Looks), ", ") + " blocks"})
	}
	if d.Duration > 0 {
		list = append(list, pair{"Measured for", unit.Format(d.Duration, unit.Second) + " a run"},
			pair{"Warm-up", unit.Format(d.Warmup, unit.Second)})
	}
	list = append(list,
		pair{"Error probability (alpha)", fmt.Sprint(d.Alpha)},
		pair{"Smallest difference that matters (delta)", fmt.Sprintf("%.3g %%", d.Delta*100)},
		pair{"Seed", fmt.Sprint(e.Seed)}, pair{"Suite", e.Suite}, pair{"Tool", e.Tool}, pair{"Knotmeter", versions(in)})
	if d.Budget > 0 {
		list = append(list, pair{"Budget", seconds(d.Budget).Round(time.Second).String()})
	}
	for _, t := range e.Targets {
		if t.Name != t.Spec.Text {
			list = append(list, pair{"Target " + t.Name, t.Spec.Text})
		}
	}
	return slices.DeleteFunc(list, func(p pair) bool { return p.Value == "" })
}
