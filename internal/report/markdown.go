package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// maxMarkdownBytes is the largest size of a report in Markdown: GitHub accepts 65 536 characters in a comment.
const maxMarkdownBytes = 65_000

// writeMarkdown writes tables of cases and targets in GitHub's dialect, for a pull request: first what a reader must
// know, everything else folded. Lines that do not fit into a comment are left out and counted at the end.
func writeMarkdown(w io.Writer, in Input) error {
	in = in.inStorageUnits()
	c := in.Comparison
	m := &markdown{names: columns(c)}
	m.line("## %s", escapeMarkdown(c.Headline))
	m.line("%s: %s", escapeMarkdown(title(c)), escapeMarkdown(c.Summary))
	m.list("Conditions changed", sessionChanges(c))
	m.gates(c.Gates)
	all := groups(in)
	primary, hidden := partition(all, result.Primary)
	exploratory, others := partition(all, result.Exploratory)
	m.table("Primary", primary)
	m.medians(in)
	if len(c.Medians) == 0 {
		m.line("▲ better; ▼ worse; = equivalent within ±%.3g %%; ~ undecided.", c.Delta*100)
	}
	m.list("Order", declaredConclusions(c.Groups))
	m.list("By group of cases", subjectSentences(c))
	m.list("Scale", slopeSentences(c))
	m.list("Why", causeLines(in))
	m.limits(c)
	m.prices(c)
	m.list("What passed though it was forbidden", leakSentences(c))
	m.objectives(c)
	m.list("Warnings", warningSentences(c.Warnings))
	m.list("Implausible", findings(c))
	m.list("Not measured", notMeasured(c))
	if len(exploratory) > 0 {
		m.fold(unit.Plural(len(exploratory), "exploratory case"), func() {
			m.table("", exploratory)
			m.line("No verdict was planned for these; false discoveries are controlled.")
		})
	}
	if order := conclusions(c.Groups, false); len(order) > 0 {
		m.fold("Order of the targets in "+unit.Plural(len(order), "exploratory row"), func() { m.items(order) })
	}
	m.fold("Notes, differences, command", func() {
		m.line("%s", escapeMarkdown(howToRead(c)))
		m.list("Notes on single comparisons", rowNotes(append(primary, exploratory...), maxNotes))
		m.list("Also differs from "+differsFrom(c)+" (its value in brackets)", alsoDiffers(c))
		m.list("Invalid runs, repeated with their block", invalidRuns(c))
		if hidden += others; hidden > 0 {
			m.line("%d more metrics of these cases are in the report and its JSON.", hidden)
		}
		m.line("%s", escapeMarkdown(c.Scope))
		m.list("Time", timingOf(in).sentences())
		if again := command(in); len(again) > 0 {
			m.line("```sh\n%s\n```", escapeFence(strings.Join(again, " ")))
		}
	})
	m.published(in)
	if m.omitted > 0 {
		m.b.WriteString(fmt.Sprintf("%s had no room in a comment; the report and its JSON have everything.\n",
			unit.Plural(m.omitted, "line")))
	}
	return write(w, strings.TrimRight(m.b.String(), "\n")+"\n")
}

type markdown struct {
	b       strings.Builder
	names   []string // of the targets, one per column
	omitted int      // number of lines that did not fit
}

// put writes a line or paragraph if it fits, and counts it otherwise. The free bytes are for text that is always
// written: the ends of folded parts, and the last line.
func (m *markdown) put(text string) bool {
	const free = 500
	if m.b.Len()+len(text) > maxMarkdownBytes-free {
		m.omitted++
		return false
	}
	m.b.WriteString(text)
	return true
}

// line writes a paragraph, unless it is empty.
func (m *markdown) line(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); text != "" {
		m.put(text + "\n\n")
	}
}

// fold writes a folded part.
func (m *markdown) fold(title string, part func()) {
	if m.put("<details>\n<summary>" + escapeMarkdown(title) + "</summary>\n\n") {
		part()
		m.b.WriteString("</details>\n\n")
	}
}

