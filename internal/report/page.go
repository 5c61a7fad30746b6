package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A page is what the template shows: every text plain, every figure drawn.
type page struct {
	Style template.CSS
	JSON  template.JS

	Title         string
	Created       string
	Comparison    compare.Comparison
	Experiment    result.Experiment
	Answers       []answer
	Forests       []forest
	Further       *matrix    // the metrics that cases are not measured for
	Cases         []caseRuns // of primary cases
	MoreCases     []caseRuns // of the others
	Latencies     []latencySection
	MoreLatencies []latencySection
	Cost          *matrix
	Spread        *matrix
	Order         *order
	Invalid       []compare.TargetRuns
	Timing        string
	Findings      []string
	Notes         []string
	Differing     *matrix
	AllFacts      *matrix
	Command       []string // each part stays on a line
	Design        []pair
	Reading       string
	Lab           bool // some target is of the lab
}

type pair struct{ Name, Value string }

// An answer is a primary comparison on the first screen.
type answer struct {
	Class, Word, Sentence string
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

func newPage(in Input) page {
	c, all := in.Comparison, groups(in)
	p := page{
		Title: title(c), Comparison: c, Experiment: in.Experiment,
		Timing: timingOf(in).String(), Findings: findings(c), Notes: rowNotes(all, math.MaxInt), Reading: reading(c),
		Order: newOrder(in, in.runs()), Design: design(in.Experiment),
	}
	if !in.Experiment.Created.IsZero() {
		p.Created = in.Experiment.Created.UTC().Format("2 January 2006, 15:04 UTC")
	}
	for _, r := range c.Primary() {
		p.Answers = append(p.Answers, answer{class(r), word(r), r.Sentence})
	}
	runs := in.runs()
	p.Forests = forests(c, all)
	p.Further = further(c, all)
	primary := map[string]bool{}
	for _, g := range all {
		primary[g.Case] = primary[g.Case] || g.Role == result.Primary
	}
	for _, r := range caseRunsOf(runs, in.Experiment.Design.Blocks, all) {
		if primary[r.Case] {
			p.Cases = append(p.Cases, r)
		} else {
			p.MoreCases = append(p.MoreCases, r)
		}
	}
	for _, l := range latencies(in, runs) {
		if primary[l.Case] {
			p.Latencies = append(p.Latencies, l)
		} else {
			p.MoreLatencies = append(p.MoreLatencies, l)
		}
	}
	p.Cost = costs(c, all)
	p.Spread = spread(c, all)
	for _, t := range c.Targets {
		if t.Invalid > 0 {
			p.Invalid = append(p.Invalid, t)
		}
	}
	p.Differing, p.AllFacts = factTables(in)
	if len(in.Experiment.Targets) > 0 {
		p.Command = command(in.Experiment)
	}
	for _, t := range in.Experiment.Targets {
		p.Lab = p.Lab || strings.HasPrefix(t.Spec, "lab:")
	}
	return p
}

// A forest is a forest plot: rows of cases on one axis.
type forest struct {
	Title, About string
	Folded       bool // so long that it would hide what follows
	Axis         template.HTML
	Groups       []forestGroup
}

type forestGroup struct {
	Case, Metric, Better string
	Rows                 []forestRow
	Missing              []result.NotMeasured
}

type forestRow struct {
	Target, Change, Interval, Word, Class string
	Blocks                                int
	Plot                                  template.HTML
}

// forests draws primary and exploratory comparisons on one common axis.
func forests(c compare.Comparison, all []group) []forest {
	primary, _ := partition(all, result.Primary)
	exploratory, _ := partition(all, result.Exploratory)
	var rows []chart.Interval
	for _, g := range append(slices.Clone(primary), exploratory...) {
		for _, r := range g.Rows {
			rows = append(rows, forestInterval(r))
		}
	}
	axis := chart.NewForest(rows, c.Delta)
	var list []forest
	add := func(title, about string, groups []group) {
		if len(groups) > 0 {
			list = append(list, newForest(forest{Title: title, About: about, Axis: axis.Axis()}, axis, groups))
		}
	}
	add("Primary comparisons", "A verdict was planned for these. Their intervals hold all together.", primary)
	const many = 12
	add("Exploratory comparisons", "No verdict was planned for these. Each interval is at its own level, so among many some exclude zero by chance; the verdicts are under false discovery rate control.", exploratory)
	if len(exploratory) > many {
		list[len(list)-1].Folded = true
	}
	return list
}

func newForest(f forest, axis chart.Forest, groups []group) forest {
	for _, g := range groups {
		fg := forestGroup{Case: g.Case, Metric: g.Metric, Better: betterText(g.Better), Missing: g.Missing}
		for _, r := range g.Rows {
			fg.Rows = append(fg.Rows, forestRow{
				Target: r.Target, Change: change(r.Change), Interval: interval(r.CI), Word: word(r), Class: class(r),
				Blocks: r.Blocks, Plot: axis.Row(forestInterval(r)),
			})
		}
		f.Groups = append(f.Groups, fg)
	}
	return f
}

func forestInterval(r compare.Row) chart.Interval {
	return chart.Interval{
		Change: float64(r.Change), Lo: r.CI.Lo, Hi: r.CI.Hi, Mark: mark(r), Primary: r.Role == result.Primary,
		Title: fmt.Sprintf("%s, %s, %s: %s, interval %s, %s", r.Case, r.Metric, r.Target, change(r.Change), interval(r.CI), word(r)),
	}
}

// A caseRuns shows every run of a case, in its main metric.
type caseRuns struct {
	Case, Metric, Better, Bound string
	Panels                      []runPanel
}

type runPanel struct {
	Target, Median string
	Axis, Plot     template.HTML
}

func caseRunsOf(runs []run, blocks int, all []group) []caseRuns {
	var list []caseRuns
	for _, g := range all {
		if g.Main || g.Role == result.Primary {
			list = append(list, newCaseRuns(runs, blocks, g))
		}
	}
	return list
}

func newCaseRuns(runs []run, blocks int, g group) caseRuns {
	c := caseRuns{Case: g.Case, Metric: g.Metric, Better: betterText(g.Better)}
	var bound *float64
	if g.Bound != nil && g.Bound.Median.Known() {
		v := float64(g.Bound.Median)
		bound = &v
		c.Bound = fmt.Sprintf("%s, the median of %s", unit.Format(v, g.Unit), g.Bound.Case)
	}
	panels := []chart.Dots{panel(runs, g, g.Baseline, g.BaselineMedian)}
	for _, r := range g.Rows {
		panels = append(panels, panel(runs, g, r.Target, r.TargetMedian))
	}
	var values []float64
	for _, p := range panels {
		for _, d := range p.Runs {
			values = append(values, d.Value)
		}
	}
	if bound != nil {
		values = append(values, *bound)
	}
	scale := chart.Linear(values...)
	for _, p := range panels {
		p.Scale, p.Bound, p.Blocks = scale, bound, max(p.Blocks, blocks)
		c.Panels = append(c.Panels, runPanel{p.Label, unit.Format(p.Median, g.Unit), p.YAxis(), p.Panel()})
	}
	return c
}

func panel(runs []run, g group, target string, median compare.Number) chart.Dots {
	d := chart.Dots{Label: target, Median: float64(median), Labels: axisLabels(g.Unit)}
	for _, r := range runs {
		v, ok := r.Value(g.Metric)
		if r.Case != g.Case || r.label != target || !ok {
			continue
		}
		text := fmt.Sprintf("block %d: %s%s", r.Block, unit.Format(v.Number, v.Unit), reasons(r.Run))
		if r.state == chart.Superseded {
			text += ", superseded: its block was run again"
		}
		d.Runs = append(d.Runs, chart.Dot{Block: r.Block, Value: v.Number, State: r.state, Title: text})
		d.Blocks = max(d.Blocks, r.Block)
	}
	return d
}

// axisLabels returns a function that labels the ticks of an axis with one common prefix and as many
// decimals as it takes to tell them apart.
func axisLabels(u unit.Unit) func([]float64) []string {
	return func(ticks []float64) []string {
		labels := make([]string, len(ticks))
		if len(ticks) == 0 {
			return labels
		}
		_, name, _ := strings.Cut(unit.Format(slices.Max(ticks), u), " ")
		scale, _, err := unit.Parse("1 " + name)
		if err != nil || scale == 0 {
			scale, name = 1, string(u)
		}
		for decimals := 0; decimals <= 4; decimals++ {
			for i, t := range ticks {
				labels[i] = strings.TrimSpace(strconv.FormatFloat(t/scale, 'f', decimals, 64) + " " + name)
			}
			if apart(labels, ticks, scale) {
				break
			}
		}
		return labels
	}
}

// apart says whether the labels, read back, are the ticks to a fiftieth of what is between them.
func apart(labels []string, ticks []float64, scale float64) bool {
	for i, l := range labels {
		near := math.Abs(ticks[i])
		if i > 0 && (near == 0 || ticks[i]-ticks[i-1] < near) {
			near = ticks[i] - ticks[i-1]
		}
		number, _, _ := strings.Cut(l, " ")
		if v, err := strconv.ParseFloat(number, 64); err != nil || math.Abs(v*scale-ticks[i]) > near/50 {
			return false
		}
	}
	return true
}

// latencyLabels labels the ticks of a logarithmic axis, each with its own prefix.
func latencyLabels(ticks []float64) []string {
	labels := make([]string, len(ticks))
	for i, t := range ticks {
		number, name, _ := strings.Cut(unit.Format(t, unit.Second), " ")
		if strings.Contains(number, ".") {
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		labels[i] = number + " " + name
	}
	return labels
}

// A latencySection is the distributions of one case.
type latencySection struct {
	Case, Name string
	Axis, Plot template.HTML
	Targets    []latencyRow
	Broken     []string
}

type latencyRow struct {
	Target, Count string
	Key           template.HTML
	Quantiles     []string
}

// quantiles are the columns of the table of percentiles; the template has their names.
func quantiles() []float64 { return []float64{0.5, 0.9, 0.99, 0.999, 0.9999} }

func latencies(in Input, runs []run) []latencySection {
	var sections []latencySection
	at := map[[2]string]int{}
	curves := []chart.Curves{}
	for _, d := range distributions(runs) {
		key := [2]string{d.Case, d.Name}
		i, ok := at[key]
		if !ok {
			i = len(sections)
			at[key] = i
			sections = append(sections, latencySection{Case: d.Case, Name: d.Name})
			curves = append(curves, chart.Curves{Label: "latency by percentile of " + d.Case, Labels: latencyLabels})
		}
		sections[i].Broken = append(sections[i].Broken, d.Broken...)
		if d.count() == 0 {
			continue
		}
		sections[i].Targets = append(sections[i].Targets, newLatencyRow(d))
		curves[i].Curves = append(curves[i].Curves, d.curve())
	}
	order := targetRank(in, runs)
	for i := range sections {
		s := &sections[i]
		slices.SortStableFunc(s.Targets, func(a, b latencyRow) int { return cmp.Compare(order[a.Target], order[b.Target]) })
		slices.SortStableFunc(curves[i].Curves, func(a, b chart.Curve) int { return cmp.Compare(order[a.Label], order[b.Label]) })
		for k := range s.Targets {
			s.Targets[k].Key = chart.Key(k)
		}
		s.Axis, s.Plot = curves[i].YAxis(), curves[i].Plot()
	}
	return sections
}

func newLatencyRow(d *distribution) latencyRow {
	row := latencyRow{Target: d.Target, Count: strconv.FormatInt(d.count(), 10)}
	for _, q := range quantiles() {
		text := "too few"
		if d.enough(q) {
			text = unit.Format(d.at(q), unit.Second)
		}
		row.Quantiles = append(row.Quantiles, text)
	}
	row.Quantiles = append(row.Quantiles, unit.Format(float64(d.histogram.Max())/1e9, unit.Second))
	return row
}

func targetRank(in Input, runs []run) map[string]int {
	rank := map[string]int{}
	for i, name := range runTargets(in, runs) {
		rank[name] = i
	}
	return rank
}

// An order shows when every run happened.
type order struct {
	Rows []orderRow
	Axis template.HTML
}

type orderRow struct {
	Target string
	Strip  template.HTML
}

func newOrder(in Input, runs []run) *order {
	t := timingOf(in)
	if t.Total <= 0 {
		return nil
	}
	o := &order{Axis: chart.StripAxis(t.Total)}
	for _, target := range runTargets(in, runs) {
		var spans []chart.Span
		for _, r := range runs {
			if r.label != target {
				continue
			}
			spans = append(spans, chart.Span{
				Start: r.Start.Sub(t.First).Seconds(), Setup: r.Setup, Window: r.Window, Cleanup: r.Cleanup, Valid: r.Valid(),
				Title: fmt.Sprintf("%s, block %d, slot %d%s", r.Case, r.Block, r.Slot, reasons(r.Run)),
			})
		}
		o.Rows = append(o.Rows, orderRow{target, chart.Strip("runs of "+target, spans, t.Total)})
	}
	return o
}

func reasons(r result.Run) string {
	if r.Valid() {
		return ""
	}
	return ", invalid: " + strings.Join(r.Invalid, "; ")
}

func design(e result.Experiment) []pair {
	if e.ID == "" {
		return nil
	}
	d := e.Design
	list := []pair{
		{"Experiment", e.ID}, {"Design", d.Kind}, {"Blocks", strconv.Itoa(d.Blocks)},
		{"Measured for", unit.Format(d.Duration, unit.Second) + " a run"}, {"Warm-up", unit.Format(d.Warmup, unit.Second)},
		{"Error probability (alpha)", fmt.Sprint(d.Alpha)}, {"Smallest difference that matters (delta)", fmt.Sprintf("%.3g %%", d.Delta*100)},
		{"Seed", fmt.Sprint(e.Seed)}, {"Suite", e.Suite}, {"Tool", e.Tool}, {"Knotmeter", e.Version},
	}
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
