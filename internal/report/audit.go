package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/doc/markdown"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An Audited is a source with the findings of the audit.
type Audited struct {
	Source   string // a file or a results directory
	Read     string // summary of its content
	Rules    []audit.Examination
	Figures  []result.Run // whose values were read from a file with tables
	Unread   []audit.Unread
	Warnings []string
}

// maxUnread is the number of unread cells that are shown.
const maxUnread = 5

// unreadText counts the cells that look like figures and were not read, and shows the first; empty if there are none.
func (a Audited) unreadText() string {
	n := len(a.Unread)
	if n == 0 {
		return ""
	}
	var shown []string
	for _, u := range a.Unread[:min(n, maxUnread)] {
		at := a.lineOf(u.Place)
		if u.Column != "" {
			at += ", column " + u.Column
		}
		shown = append(shown, fmt.Sprintf("%s (%q: %s)", at, u.Text, u.Reason))
	}
	verb := "were"
	if n == 1 {
		verb = "was"
	}
	text := fmt.Sprintf("%d of %s %s not read: %s", n, unit.Plural(len(a.figures())+n, "figure"), verb,
		strings.Join(shown, "; "))
	if more := n - len(shown); more > 0 {
		return text + fmt.Sprintf("; and %d more, which -o json lists.", more)
	}
	return text + "."
}

// lineOf returns the line of a place in the source.
func (a Audited) lineOf(place string) string {
	if line, ok := strings.CutPrefix(place, a.Source+":"); ok {
		return "line " + line
	}
	return place
}

// Findings returns the findings of a severity; those of all severities for "".
func (a Audited) Findings(severity audit.Severity) []audit.Finding {
	found := []audit.Finding{}
	for _, x := range a.Rules {
		for _, f := range x.Findings {
			if severity == "" || f.Severity == severity {
				found = append(found, f)
			}
		}
	}
	return found
}

// idleRules returns the names of the rules that had nothing to check.
func (a Audited) idleRules() []string {
	names := []string{}
	for _, x := range a.Rules {
		if x.Checked == 0 {
			names = append(names, x.Rule.Name)
		}
	}
	return names
}

// idleText counts the rules that had nothing to check; empty if there are none.
func (a Audited) idleText() string {
	n := len(a.idleRules())
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s had nothing to check here; -o json names them.", n, unit.Plural(len(a.Rules), "rule"))
}

// summary returns the content of the source and the number of findings, in a line.
func (a Audited) summary() string {
	var parts []string
	for _, severity := range audit.Severities {
		if n := len(a.Findings(severity)); n > 0 {
			parts = append(parts, unit.Plural(n, string(severity)))
		}
	}
	found := "nothing found"
	if len(parts) > 0 {
		found = strings.Join(parts, ", ")
	}
	return a.Read + ": " + found + "."
}

// subject returns the case, target, and line or run of a finding.
func (a Audited) subject(f audit.Finding) string {
	var parts []string
	if f.Place != "" {
		parts = append(parts, a.lineOf(f.Place))
	}
	parts = append(parts, nonEmpty(f.Case, f.Target)...)
	switch n := len(f.Runs); {
	case f.Place != "": // the line already names a cell of a table
	case n == 1:
		parts = append(parts, "run "+f.Runs[0])
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d runs from %s on", n, f.Runs[0]))
	}
	return strings.Join(parts, ", ")
}

// AuditText writes audits for a terminal. The error is the writer's.
func AuditText(w io.Writer, sources []Audited) error {
	var p prose.Page
	for i, a := range sources {
		if i > 0 {
			p.Line("")
		}
		p.Line(prose.Plain(a.Source))
		p.Line(prose.Plain(a.summary()))
		if words := a.unreadText(); words != "" {
			p.Paragraph("", "", words)
		}
		for _, severity := range audit.Severities {
			a.section(&p, severity)
		}
		if words := a.idleText(); words != "" {
			p.Line("")
			p.Paragraph("", "", words)
		}
	}
	return write(w, p.String())
}

