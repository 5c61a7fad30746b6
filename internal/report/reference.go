package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/markdown"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// publishedText introduces the published figures.
const publishedText = "Figures that others published, of other machines and by other methods, next to the medians of " +
	"these runs. They are not compared, and nothing here is a verdict."

// A publication is a published table with those of its rows that have a counterpart in the experiment.
type publication struct {
	reference.Table
	Rows []publishedRow `json:"rows"`
}

// A publishedRow is a published row next to our medians of the same metric.
type publishedRow struct {
	reference.Row
	Ours  string             `json:"our_case"`
	Here  []reference.Figure `json:"here"`
	Pairs []matchedTarget    `json:"pairs,omitempty"`
}

// A matchedTarget is a measured target next to the published target that the user matched with it. The changes are
// against the baseline and its published match; PublishedChange is missing if the baseline has no match.
type matchedTarget struct {
	Here            reference.Figure  `json:"here"`
	There           reference.Figure  `json:"published"`
	Change          compare.Number    `json:"change"`
	CI              *compare.Interval `json:"ci,omitempty"` // interval of Change; nil for the baseline itself
	PublishedChange compare.Number    `json:"published_change"`
}

// publications returns the tables of the input, each with the rows that the experiment also measured.
func publications(in Input) []publication {
	var list []publication
	medians := mediansOf(in.Comparison)
	for _, t := range in.Reference {
		p := publication{Table: t, Rows: []publishedRow{}}
		for _, row := range t.Rows {
			for _, m := range counterparts(row, medians) {
				b := publishedRow{Row: row, Ours: m.Case, Here: m.figures}
				b.matchTargets(in.Matches, in.Comparison)
				p.Rows = append(p.Rows, b)
			}
		}
		list = append(list, p)
	}
	return list
}

// counterparts returns our medians for a published row: those of the same case, or of a job with the same name, else
// those of cases that differ only in parameters.
func counterparts(row reference.Row, medians []median) []median {
	var same, similar []median
	for _, m := range medians {
		switch {
		case m.Metric != row.Metric || m.Unit != row.Unit:
		case m.Case == row.Case || m.Case == row.Synonym:
			same = append(same, m)
		case reference.SameCase(row.Case, m.Case):
			similar = append(similar, m)
		}
	}
	if len(same) > 0 {
		return same
	}
	return similar
}

// matchTargets sets Pairs to the targets that the user matched, or that have the same name as a published one.
func (b *publishedRow) matchTargets(matches []reference.Match, c compare.Comparison) {
	counterpart := func(ours string) (reference.Figure, bool) {
		for _, m := range matches {
			if f, has := b.Figure(m.Published); has && m.Ours == ours {
				return f, true
			}
		}
		return b.Figure(ours)
	}
	base, based := counterpart(c.Baseline)
	for _, f := range b.Here {
		there, has := counterpart(f.Target)
		if !has {
			continue
		}
		p := matchedTarget{Here: f, There: there, Change: compare.Missing(), PublishedChange: compare.Missing()}
		if based && f.Target != c.Baseline {
			p.PublishedChange = compare.Number(there.Change(base))
		}
		for _, r := range c.Comparisons {
			if r.Case == b.Ours && r.Metric == b.Metric && r.Baseline == c.Baseline && r.Target == f.Target {
				p.Change, p.CI = r.Change, &r.CI
			}
		}
		b.Pairs = append(b.Pairs, p)
	}
}

// UnpairedPublished returns the published figures without a matching measured target.
func (b publishedRow) UnpairedPublished() []reference.Figure {
	return slices.DeleteFunc(slices.Clone(b.Figures), func(f reference.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p matchedTarget) bool { return p.There.Target == f.Target })
	})
}

// UnpairedHere returns our figures without a matched published target.
func (b publishedRow) UnpairedHere() []reference.Figure {
	return slices.DeleteFunc(slices.Clone(b.Here), func(f reference.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p matchedTarget) bool { return p.Here.Target == f.Target })
	})
}

// OurChange returns our change with its interval; empty for the baseline.
func (p matchedTarget) OurChange() string {
	if p.CI == nil || !p.Change.Known() {
		return ""
	}
	return change(p.Change) + " " + interval(*p.CI)
}

// TheirChange returns the published change, which has no interval; empty if there is none.
func (p matchedTarget) TheirChange() string {
	if !p.PublishedChange.Known() {
		return ""
	}
	return change(p.PublishedChange)
}

// A median holds a metric of a case on each of our targets.
type median struct {
	Case, Metric string
	Unit         unit.Unit
	figures      []reference.Figure
}

// mediansOf collects the medians of a comparison, in its order, also those of an experiment that compares nothing.
func mediansOf(c compare.Comparison) []median {
	var all []median
	at := index[[3]string]{}
	add := func(name, metric string, u unit.Unit, target string, value compare.Number) {
		if !value.Known() {
			return
		}
		i, first := at.add([3]string{name, metric, string(u)})
		if first {
			all = append(all, median{Case: name, Metric: metric, Unit: u})
		}
		if !slices.ContainsFunc(all[i].figures, func(f reference.Figure) bool { return f.Target == target }) {
			all[i].figures = append(all[i].figures, reference.Figure{Target: target, Value: float64(value)})
		}
	}
	for _, r := range c.Comparisons {
		add(r.Case, r.Metric, r.Unit, r.Baseline, r.BaselineMedian)
		add(r.Case, r.Metric, r.Unit, r.Target, r.TargetMedian)
	}
	for _, m := range c.Medians {
		add(m.Case, m.Metric, m.Unit, m.Target, m.Median)
	}
	for _, b := range c.Boxes {
		add(b.Case, b.Metric, b.Unit, b.Target, b.Median)
	}
	return all
}

