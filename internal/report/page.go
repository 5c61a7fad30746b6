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
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A page is what the template shows: every text plain, every figure drawn.
type page struct {
	Style   template.CSS
	Policy  string // of the content's security
	Scripts []template.HTML

	Publications []publication // published elsewhere

	JSON     template.JS
	JSONRest string // said of rows that it does not have

	Title      string
	Ran        []string // what was measured when
	Comparison compare.Comparison
	Experiment result.Experiment

	Sessions   []string // what changed between them
	Hero       hero
	Rankings   []ranking // instead of it: of the primary cases, and of the others
	Sheet      []spec    // of one target
	Detectable string    // by a comparison with it
	Why        string    // the causes that are supported
	Whys       folded[why]
	WhysRest   string
	Legend     string   // of its signs
	Answers    []string // the primary comparisons in words, for screen readers
	Chips      []chip
	Shapes     template.HTML // what the rows of all forest plots refer to
	Forests    []forest
	Noise      noise
	Trends     capped[trend] // where targets differ by a number
	Paths      *paths
	Nothing    string        // said where there is no result
	Measured   capped[level] // where nothing is compared
	Undrawn    string        // how many cases have no figures
	Further    *matrix       // the metrics that cases are not measured for
	Cases      folded[caseRuns]
	Latency    folded[latencySection]
	Cost       *matrix
	Limits     capped[limit]
	Prices     capped[price]
	Leaks      capped[string]
	Subjects   capped[string]
	Objectives capped[objective]
	Official   []string // their own words
	Order      *order
	Timing     timing
	Series     folded[seriesSection]
	Timelines  folded[timelineSection]
	Differing  *matrix
	AllFacts   *matrix
	Findings   findingList
	Command    []string // each part stays on a line
	Design     []pair
	Reading    string
	Lab        bool // some target is of the lab
}

// CostFolded says whether the table of costs is so long that it would hide what follows.
func (p *page) CostFolded() bool { return len(p.Cost.Rows) > 4*manyCases }

type pair struct{ Name, Value string }

// folded are parts of a page: the first or primary ones shown, the others folded.
type folded[T any] struct{ Shown, Folded []T }

// Any reports whether there is something to show.
func (f folded[T]) Any() bool { return len(f.Shown)+len(f.Folded) > 0 }

func (f *folded[T]) add(role result.Role, section T) {
	if role == result.Primary {
		f.Shown = append(f.Shown, section)
	} else {
		f.Folded = append(f.Folded, section)
	}
}

// What a page shows at most, so that every browser opens it. The page says where it has a part of something; all is in
// the files of other formats. docs/formats.md has these numbers.
const (
	mostRows  = 500  // rows of a table or of a forest plot, entries of a list
	mostCases = 60   // cases with figures
	mostDots  = 1000 // runs of a target in the figure of every run
)

// MostRows is for the template.
func (*page) MostRows() int { return mostRows }

// MostCases is for the template.
func (*page) MostCases() int { return mostCases }

// capped is the first rows of a list, and how many there are.
type capped[T any] struct {
	Rows []T
	All  int
}

func first[T any](list []T) capped[T] { return capped[T]{list[:min(len(list), mostRows)], len(list)} }

// Rest is what the page says of rows that it does not have; empty if it has all.
func (c capped[T]) Rest() string { return rest(len(c.Rows), c.All) }

func rest(shown, all int) string {
	if shown >= all {
		return ""
	}
	return fmt.Sprintf("The first %d of %d are in this page.", shown, all)
}

func newPage(in Input) *page {
	c, all := in.Comparison, groups(in)
	runs := in.runs()
	b := newBuilder(in, all, runs)
	p := &page{
		Title: pageTitle(in), Ran: ran(in), Comparison: c, Experiment: in.Experiment, Findings: b.findings,
		Timing: timingOf(in), Reading: reading(c), Design: design(in), Publications: publications(in),
	}
	p.Sessions = sessionChanges(c)
	p.Answers = b.answers()
	axis := b.axis()
	p.Hero, p.Legend = b.hero(axis), legend(c)
	if p.Hero.ranked(in) {
		p.Rankings = []ranking{b.ranking(p.Hero, p.Hero.Rows)}
		if folded := p.Hero.Only(p.Hero.Folded); len(folded.Rows) > 0 {
			p.Rankings = append(p.Rankings, b.ranking(folded, folded.Rows))
		}
		p.Legend = p.Rankings[0].legend(c)
	}
	p.Shapes, p.Forests = axis.Shapes(), b.forests(axis)
	p.Why = causesSentence(in)
	p.Whys, p.WhysRest = newWhys(in)
	p.Chips = chips(in, all)
	p.Noise = b.noise()
	p.Trends = first(trends(c))
	p.Paths = b.paths()
	p.Further = further(c, all)
	if list, others := split(in); len(list) > 0 {
		p.Further, p.Paths = mediansMatrix(others), nil // whose numbers would be the same
		p.Measured = first(levels(in, list))
		p.Sheet, p.Detectable = sheet(in, list, p.Publications), detectable(in, list)
	} else if len(p.Forests) == 0 {
		p.Nothing = nothingWords
	}
	if drawn := len(b.drawn()); drawn < len(b.measured) {
		p.Undrawn = fmt.Sprintf("The first %d of %d cases have figures in this page.", drawn, len(b.measured))
	}
	p.Cases = b.cases()
	p.Latency = b.latencies()
	p.Cost = costs(c, all)
	p.Limits, p.Prices = first(limits(c)), first(prices(c))
	p.Objectives, p.Official = first(objectives(c)), official(c)
	p.Leaks = first(leakSentences(c))
	p.Subjects = first(subjectSentences(c))
	p.Order = b.order()
	p.Series = b.series()
	p.Timelines = b.timelines()
	p.Differing, p.AllFacts = factTables(in)
	p.Command = command(in)
	p.nameFigures()
	p.Lab = slices.ContainsFunc(in.Experiment.Targets, func(t result.Target) bool {
		return strings.HasPrefix(t.Spec, "lab:")
	})
	return p
}

