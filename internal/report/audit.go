package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An Audited is a source with the findings of the audit.
type Audited struct {
	Source   string // a file or a results directory
	Read     string // summary of its content
	Rules    []audit.Examination
	Warnings []string
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
	if line, ok := strings.CutPrefix(f.Place, a.Source+":"); ok {
		parts = append(parts, "line "+line)
	} else if f.Place != "" {
		parts = append(parts, f.Place)
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
		fmt.Fprintf(&b, "### %s\n\n%s\n", escapeMarkdown(a.Source), escapeMarkdown(a.summary()))
		if len(a.Findings("")) > 0 {
			b.WriteString("\n| severity | rule | about | saw | why it matters |\n|---|---|---|---|---|\n")
		}
		for _, severity := range audit.Severities {
			for _, f := range a.Findings(severity) {
				b.WriteString(tableRow([]string{
					string(severity), f.Rule, escapeMarkdown(a.subject(f)), escapeMarkdown(f.Saw), escapeMarkdown(f.Why),
				}))
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
	Warnings []string        `json:"warnings"`
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
			a.Source, a.Read, a.Findings(""), looked, a.idleRules(), append([]string{}, a.Warnings...),
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
