package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A publication is a published table with those of its rows that have a counterpart in the experiment.
type publication struct {
	published.Table
	Rows []publishedRow `json:"rows"`
}

// A publishedRow is a published row next to our medians of the same metric.
type publishedRow struct {
	published.Row
	Ours  string             `json:"our_case"`
	Here  []published.Figure `json:"here"`
	Pairs []matchedTarget    `json:"pairs,omitempty"`

	unit unit.Unit // that figures are shown in
}

// A matchedTarget is a measured target next to the published target that the user matched with it. The changes are
// against the baseline and its published match; PublishedChange is missing if the baseline has no match.
type matchedTarget struct {
	Here            published.Figure  `json:"here"`
	There           published.Figure  `json:"published"`
	Change          compare.Number    `json:"change"`
	CI              *compare.Interval `json:"ci,omitempty"` // interval of Change; nil for the baseline itself
	PublishedChange compare.Number    `json:"published_change"`
}

// publications returns the tables of the input, each with the rows that the experiment also measured.
func publications(in Input) []publication {
	var list []publication
	medians, cases := mediansOf(in.Comparison), in.casesByName()
	for _, t := range in.Reference {
		p := publication{Table: t, Rows: []publishedRow{}}
		for _, row := range t.Rows {
			for _, m := range counterparts(row, medians) {
				b := publishedRow{Row: row, Ours: m.Case, Here: m.figures, unit: cases[m.Case].ShownUnit(m.Unit)}
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
func counterparts(row published.Row, medians []median) []median {
	var same, similar []median
	for _, m := range medians {
		switch {
		case m.Metric != row.Metric || m.Unit != row.Unit:
		case m.Case == row.Case || m.Case == row.Synonym:
			same = append(same, m)
		case published.SameCase(row.Case, m.Case):
			similar = append(similar, m)
		}
	}
	if len(same) > 0 {
		return same
	}
	return similar
}

// matchTargets sets Pairs to the targets that the user matched, or that have the same name as a published one.
func (b *publishedRow) matchTargets(matches []published.Match, c compare.Comparison) {
	counterpart := func(ours string) (published.Figure, bool) {
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
func (b publishedRow) UnpairedPublished() []published.Figure {
	return slices.DeleteFunc(slices.Clone(b.Figures), func(f published.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p matchedTarget) bool { return p.There.Target == f.Target })
	})
}

// UnpairedHere returns our figures without a matched published target.
func (b publishedRow) UnpairedHere() []published.Figure {
	return slices.DeleteFunc(slices.Clone(b.Here), func(f published.Figure) bool {
		return slices.ContainsFunc(b.Pairs, func(p matchedTarget) bool { return p.Here.Target == f.Target })
	})
}

// ourChange returns our change and its interval; nil for the baseline.
func (p matchedTarget) ourChange() []string {
	if p.CI == nil || !p.Change.Known() {
		return nil
	}
	return []string{change(p.Change), interval(*p.CI)}
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
	figures      []published.Figure
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
		if !slices.ContainsFunc(all[i].figures, func(f published.Figure) bool { return f.Target == target }) {
			all[i].figures = append(all[i].figures, published.Figure{Target: target, Value: float64(value)})
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

// heading names the row in our words, with those of the publication.
func (b publishedRow) heading() string {
	text := fmt.Sprintf("%s, %s; published: ", b.Ours, b.Metric)
	if b.Case != b.Ours {
		text += b.Case + ", "
	}
	return text + b.Statistic
}

// Value returns a figure with its unit.
func (b publishedRow) Value(f published.Figure) string { return unit.Format(f.Value, b.unit) }

// nothing returns a message if publication and experiment have nothing in common, else "".
func (p publication) nothing() string {
	if len(p.Rows) > 0 {
		return ""
	}
	var cases []string
	for _, r := range p.Table.Rows {
		cases = append(cases, r.Case+" "+r.Metric)
	}
	return "Nothing of it was measured here. It has " + strings.Join(distinct(cases), ", ") + "."
}

// publishedFigures returns the publications with their figures next to ours.
func publishedFigures(in Input) doc.Block {
	b := doc.Block{ID: "reference", Title: "Published elsewhere",
		Count: counted(in.Reference, "published table")}
	if len(in.Reference) > 0 {
		b.Parts = append(b.Parts, doc.Paragraph{Tone: doc.Faint,
			Text: "Figures that others published, of other machines and by other methods, next to the medians of these runs. " +
				"They are not compared, and nothing here is a verdict."})
	}
	for _, p := range publications(in) {
		date := p.Date
		if date == "unknown" {
			date = "date unknown"
		}
		b.Parts = append(b.Parts, doc.Block{Title: fmt.Sprintf("%s (%s)", p.Title, p.Name), Parts: []doc.Element{
			doc.Items(slices.Concat([]string{p.URL, "Published: " + p.Publisher + ", " + date, "Machines: " + p.Machines,
				"Method: " + p.Method, "Runs behind a figure: " + p.Runs}, p.Notes, nonEmpty(p.nothing()))),
			p.figures(),
		}})
	}
	return b
}

// figures returns the figures of a publication next to ours: first those of matched targets, then the others.
func (p publication) figures() doc.Table {
	table := doc.Table{Columns: []doc.Column{{Head: "here, median"}, {Head: "published"},
		{Head: "published as", Words: true}}}
	for _, b := range p.Rows {
		add := func(head string, here, there doc.Cell, as string) {
			table.Rows = append(table.Rows, doc.Row{Group: b.heading(), Head: head, Cells: []doc.Cell{here, there, {Text: as}}})
		}
		for _, x := range b.Pairs {
			add(x.Here.Target, doc.Cell{Text: b.Value(x.Here), Parts: x.ourChange()},
				doc.Cell{Text: b.Value(x.There), Parts: nonEmpty(x.TheirChange())}, x.There.Target)
		}
		for _, f := range b.UnpairedHere() {
			add(f.Target, doc.Cell{Text: b.Value(f)}, doc.Cell{}, "")
		}
		for _, f := range b.UnpairedPublished() {
			add(f.Target, doc.Cell{}, doc.Cell{Text: b.Value(f)}, "")
		}
	}
	return table.WithoutEmptyColumns()
}
