package report

import (
	"fmt"
	"html/template"
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

	JSON template.JS // empty if it is too large

	Title      string
	Created    string
	Comparison compare.Comparison
	Experiment result.Experiment

	Sessions      []string // what changed between them
	Answers       answers
	Gates         []gate
	Shapes        template.HTML // what the rows of all forest plots refer to
	Forests       []forest
	Notes         []string
	NotesSpare    int // further ones that there was no room for
	Noise         noise
	Paths         *paths
	Nothing       string  // said where there is no result
	Measured      []level // where nothing is compared
	MeasuredSpare int     // further ones that there was no room for
	Further       *matrix // the metrics that cases are not measured for
	Cases         folded[caseRuns]
	Boxes         folded[boxPlot]
	Latency       folded[latencySection]
	Cost          *matrix
	Prices        []price
	Objectives    []objective
	Official      []string // their own words
	Order         *order
	Timing        timing
	Series        folded[seriesSection]
	Differing     *matrix
	AllFacts      *matrix
	Findings      findingList
	Command       []string // each part stays on a line
	Design        []pair
	Reading       string
	Lab           bool // some target is of the lab

	NotMeasured      []result.NotMeasured
	NotMeasuredSpare int // further ones
}

// HasCases says whether any run is drawn.
func (p *page) HasCases() bool { return p.Cases.any() }

// HasBoxes says whether there are box plots.
func (p *page) HasBoxes() bool { return p.Boxes.any() }

// HasLatency says whether there are distributions.
func (p *page) HasLatency() bool { return p.Latency.any() }

// HasSeries says whether there are series over time.
func (p *page) HasSeries() bool { return p.Series.any() }

// CostFolded says whether the table of costs is so long that it would hide what follows.
func (p *page) CostFolded() bool { return len(p.Cost.Rows) > 4*manyCases }

type pair struct{ Name, Value string }

// folded are sections of cases: the primary ones shown, the others folded, and how many of both there
// was no room for.
type folded[T any] struct {
	Shown, Folded []T
	LeftOut       int
}

func (f folded[T]) any() bool { return len(f.Shown)+len(f.Folded)+f.LeftOut > 0 }

func (f *folded[T]) add(role result.Role, section T) {
	if role == result.Primary {
		f.Shown = append(f.Shown, section)
		return
	}
	f.Folded = append(f.Folded, section)
}

// An allowance is the bytes that a part of the page may still take, so that all of it stays below
// 1 MB. Once something was too large, nothing more fits: what is left out is the end of a list.
type allowance int

func (a *allowance) take(bytes int) bool {
	if bytes > int(*a) {
		*a = 0
		return false
	}
	*a -= allowance(bytes)
	return true
}

// The allowances of the parts of a page, in bytes.
const (
	answersRoom  = 40e3
	forestRoom   = 190e3
	matrixRoom   = 16e3
	costRoom     = 45e3
	pathsRoom    = 60e3
	dotsRoom     = 170e3
	boxesRoom    = 50e3
	latencyRoom  = 135e3
	seriesRoom   = 60e3
	notesRoom    = 12e3
	findingsRoom = 20e3
)

func newPage(in Input) *page {
	c, all := in.Comparison, groups(in)
	runs := in.runs()
	b := newBuilder(in, all, runs)
	p := &page{
		Title: pageTitle(in), Comparison: c, Experiment: in.Experiment, Findings: b.findings,
		Timing: timingOf(in), Reading: reading(c), Design: design(in), Publications: publications(in),
	}
	if !in.Experiment.Created.IsZero() {
		p.Created = in.Experiment.Created.UTC().Format("2 January 2006, 15:04 UTC")
	}
	p.Sessions = sessionChanges(c)
	p.Answers, p.Gates = b.answers(), gates(c)
	p.Shapes, p.Forests = b.forests()
	p.Notes, p.NotesSpare = limitedNotes(all)
	p.Noise = b.noise()
	p.Paths = b.paths()
	p.Further = further(c, all)
	if first, rest := split(in); len(first) > 0 {
		p.Further, p.Paths = mediansMatrix(rest), nil // whose numbers would be the same
		p.Measured, p.MeasuredSpare = limitedLevels(levels(in, first))
	} else if len(p.Forests) == 0 {
		p.Nothing = nothingWords
	}
	p.Cases, p.Boxes = b.cases(), b.boxes()
	p.Latency = b.latencies()
	p.Cost = costs(c, all)
	p.Prices = prices(c)
	p.Objectives, p.Official = objectives(c), official(c)
	p.Order = b.order()
	p.Series = b.series()
	p.Differing, p.AllFacts = factTables(in)
	if len(in.Experiment.Targets) > 0 && in.Experiment.Imported == "" {
		p.Command = command(in.Experiment)
	}
	const most = 60
	p.NotMeasured = inWords(c.NotMeasured)
	if n := len(c.NotMeasured); n > most {
		p.NotMeasured, p.NotMeasuredSpare = p.NotMeasured[:most], n-most
	}
	for _, t := range in.Experiment.Targets {
		p.Lab = p.Lab || strings.HasPrefix(t.Spec, "lab:")
	}
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
	findings findingList
}

