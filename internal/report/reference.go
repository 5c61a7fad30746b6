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
const elsewhere = "Figures that others published, of other machines and by other methods, beside the medians of " +
	"these runs. They are not compared, and nothing here is a verdict."

// A publication is a published table with those of its rows that have a counterpart here.
type publication struct {
	reference.Table
	Rows []beside `json:"rows"`
}

// A beside is a published row beside our medians of the same metric.
type beside struct {
	reference.Row
	Ours string             `json:"our_case"`
	Here []reference.Figure `json:"here"`
}

// publications are the tables of the input, each with what it has in common with the experiment.
func publications(in Input) []publication {
	var list []publication
	medians := mediansOf(in.Comparison)
	for _, t := range in.Reference {
		p := publication{Table: t, Rows: []beside{}}
		for _, row := range t.Rows {
			for _, m := range medians {
				if m.Metric == row.Metric && m.Unit == row.Unit && reference.Beside(row.Case, m.Case) {
					p.Rows = append(p.Rows, beside{Row: row, Ours: m.Case, Here: m.figures})
				}
			}
		}
		list = append(list, p)
	}
	return list
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
		text += ", beside " + b.Case
	}
	return text
}

// Values are figures as text with their targets.
func (b beside) Values(figures []reference.Figure) []pair {
	var list []pair
	for _, f := range figures {
		list = append(list, pair{f.Target, unit.Format(f.Value, b.Unit)})
	}
	return list
}

// Facts are what a reader should know of a publication.
func (p publication) Facts() []pair {
	return []pair{{"Published", p.Publisher + ", " + p.Date},
		{"Machines", p.Machines}, {"Method", p.Method}, {"Runs behind a figure", p.Runs}}
}

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
	t.figures("here, median", b.Values(b.Here))
	t.figures("published, "+b.Statistic, b.Values(b.Figures))
}

// figures writes a line for each target, its value at the right end.
func (t *textReport) figures(title string, list []pair) {
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
		var rows [][]string
		for _, b := range p.Rows {
			rows = append(rows, []string{b.Heading(), joined(b.Values(b.Here)), joined(b.Values(b.Figures)), b.Statistic})
		}
		m.rows("", "", "| case and metric | here, median | published | which is |\n|--|--|--|--|\n", rows)
	}
}

func joined(list []pair) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Name + " " + p.Value
	}
	return strings.Join(texts, "; ")
}
