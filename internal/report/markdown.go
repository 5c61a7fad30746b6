package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Markdown writes tables in the shape of case x target, to be pasted in a pull request, with what a
// reader has to know below. It is GitHub's dialect; nothing in it but tables needs that.
func Markdown(w io.Writer, in Input) error {
	c := in.Comparison
	m := &markdown{names: columns(c)}
	m.line("## %s", escapeMarkdown(title(c)))
	m.line("%s", escapeMarkdown(c.Summary))
	m.gates(c.Gates)
	all := groups(in)
	primary, hidden := partition(all, result.Primary)
	exploratory, others := partition(all, result.Exploratory)
	m.table("Primary", primary)
	m.table("Exploratory", exploratory)
	m.list("Order", concluded(c.Groups))
	if hidden += others; hidden > 0 {
		m.line("%d more metrics of these cases are in the report and its JSON.", hidden)
	}
	m.line("▲ better; ▼ worse; = equivalent; ~ undecided. %s", escapeMarkdown(reading(c)))
	m.list("Warnings", append(append([]string{}, c.Warnings...), rowNotes(append(primary, exploratory...), mostNotes)...))
	m.list("Implausible", findings(c))
	m.list("Not measured", notMeasured(c))
	m.list("Also differs from "+differsFrom(c)+" (its value in brackets)", alsoDiffers(c))
	m.list("Invalid runs, repeated with their block", invalidRuns(c))
	m.published(in)
	m.line("%s", escapeMarkdown(strings.Join(nonEmpty(c.Scope, timingOf(in).String()), " ")))
	if len(in.Experiment.Targets) > 0 {
		m.line("```sh\n%s\n```", fenced(strings.Join(command(in.Experiment), " ")))
	}
	return write(w, strings.TrimRight(m.b.String(), "\n")+"\n")
}

type markdown struct {
	b     strings.Builder
	names []string // of the columns
}

// line writes a paragraph.
func (m *markdown) line(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); text != "" {
		m.b.WriteString(text + "\n\n")
	}
}

func (m *markdown) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line("**%s**", escapeMarkdown(title))
	for _, s := range items {
		m.b.WriteString("- " + escapeMarkdown(s) + "\n")
	}
	m.b.WriteString("\n")
}

// gates is a table of what became of each gate.
func (m *markdown) gates(list []compare.Gated) {
	if len(list) == 0 {
		return
	}
	m.line("### Gates")
	m.cells([]string{"gate", "outcome", "why"})
	m.b.WriteString("|--|--|--|\n")
	for _, g := range list {
		m.cells([]string{g.Gate, string(g.Outcome), g.Sentence})
	}
	m.b.WriteString("\n")
}

func (m *markdown) table(title string, list []group) {
	if len(list) == 0 {
		return
	}
	m.line("### %s", title)
	bounded := false
	for _, g := range list {
		bounded = bounded || g.Bound != nil
	}
	head := append([]string{"case", "metric"}, m.names...)
	if bounded {
		head = append(head, "at best")
	}
	m.cells(head)
	m.b.WriteString("|--|--" + strings.Repeat("|--:", len(head)-2) + "|\n")
	for _, g := range list {
		m.row(g, bounded)
	}
	m.b.WriteString("\n")
}

func (m *markdown) cells(cells []string) {
	for i, c := range cells {
		cells[i] = escapeMarkdown(c)
	}
	m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (m *markdown) row(g group, bounded bool) {
	cells := []string{g.Case, g.Metric + ", " + betterText(g.Better)}
	for _, name := range m.names {
		cells = append(cells, markdownCell(g, name))
	}
	if bounded {
		bound := ""
		if g.Bound != nil {
			bound = format(g.Bound.Median, g.Unit)
		}
		cells = append(cells, bound)
	}
	m.cells(cells)
}

func markdownCell(g group, name string) string {
	if name == g.Baseline {
		return format(g.BaselineMedian, g.Unit)
	}
	for _, r := range g.Rows {
		if r.Target == name {
			return fmt.Sprintf("%s; %s %s %s", format(r.TargetMedian, r.Unit), difference(r), sign(r), word(r))
		}
	}
	return absent(g, name)
}

// rowNotes are the notes of the rows of groups, at most so many, each text once and with where it
// applies.
func rowNotes(list []group, most int) []string {
	where := map[string][]string{}
	for _, g := range list {
		for _, r := range g.Rows {
			for _, n := range notes(r) {
				where[n] = append(where[n], fmt.Sprintf("%s %s, %s", r.Case, r.Metric, r.Target))
			}
		}
	}
	texts, untold := choose(list, most)
	for i, n := range texts {
		texts[i] = places(where[n]) + ": " + n
	}
	if untold > 0 {
		texts = append(texts, fmt.Sprintf("%d more notes on single comparisons are in the report and its JSON.", untold))
	}
	return texts
}

// places names up to three places in full.
func places(list []string) string {
	if len(list) <= 3 {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:2], "; "), len(list)-2)
}

// escapeMarkdown makes text from outside show as itself, in a table's cell too.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range plain(s) {
		switch {
		case strings.ContainsRune("\\`*_[]|#@", r):
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

// fenced makes text safe within a fenced block, which it must not end.
func fenced(s string) string { return strings.ReplaceAll(plain(s), "```", "` ` `") }