// list writes items below a title.
func (m *markdown) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line("**%s**", escapeMarkdown(title))
	m.items(items)
}

// items writes a list.
func (m *markdown) items(list []string) {
	for _, s := range list {
		m.put("- " + escapeMarkdown(s) + "\n")
	}
	m.b.WriteString("\n")
}

// gates writes a table of the outcomes of gates.
func (m *markdown) gates(list []compare.Gated) {
	var rows [][]string
	for _, g := range list {
		rows = append(rows, []string{g.Gate, string(g.Outcome), g.Sentence})
	}
	m.rows("Gates", "", "| gate | outcome | why |\n|--|--|--|\n", rows)
}

// table writes the groups, a row for each case and a column for each target.
func (m *markdown) table(title string, list []group) {
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
		head += " | " + escapeMarkdown(name)
	}
	columns := 2 + len(m.names)
	if bounded {
		head, columns = head+" | "+referenceName, columns+1
	}
	if !m.put(head + " |\n|--|--" + strings.Repeat("|--:", columns-2) + "|\n") {
		m.omitted += len(list)
		return
	}
	for _, g := range list {
		m.row(g, bounded)
	}
	m.b.WriteString("\n")
}

// rows writes a table of plain texts below a heading; nothing if it has no rows.
func (m *markdown) rows(heading, about, head string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if heading != "" {
		m.line("### %s", heading)
	}
	m.line("%s", escapeMarkdown(about))
	if !m.put(head) {
		m.omitted += len(rows)
		return
	}
	for _, r := range rows {
		m.cells(r)
	}
	m.b.WriteString("\n")
}

// cells writes a row of plain texts; it escapes them in place.
func (m *markdown) cells(cells []string) {
	for i, c := range cells {
		cells[i] = escapeMarkdown(c)
	}
	m.put(tableRow(cells))
}

// tableRow joins escaped cells.
func tableRow(escaped []string) string { return "| " + strings.Join(escaped, " | ") + " |\n" }

// row writes a group as a row of a table.
func (m *markdown) row(g group, bounded bool) {
	subject, quantity := subjectAndQuantity(g.Planned, g.Metric)
	cells := []string{escapeMarkdown(subject + " · " + quantity),
		escapeMarkdown(g.Case+" "+g.Metric) + ", " + betterText(g.Better)}
	for _, name := range m.names {
		cells = append(cells, markdownCell(g, name))
	}
	if bounded {
		bound := ""
		if g.Bound != nil {
			bound = escapeMarkdown(g.references() + exceededText(*g.Bound))
		}
		cells = append(cells, bound)
	}
	m.put(tableRow(cells))
}

// markdownCell returns a value, with its change and verdict below it to keep the table narrow.
func markdownCell(g group, name string) string {
	ways := ""
	if text, apart := g.Directions[name]; apart {
		ways = "<br>" + escapeMarkdown(text)
	}
	if name == g.Baseline {
		return escapeMarkdown(format(g.BaselineMedian, g.Unit)) + ways
	}
	for _, r := range g.Rows {
		if r.Target == name {
			return escapeMarkdown(format(r.TargetMedian, r.Unit)) + ways + "<br>" + escapeMarkdown(difference(r)) +
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

// escapeMarkdown escapes text from outside so that it appears unchanged, also in a cell of a table.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range prose.Plain(s) {
		switch {
		case r == '@', r == '#':
			// GitHub reads @name and #1 in the rendered text, where a backslash is gone: it would notify, and link.
			b.WriteString(string(r) + "&#8203;")
		case strings.ContainsRune("\\`*_[]|~", r):
			b.WriteString("\\" + string(r))
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeFence makes text safe within a fenced block, which it must not end.
func escapeFence(s string) string { return strings.ReplaceAll(prose.Plain(s), "```", "` ` `") }
