package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"

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

	Top       []doc.Block // the answer
	Chips     []doc.Block // counts of what a reader may have to know; a click opens each
	Answer    answer
	Measured  doc.Block     // medians, if nothing is compared
	Shapes    template.HTML // shapes that the rows of all forest plots refer to
	Why       doc.Block
	Forests   []forest
	Noise     noise
	Trends    capped[trend] // if targets differ in a numeric option
	Paths     *pathView
	Undrawn   string    // note about cases without figures
	Further   doc.Block // metrics other than the main ones
	Cases     folded[caseRuns]
	Latency   folded[latencySection]
	Sections  []doc.Block
	Subjects  capped[string]
	Order     *order
	Timing    timing
	Series    folded[seriesSection]
	Timelines folded[timelineSection]
	Last      []doc.Block // sections below the figures
}

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
	p := &page{Title: pageTitle(in), RunInfo: runInfo(in), Comparison: c, Experiment: in.Experiment,
		Timing: timingOf(in)}
	axis := b.axis()
	p.Answer = newAnswer(in, all, &axis)
	outcomes := gates(c)
	outcomes.Title = "" // the headline is above
	p.Top = append([]doc.Block{notices(in), outcomes}, p.Answer.page(in)...)
	for _, caveat := range caveats(in, all, maxRows) {
		if caveat.Count != "" {
			p.Chips = append(p.Chips, caveat)
		} else {
			p.Top = slices.Insert(p.Top, 1, caveat)
		}
	}
	p.Top = present(p.Top...)
	p.Shapes, p.Forests = axis.Shapes(), b.forests(axis)
	p.Why = why(in)
	p.Noise = b.noise()
	p.Trends = firstRows(trends(c))
	p.Paths = b.paths()
	p.Further = furtherMetrics(c, all)
	if _, others := splitMedians(in); len(c.Medians) > 0 {
		p.Further, p.Paths = furtherMedians(others), nil // Paths would repeat the numbers
		p.Measured, _ = measured(in)
	}
	if drawn := len(b.casesWithFigures()); drawn < len(b.results) {
		p.Undrawn = fmt.Sprintf("The first %d of %d cases have figures in this page.", drawn, len(b.results))
	}
	p.Cases = b.cases()
	p.Latency = b.latencies()
	p.Sections = append(present(costs(c, all)), sections(in)...)
	p.Subjects = firstRows(subjectSentences(c))
	p.Order = b.order()
	p.Series = b.series()
	p.Timelines = b.timelines()
	p.Last = []doc.Block{differs(in), auditSection(c), method(in)}
	p.nameFigures()
	return p
}

// page returns the answer of a page: drawn, with what its other sections tell in other media.
func (h answer) page(in Input) []doc.Block {
	c := in.Comparison
	title := "Changes need not be the ratio of the two values"
	text := "The change is the Hodges-Lehmann estimate: the median of the ratios of every run of the one to every run " +
		"of the other, which need not be the ratio of the two medians."
	if c.Paired {
		title = "Changes are paired: they need not be the ratio of the two values"
		text = "A block measures every target once, minutes apart at most, and gives one ratio. The change is the " +
			"Hodges-Lehmann estimate of these ratios. A slow hour lowers both values of its blocks and leaves their ratios " +
			"alone; the ratio of two medians mixes values of different blocks, and moves with every such hour."
	}
	paired := doc.Block{Level: doc.Data, Title: title, Parts: []doc.Element{doc.Paragraph{Text: text}}}
	if len(h.Rows) == 0 {
		paired = doc.Block{}
	}
	first, _ := splitMedians(in)
	return []doc.Block{h.block(in), h.exploratory(in), paired, specificationSheet(in, first), h.outlook(in), nothing(in),
		{Parts: faint(c.Scope)}}
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
