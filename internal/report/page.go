package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
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

	Top      []doc.Block   // the answer
	Chips    []doc.Block   // counts of what a reader may have to know; a click opens each
	Shapes   template.HTML // shapes that the rows of all forest plots refer to
	Sections []doc.Block
	Zoomable bool // whether a script draws figures
}

type pair struct{ Name, Value string }

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

// newPage returns the page of an input, without styles, scripts and JSON.
func newPage(in Input) *page {
	c, all := in.Comparison, groups(in)
	runs := in.runs()
	b := newBuilder(in, all, runs)
	axis := b.axis()
	p := &page{Title: pageTitle(in), RunInfo: runInfo(in), Comparison: c, Experiment: in.Experiment, Shapes: axis.Shapes()}
	h := newAnswer(in, all, &axis)
	outcomes := gates(c)
	outcomes.Title = "" // the headline is above
	p.Top = append([]doc.Block{notices(in), outcomes}, h.page(in)...)
	for _, caveat := range caveats(in, all, maxRows) {
		if caveat.Count != "" {
			p.Chips = append(p.Chips, caveat)
		} else {
			p.Top = slices.Insert(p.Top, 1, caveat)
		}
	}
	p.Top = present(p.Top...)
	medians, paths := doc.Block{}, b.paths()
	if len(c.Medians) > 0 {
		medians, _ = measured(in)
		paths = doc.Block{} // it would repeat the numbers
	}
	p.Sections = present(slices.Concat([]doc.Block{medians, why(in), b.forests(axis), scale(c, b.names), paths,
		b.latency(), costs(c, all)}, sections(in), []doc.Block{b.everyRun(), b.overTime(), b.noise(), differs(in),
		auditSection(c), method(in)})...)
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
	boxes    map[string][]compare.Box    // by case
	findings findingList
	names    figureNames
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
		runs: map[string]map[string][]run{}, boxes: map[string][]compare.Box{}, names: figureNames{}}
	for _, r := range runs {
		if b.runs[r.Case] == nil {
			b.runs[r.Case] = map[string][]run{}
		}
		b.runs[r.Case][r.Target] = append(b.runs[r.Case][r.Target], r)
	}
	cases := in.casesByName()
	for _, x := range in.Comparison.Boxes {
		x.Unit = cases[x.Case].ShownUnit(x.Unit)
		b.boxes[x.Case] = append(b.boxes[x.Case], x)
	}
	b.results = caseResultsOf(slices.Concat(all, medianGroups(in)))
	b.findings = newFindings(in.Comparison)
	return b
}

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

// mark returns the mark of a verdict.
func mark(r compare.Row) doc.Mark {
	switch {
	case r.Verdict == compare.Equivalent:
		return doc.Same
	case r.Verdict == compare.Different && r.Direction == compare.BetterThan:
		return doc.Better
	case r.Verdict == compare.Different && r.Direction == compare.WorseThan:
		return doc.Worse
	}
	return doc.Undecided
}

// reasons returns the reasons of an invalid run, after a comma.
func reasons(r *result.Run) string {
	if r.Valid() {
		return ""
	}
	return ", invalid: " + result.Joined(r.Invalid)
}