// A measured is a case in the metric that it is measured for, on all targets.
type measured struct {
	Case, Metric string
	Unit         unit.Unit
	Better       metric.Better
	Role         result.Role
	Bound        *compare.UpperBound
	Medians      map[string]compare.Number
}

func newBuilder(in Input, all []group, runs []run) *builder {
	b := &builder{in: in, groups: all, columns: runTargets(in, runs),
		runs: map[string]map[string][]run{}, rank: map[string]int{}}
	for i, name := range b.columns {
		b.rank[name] = i
	}
	for _, r := range runs {
		if b.runs[r.Case] == nil {
			b.runs[r.Case] = map[string][]run{}
		}
		b.runs[r.Case][r.label] = append(b.runs[r.Case][r.label], r)
	}
	b.measured = measuredOf(slices.Concat(all, groupsAlone(in)))
	b.findings = newFindings(in.Comparison)
	return b
}

// measuredOf joins the groups of a case, which are several where there are several baselines.
func measuredOf(all []group) []measured {
	var list []measured
	at := map[[2]string]int{}
	for _, g := range all {
		if !g.Main && g.Role != result.Primary {
			continue
		}
		key := [2]string{g.Case, g.Metric}
		i, seen := at[key]
		if !seen {
			i = len(list)
			at[key] = i
			list = append(list, measured{Case: g.Case, Metric: g.Metric, Unit: g.Unit,
				Better: g.Better, Role: g.Role, Medians: map[string]compare.Number{}})
		}
		m := &list[i]
		if m.Unit == "" {
			m.Unit, m.Better = g.Unit, g.Better
		}
		if m.Bound == nil {
			m.Bound = g.Bound
		}
		for _, r := range g.Rows {
			m.Medians[r.Target] = r.TargetMedian
		}
		m.Medians[g.Baseline] = g.BaselineMedian
	}
	return list
}

// answers are the primary comparisons in words.
type answers struct {
	First, More []answer
	LeftOut     int
}

// An answer is a primary comparison on the first screen.
type answer struct {
	Class, Word, Sentence string
	Marks                 []findingMark
}

// mostAnswers is how many sentences are shown before the forest plot; the others are folded.
const mostAnswers = 12

func (b *builder) answers() answers {
	var list answers
	room := allowance(answersRoom)
	for _, r := range b.in.Comparison.Primary() {
		a := answer{class(r), word(r), r.Sentence, b.findings.marks(r.Case, r.Target, r.Baseline, r.Metric)}
		switch {
		case !room.take(len(a.Sentence) + 120 + len(a.Marks)*100):
			list.LeftOut++
		case len(list.First) < mostAnswers:
			list.First = append(list.First, a)
		default:
			list.More = append(list.More, a)
		}
	}
	return list
}

// A gate is a condition and what became of it.
type gate struct{ Class, Word, Gate, Sentence string }

func gates(c compare.Comparison) []gate {
	var list []gate
	for _, g := range c.Gates {
		class := map[compare.Outcome]string{compare.Passed: "passed", compare.Failed: "failed"}[g.Outcome]
		if class == "" {
			class = "undecided"
		}
		list = append(list, gate{class, string(g.Outcome), g.Gate, g.Sentence})
	}
	return list
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

// limitedNotes are the warnings of rows, each once, as far as there is room for them.
func limitedNotes(all []group) (kept []string, spare int) {
	room := allowance(notesRoom)
	for _, n := range rowNotes(all, math.MaxInt) {
		if room.take(len(n) + 12) {
			kept = append(kept, n)
		} else {
			spare++
		}
	}
	return kept, spare
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
		runs[r.label]++
		spans[r.label] = append(spans[r.label], chart.Span{
			Start: r.Start.Sub(t.First).Seconds(), Setup: r.Setup, Window: r.Window, Cleanup: r.Cleanup, Valid: r.Valid(),
		})
		if !r.Valid() {
			invalid[r.label]++
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
		list = append(list, pair{"Looks after", strings.Trim(strings.ReplaceAll(fmt.Sprint(d.Looks), " ", ", "),
			"[]") + " blocks"})
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