// pageTitle says what is compared with what.
func pageTitle(in Input) string {
	if !in.Experiment.Design.AllPairs {
		return title(in.Comparison)
	}
	return prose.Enumerate(columns(in.Comparison)) + ", each with each"
}

// A builder draws the parts of a page that go over cases and targets.
type builder struct {
	in       Input
	groups   []group
	measured []measured
	columns  []string
	runs     map[string]map[string][]run // by case and target
	rank     map[string]int              // of targets
	boxes    map[string][]compare.Box    // by case
	findings findingList
}

// A measured is a case in the metric that it is measured for, on all targets.
type measured struct {
	Case, Metric string
	Of           result.Case // as it was planned
	Unit         unit.Unit
	Better       metric.Better
	Role         result.Role
	Bound        *compare.UpperBound
	Bounds       map[string]compare.Number // the medians of the reference, by target
	Medians      map[string]compare.Number
}

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
	b.measured = measuredOf(slices.Concat(all, groupsAlone(in)))
	b.findings = newFindings(in.Comparison)
	return b
}

// drawn are the cases that have figures.
func (b *builder) drawn() []measured { return b.measured[:min(len(b.measured), mostCases)] }

// measuredOf joins the groups of a case, which are several where there are several baselines.
func measuredOf(all []group) []measured {
	var list []measured
	at := index[[2]string]{}
	for _, g := range all {
		if !g.Main && g.Role != result.Primary {
			continue
		}
		i, first := at.of([2]string{g.Case, g.Metric})
		if first {
			list = append(list, measured{Case: g.Case, Of: g.Of, Metric: g.Metric, Unit: g.Unit,
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

// answers are the primary comparisons in words.
func (b *builder) answers() []string {
	var list []string
	for _, r := range b.in.Comparison.Primary() {
		list = append(list, r.Sentence)
	}
	return list[:min(len(list), mostRows)]
}

// hero is the answer of the first screen.
func (b *builder) hero(axis chart.Forest) hero {
	return newHero(b.in, b.groups, &axis, func(r compare.Row) []finding {
		return b.findings.marks(r.Case, r.Target, r.Baseline, r.Metric)
	})
}

// Only is the matrix with these rows.
func (h hero) Only(rows []heroRow) hero {
	return hero{File: h.File + "-exploratory", Columns: h.Columns, Rows: rows}
}

// Shown is what a page has of the rows.
func (h hero) Shown() capped[heroRow] { return first(h.Rows) }

// legend says what the signs of the matrix and the forest plot mean.
func legend(c compare.Comparison) string {
	return fmt.Sprintf("Triangles point up for better and down for worse, squares are equivalent, hollow circles "+
		"undecided. Bars are the interval of the change on one logarithmic axis; the band is ±%.3g %%, the smallest "+
		"difference that matters, and an arrow is an end beyond the axis or without a bound.", c.Delta*100)
}

// ran says what was measured: blocks and runs that there were, not those that were planned, and how long that took.
func ran(in Input) []string {
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

// A chip is a count on the first screen that opens to a list.
type chip struct {
	Count int
	Name  string
	Class string
	Items capped[string]
}

// chips are what a reader has to know before believing the numbers, a word each.
func chips(in Input, all []group) []chip {
	c := in.Comparison
	var list []chip
	for _, of := range []struct {
		noun, nouns, class string
		items              []string
	}{
		{"warning", "warnings", "worse", c.Warnings},
		{"note on a comparison", "notes on comparisons", "", rowNotes(all, math.MaxInt)},
		{"not measured", "not measured", "", notMeasured(c)},
		{"target with invalid runs", "targets with invalid runs", "", invalidRuns(c)},
		{"target differs in other facts too", "targets differ in other facts too", "", alsoDiffers(c)},
	} {
		if len(of.items) == 0 {
			continue
		}
		name := of.nouns
		if len(of.items) == 1 {
			name = of.noun
		}
		list = append(list, chip{Count: len(of.items), Name: name, Class: of.class, Items: first(of.items)})
	}
	return list
}

// gateClass is the style of what became of a gate.
func gateClass(o compare.Outcome) string {
	switch o {
	case compare.Passed, compare.Failed:
		return string(o)
	}
	return "undecided"
}

// class is the style of a verdict: better, worse, same or undecided.
func class(r compare.Row) string { return string(mark(r)) }

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

// An order shows when every run happened, and when the sites for them were made and removed.
type order struct {
	Rows []orderRow
	Axis template.HTML
}

type orderRow struct {
	Target, Count string
	Strip         template.HTML
}

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

func reasons(r *result.Run) string {
	if r.Valid() {
		return ""
	}
	return ", invalid: " + result.Joined(r.Invalid)
}

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
		list = append(list, pair{"Looks after", strings.Join(integers(d.Looks), ", ") + " blocks"})
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
		if t.Name != t.Spec {
			list = append(list, pair{"Target " + t.Name, t.Spec})
		}
	}
	return slices.DeleteFunc(list, func(p pair) bool { return p.Value == "" })
}
