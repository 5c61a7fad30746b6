package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/markdown"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// writeMarkdown writes tables of cases and targets in GitHub's dialect, for a pull request: first what a reader must
// know, everything else folded. Lines that do not fit into a comment are left out and counted at the end.
func writeMarkdown(w io.Writer, in Input) error {
	in = in.inStorageUnits()
	c := in.Comparison
	m := &comment{names: columns(c)}
	m.line("## %s", markdown.Escape(c.Headline))
	m.line("%s: %s", markdown.Escape(title(c)), markdown.Escape(c.Summary))
	m.list("Conditions changed", sessionChanges(c))
	m.Block(gates(c))
	all := groups(in)
	primary, hidden := partition(all, result.Primary)
	exploratory, others := partition(all, result.Exploratory)
	m.table("Primary", primary)
	medians, further := measured(in)
	m.Block(medians)
	hidden += further
	if len(c.Medians) == 0 {
		m.line("▲ better; ▼ worse; = equivalent within ±%.3g %%; ~ undecided.", c.Delta*100)
	}
	for _, b := range slices.Concat(conclusionSections(in), sections(in), caveats(in)) {
		m.Block(b)
	}
	if len(exploratory) > 0 {
		m.Fold(unit.Plural(len(exploratory), "exploratory case"), func() {
			m.table("", exploratory)
			m.line("No verdict was planned for these; false discoveries are controlled.")
		})
	}
	if order := conclusions(c.Groups, false); len(order) > 0 {
		m.Fold("Order of the targets in "+unit.Plural(len(order), "exploratory row"), func() { m.List(order) })
	}
	m.Fold("Notes, differences, command", func() {
		m.line("%s", markdown.Escape(howToRead(c)))
		m.list("Notes on single comparisons", rowNotes(append(primary, exploratory...), maxNotes))
		if hidden += others; hidden > 0 {
			m.line("%d more metrics of these cases are in the report and its JSON.", hidden)
		}
		m.line("%s", markdown.Escape(c.Scope))
		m.list("Time", timingOf(in).sentences())
		if again := command(in); len(again) > 0 {
			m.Paragraph(doc.Paragraph{Text: strings.Join(again, " "), Tone: doc.Code})
		}
	})
	return write(w, m.String())
}

type comment struct {
	markdown.Comment
	names []string // of the targets, one per column
}

// line writes a paragraph, unless it is empty.
func (m *comment) line(format string, a ...any) { m.Line(fmt.Sprintf(format, a...)) }

// list writes items below a title.
func (m *comment) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line("**%s**", markdown.Escape(title))
	m.List(items)
}

// table writes the groups, a row for each case and a column for each target.
func (m *comment) table(title string, list []group) {
	if len(list) == 0 {
		return
	}
	if title != "" {
		m.line("### %s", title)
	}
	bounded := false
	head := "| | case and metric"
	for _, g := range list {
		bounded = bounded || g.Bound != nil
	}
	for _, name := range m.names {
		head += " | " + markdown.Escape(name)
	}
	columns := 2 + len(m.names)
	if bounded {
		head, columns = head+" | "+referenceName, columns+1
	}
	if !m.Put(head + " |\n|--|--" + strings.Repeat("|--:", columns-2) + "|\n") {
		m.Omitted += len(list)
		return
	}
	for _, g := range list {
		m.row(g, bounded)
	}
	m.End()
}

// rows writes a table of plain texts below a heading; nothing if it has no rows.
func (m *comment) rows(heading, about, head string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if heading != "" {
		m.line("### %s", heading)
	}
	m.line("%s", markdown.Escape(about))
	if !m.Put(head) {
		m.Omitted += len(rows)
		return
	}
	for _, r := range rows {
		m.cells(r)
	}
	m.End()
}

// cells writes a row of plain texts; it escapes them in place.
func (m *comment) cells(cells []string) {
	for i, c := range cells {
		cells[i] = markdown.Escape(c)
	}
	m.Put(tableRow(cells))
}

// tableRow joins escaped cells.
func tableRow(escaped []string) string { return "| " + strings.Join(escaped, " | ") + " |\n" }

// row writes a group as a row of a table.
func (m *comment) row(g group, bounded bool) {
	subject, quantity := subjectAndQuantity(g.Planned, g.Metric)
	cells := []string{markdown.Escape(subject + " · " + quantity),
		markdown.Escape(g.Case+" "+g.Metric) + ", " + betterText(g.Better)}
	for _, name := range m.names {
		cells = append(cells, markdownCell(g, name))
	}
	if bounded {
		bound := ""
		if g.Bound != nil {
			bound = markdown.Escape(g.references() + exceededText(*g.Bound))
		}
		cells = append(cells, bound)
	}
	m.Put(tableRow(cells))
}

// markdownCell returns a value, with its change and verdict below it to keep the table narrow.
func markdownCell(g group, name string) string {
	ways := ""
	if text, apart := g.Directions[name]; apart {
		ways = "<br>" + markdown.Escape(text)
	}
	if name == g.Baseline {
		return markdown.Escape(format(g.BaselineMedian, g.Unit)) + ways
	}
	for _, r := range g.Rows {
		if r.Target == name {
			return markdown.Escape(format(r.TargetMedian, r.Unit)) + ways + "<br>" + markdown.Escape(difference(r)) +
				"<br>" + verdictSign(mark(r)) + " " + verdictWithReason(r)
		}
	}
	return missingCell(g, name)
}

// rowNotes returns at most most notes of the rows of groups, each text once with the rows that it is about.
func rowNotes(list []group, most int) []string {
	where := map[string][]string{}
	for _, g := range list {
		for _, r := range g.Rows {
			for _, n := range notes(r) {
				where[n] = append(where[n], fmt.Sprintf("%s %s, %s", r.Case, r.Metric, r.Target))
			}
		}
	}
	texts, omitted := chooseNotes(list, most)
	for i, n := range texts {
		texts[i] = listPlaces(where[n]) + ": " + n
	}
	if omitted > 0 {
		texts = append(texts, fmt.Sprintf("%d more notes on single comparisons are in the report and its JSON.", omitted))
	}
	return texts
}

// listPlaces joins up to three places; of more it names two and counts the rest.
func listPlaces(list []string) string {
	if len(list) <= 3 {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:2], "; "), len(list)-2)
}