// Heading names the row in our words, and in those of the publication if they differ.
func (b publishedRow) Heading() string {
	text := fmt.Sprintf("%s, %s", b.Ours, b.Metric)
	if b.Case != b.Ours {
		text += "; published: " + b.Case
	}
	return text
}

// Value returns a figure with its unit.
func (b publishedRow) Value(f reference.Figure) string { return unit.Format(f.Value, b.Unit) }

// Values returns figures as text, with their targets.
func (b publishedRow) Values(figures []reference.Figure) []pair {
	var list []pair
	for _, f := range figures {
		list = append(list, pair{f.Target, b.Value(f)})
	}
	return list
}

// Facts returns what a reader should know about a publication.
func (p publication) Facts() []pair {
	date := p.Date
	if date == "unknown" {
		date = "date unknown"
	}
	return []pair{{"Published", p.Publisher + ", " + date},
		{"Machines", p.Machines}, {"Method", p.Method}, {"Runs behind a figure", p.Runs}}
}

// About returns the introduction to all publications.
func (publication) About() string { return publishedText }

// Nothing returns a message if publication and experiment have nothing in common, else "".
func (p publication) Nothing() string {
	if len(p.Rows) > 0 {
		return ""
	}
	var cases []string
	for _, r := range p.Table.Rows {
		cases = append(cases, r.Case+" "+r.Metric)
	}
	return "Nothing of it was measured here. It has " + strings.Join(distinct(cases), ", ") + "."
}

// published writes the publications below the table.
func (t *textReport) published(in Input) {
	list := publications(in)
	if len(list) == 0 {
		return
	}
	t.Line("PUBLISHED ELSEWHERE")
	t.Line("")
	t.Paragraph("", "", publishedText)
	for _, p := range list {
		t.Line("")
		t.Paragraph("", "", fmt.Sprintf("%s (%s)", p.Title, p.Name))
		t.Paragraph("  ", "  ", p.URL)
		for _, f := range p.Facts() {
			t.Paragraph("  ", "    ", f.Name+": "+f.Value)
		}
		for _, n := range p.Notes {
			t.Paragraph("  - ", "    ", n)
		}
		if p.Nothing() != "" {
			t.Paragraph("  ", "  ", p.Nothing())
		}
		for _, b := range p.Rows {
			t.publishedRow(b)
		}
	}
	t.Line("")
}

// publishedRow writes a row: pairs of matched targets first, then the other figures.
func (t *textReport) publishedRow(b publishedRow) {
	t.Paragraph("  ", "    ", b.Heading())
	if len(b.Pairs) > 0 {
		t.Paragraph("    ", "    ", "here, median, above published, "+b.Statistic)
	}
	for _, p := range b.Pairs {
		t.Paragraph("      ", "        ", figureText(p.Here.Target, b.Value(p.Here), p.OurChange()))
		t.Paragraph("        ", "        ", figureText(p.There.Target, b.Value(p.There), p.TheirChange()))
	}
	t.figures("here, median", b.Values(b.UnpairedHere()))
	t.figures("published, "+b.Statistic, b.Values(b.UnpairedPublished()))
}

// figureText returns a figure and its change, if there is one.
func figureText(target, value, change string) string {
	if change == "" {
		return target + ": " + value
	}
	return target + ": " + value + ", " + change
}

// figures writes a line for each target, its value at the right end.
func (t *textReport) figures(title string, list []pair) {
	if len(list) == 0 {
		return
	}
	const nameColumn = prose.Columns - 6 - valueColumn - 2
	t.Paragraph("    ", "    ", title)
	for _, f := range list {
		name := prose.Plain(f.Name)
		if prose.Width(name) > nameColumn {
			t.Paragraph("      ", "      ", name)
			name = ""
		}
		t.Line("      " + prose.Left(name, nameColumn) + " " + prose.Right(f.Value, valueColumn+1))
	}
}

// published writes tables for each publication.
func (m *comment) published(in Input) {
	list := publications(in)
	if len(list) == 0 {
		return
	}
	m.line("### Published elsewhere")
	m.line("%s", markdown.Escape(publishedText))
	for _, p := range list {
		m.line("[%s](%s) (%s)", markdown.Escape(p.Title), p.URL, markdown.Escape(p.Name))
		var lines []string
		for _, f := range p.Facts() {
			lines = append(lines, f.Name+": "+f.Value)
		}
		m.List(append(lines, p.Notes...))
		if p.Nothing() != "" {
			m.line("%s", markdown.Escape(p.Nothing()))
			continue
		}
		m.pairedFigures(p)
		m.unpairedFigures(p)
	}
}

// pairedFigures writes a table of the matched targets.
func (m *comment) pairedFigures(p publication) {
	var rows [][]string
	for _, b := range p.Rows {
		for _, x := range b.Pairs {
			rows = append(rows, []string{b.Heading(), x.Here.Target, b.Value(x.Here), x.OurChange(),
				x.There.Target, b.Value(x.There), x.TheirChange()})
		}
	}
	m.rows("", "", "| case and metric | target | here, median | change | published as | published | change |\n"+
		"|--|--|--|--|--|--|--|\n", rows)
}

// unpairedFigures writes a table of the figures without a match.
func (m *comment) unpairedFigures(p publication) {
	var rows [][]string
	for _, b := range p.Rows {
		here, there := b.Values(b.UnpairedHere()), b.Values(b.UnpairedPublished())
		if len(here)+len(there) > 0 {
			rows = append(rows, []string{b.Heading(), joined(here), joined(there), b.Statistic})
		}
	}
	m.rows("", "", "| case and metric | here, median | published | which is |\n|--|--|--|--|\n", rows)
}

func joined(list []pair) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Name + " " + p.Value
	}
	return strings.Join(texts, "; ")
}
