package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// elsewhere is said of every published figure.
const elsewhere = "Figures that others published, of other machines and by other methods, next to the medians of " +
	"these runs. They are not compared, and nothing here is a verdict."

// A publication is a published table with those of its rows that have a counterpart here.
type publication struct {
	reference.Table
	Rows []beside `json:"rows"`
}

// A beside is a published row next to our medians of the same metric.
type beside struct {
	reference.Row
	Ours  string             `json:"our_case"`
	Here  []reference.Figure `json:"here"`
	Pairs []paired           `json:"pairs,omitempty"`
}

// A paired is a target of ours next to the published one that the user matched with it. The changes are against the
// baseline and against what is matched with the baseline; the latter is missing where nothing is.
type paired struct {
	Here            reference.Figure  `json:"here"`
	There           reference.Figure  `json:"published"`
	Change          compare.Number    `json:"change"`
	CI              *compare.Interval `json:"ci,omitempty"` // of our change; none for the baseline itself
	PublishedChange compare.Number    `json:"published_change"`
}

// publications are the tables of the input, each with what it has in common with the experiment.
func publications(in Input) []publication {
	var list []publication
	medians := mediansOf(in.Comparison)
	for _, t := range in.Reference {
		p := publication{Table: t, Rows: []beside{}}
		for _, row := range t.Rows {
			for _, m := range counterparts(row, medians) {
				b := beside{Row: row, Ours: m.Case, Here: m.figures}
				b.pair(in.Matches, in.Comparison)
				p.Rows = append(p.Rows, b)
			}
		}
		list = append(list, p)
	}
	return list
}

// counterparts are those of our medians that a published row can be seen next to: of the very same case, or of a job of
// the same name, if we have them, else of cases that differ in parameters alone.
func counterparts(row reference.Row, medians []median) []median {
	var same, similar []median
	for _, m := range medians {
		switch {
		case m.Metric != row.Metric || m.Unit != row.Unit:
		case m.Case == row.Case || m.Case == row.Synonym:
			same = append(same, m)
		case reference.Beside(row.Case, m.Case):
			similar = append(similar, m)
		}
	}
	if len(same) > 0 {
		return same
	}
	return similar
}

// pair finds the targets of the row that the user matched, or that have the name of one of ours.
func (b *beside) pair(matches []reference.Match, c compare.Comparison) {
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
		p := paired{Here: f, There: there, Change: compare.Missing(), PublishedChange: compare.Missing()}
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

// Unpaired are the published figures that no target of ours was matched with.
func (b beside) Unpaired() []reference.Figure {
	return slices.DeleteFunc(slices.Clone(b.Figures), func(f reference.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p paired) bool { return p.There.Target == f.Target })
	})
}

// Alone are our figures that no published target was matched with.
func (b beside) Alone() []reference.Figure {
	return slices.DeleteFunc(slices.Clone(b.Here), func(f reference.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p paired) bool { return p.Here.Target == f.Target })
	})
}

// OurChange is ours with its interval, nothing for the baseline.
func (p paired) OurChange() string {
	if p.CI == nil || !p.Change.Known() {
		return ""
	}
	return change(p.Change) + " " + interval(*p.CI)
}

// TheirChange is the published one, which has no interval; nothing where there is none.
func (p paired) TheirChange() string {
	if !p.PublishedChange.Known() {
		return ""
	}
	return change(p.PublishedChange)
}

// A median is what a metric of a case is on each of our targets.
type median struct {
	Case, Metric string
	Unit         unit.Unit
	figures      []reference.Figure
}

// mediansOf collects the medians that the comparison has, in its order; of an experiment that compares nothing
// they stand by themselves.
func mediansOf(c compare.Comparison) []median {
	var all []median
	at := index[[3]string]{}
	add := func(name, metric string, u unit.Unit, target string, value compare.Number) {
		if !value.Known() {
			return
		}
		i, first := at.of([3]string{name, metric, string(u)})
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

// Heading says what the row is, in our words and in those of the publication.
func (b beside) Heading() string {
	text := fmt.Sprintf("%s, %s", b.Ours, b.Metric)
	if b.Case != b.Ours {
		text += "; published: " + b.Case
	}
	return text
}

// Value is a figure with its unit.
func (b beside) Value(f reference.Figure) string { return unit.Format(f.Value, b.Unit) }

// Values are figures as text with their targets.
func (b beside) Values(figures []reference.Figure) []pair {
	var list []pair
	for _, f := range figures {
		list = append(list, pair{f.Target, b.Value(f)})
	}
	return list
}

// Facts are what a reader should know of a publication.
func (p publication) Facts() []pair {
	date := p.Date
	if date == "unknown" {
		date = "date unknown"
	}
	return []pair{{"Published", p.Publisher + ", " + date},
		{"Machines", p.Machines}, {"Method", p.Method}, {"Runs behind a figure", p.Runs}}
}

// Elsewhere is said above all publications.
func (publication) Elsewhere() string { return elsewhere }

// Nothing is said where a publication and the experiment have nothing in common.
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
	t.Paragraph("", "", elsewhere)
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
			t.beside(b)
		}
	}
	t.Line("")
}

func (t *textReport) beside(b beside) {
	t.Paragraph("  ", "    ", b.Heading())
	if len(b.Pairs) > 0 {
		t.Paragraph("    ", "    ", "here, median, above published, "+b.Statistic)
	}
	for _, p := range b.Pairs {
		t.Paragraph("      ", "        ", besideText(p.Here.Target, b.Value(p.Here), p.OurChange()))
		t.Paragraph("        ", "        ", besideText(p.There.Target, b.Value(p.There), p.TheirChange()))
	}
	t.figures("here, median", b.Values(b.Alone()))
	t.figures("published, "+b.Statistic, b.Values(b.Unpaired()))
}

// besideText is a figure and its change.
func besideText(target, value, change string) string {
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

// published writes a table for each publication.
func (m *markdown) published(in Input) {
	list := publications(in)
	if len(list) == 0 {
		return
	}
	m.line("### Published elsewhere")
	m.line("%s", escapeMarkdown(elsewhere))
	for _, p := range list {
		m.line("[%s](%s) (%s)", escapeMarkdown(p.Title), p.URL, escapeMarkdown(p.Name))
		var lines []string
		for _, f := range p.Facts() {
			lines = append(lines, f.Name+": "+f.Value)
		}
		m.items(append(lines, p.Notes...))
		if p.Nothing() != "" {
			m.line("%s", escapeMarkdown(p.Nothing()))
			continue
		}
		m.pairs(p)
		m.besides(p)
	}
}

// pairs is a table of the targets that were matched.
func (m *markdown) pairs(p publication) {
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

// besides is a table of what was not matched.
func (m *markdown) besides(p publication) {
	var rows [][]string
	for _, b := range p.Rows {
		here, there := b.Values(b.Alone()), b.Values(b.Unpaired())
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