// section writes the findings of a severity below a heading.
func (a Audited) section(p *prose.Page, severity audit.Severity) {
	if len(a.Findings(severity)) == 0 {
		return
	}
	p.Line("")
	p.Line(strings.ToUpper(string(severity)) + "S")
	const inner, deep, deeper = "    ", "      ", "        "
	for _, x := range a.Rules {
		found := slices.DeleteFunc(slices.Clone(x.Findings), func(f audit.Finding) bool { return f.Severity != severity })
		if len(found) == 0 {
			continue
		}
		p.Line("  " + x.Rule.Name)
		for _, f := range found {
			p.Paragraph(inner, deep, strings.Join(nonEmpty(a.subject(f), f.Saw), ": "))
		}
		p.Paragraph(deep, deeper, "Why it matters: "+x.Rule.Why)
		if x.Rule.More != "" {
			p.Paragraph(deep, deeper, "More: "+x.Rule.More)
		}
	}
}

// AuditMarkdown writes audits as Markdown tables, for a comment. The error is the writer's.
func AuditMarkdown(w io.Writer, sources []Audited) error {
	var b strings.Builder
	for i, a := range sources {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n", markdown.Escape(a.Source), markdown.Escape(a.summary()))
		if words := a.unreadText(); words != "" {
			b.WriteString("\n" + markdown.Escape(words) + "\n")
		}
		if len(a.Findings("")) > 0 {
			b.WriteString("\n| severity | rule | about | saw | why it matters |\n|---|---|---|---|---|\n")
		}
		for _, severity := range audit.Severities {
			for _, f := range a.Findings(severity) {
				b.WriteString("| " + strings.Join([]string{
					string(severity), f.Rule, markdown.Escape(a.subject(f)), markdown.Escape(f.Saw), markdown.Escape(f.Why),
				}, " | ") + " |\n")
			}
		}
		if words := a.idleText(); words != "" {
			b.WriteString("\n" + words + "\n")
		}
	}
	return write(w, b.String())
}

// An AuditDocument is the JSON of knotmeter/audit/v1, which docs/schema/audit-v1.json describes.
type AuditDocument struct {
	Schema  string        `json:"schema"`
	Sources []auditSource `json:"sources"`
}

type auditSource struct {
	Source   string          `json:"source"`
	Read     string          `json:"read"`
	Findings []audit.Finding `json:"findings"`
	Looked   map[string]int  `json:"looked"`  // number of things that each rule checked
	Nothing  []string        `json:"nothing"` // rules that had nothing to check
	Figures  []auditFigure   `json:"figures"` // of a file with tables
	Unread   []audit.Unread  `json:"unread"`
	Warnings []string        `json:"warnings"`
}

// An auditFigure is a number that was read from a table, in its base unit.
type auditFigure struct {
	Place    string    `json:"place"` // file and line
	Case     string    `json:"case"`
	Target   string    `json:"target"`
	Metric   string    `json:"metric"` // ends in .sd for a spread, in .change for a claimed change
	Unit     unit.Unit `json:"unit"`
	Value    float64   `json:"value"`
	Runs     string    `json:"runs,omitempty"`     // number of runs behind it, as the table states it
	Interval string    `json:"interval,omitempty"` // as the table states it
}

// figures lists the figures that were read.
func (a Audited) figures() []auditFigure {
	list := []auditFigure{}
	for i := range a.Figures {
		r := &a.Figures[i]
		for _, v := range r.Values {
			list = append(list, auditFigure{
				Place: audit.PlaceOf(r, v.Metric), Case: r.Case, Target: r.Target, Metric: v.Metric, Unit: v.Unit,
				Value: v.Number, Runs: r.Fact(audit.FactRuns), Interval: r.Fact(audit.FactInterval)})
		}
	}
	return list
}

// AuditJSON writes audits as an [AuditDocument]. The error is the writer's.
func AuditJSON(w io.Writer, sources []Audited) error {
	out := AuditDocument{Schema: "knotmeter/audit/v1"}
	for _, a := range sources {
		looked := map[string]int{}
		for _, x := range a.Rules {
			looked[x.Rule.Name] = x.Checked
		}
		out.Sources = append(out.Sources, auditSource{
			a.Source, a.Read, a.Findings(""), looked, a.idleRules(), a.figures(),
			append([]audit.Unread{}, a.Unread...), append([]string{}, a.Warnings...),
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}
