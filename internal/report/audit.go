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

// An Audited is a source with what the rules of the audit made of it.
type Audited struct {
	Source   string // a file or a results directory
	Read     string // what it has
	Rules    []audit.Examination
	Warnings []string
}

// Findings lists those of a severity, all for "".
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

// idle lists the rules that had nothing to look at.
func (a Audited) idle() []string {
	names := []string{}
	for _, x := range a.Rules {
		if x.Looked == 0 {
			names = append(names, x.Rule.Name)
		}
	}
	return names
}

// idleWords count the rules that had nothing to look at; empty if all had something.
func (a Audited) idleWords() string {
	n := len(a.idle())
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s had nothing to check here; -o json names them.", n, unit.Plural(len(a.Rules), "rule"))
}

// summary is what was read and found, in a line.
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

// about is what a finding is about, with its line or run.
func (a Audited) about(f audit.Finding) string {
	var parts []string
	if line, ok := strings.CutPrefix(f.Place, a.Source+":"); ok {
		parts = append(parts, "line "+line)
	} else if f.Place != "" {
		parts = append(parts, f.Place)
	}
	parts = append(parts, nonEmpty(f.Case, f.Target)...)
	switch n := len(f.Runs); {
	case f.Place != "": // a cell of a table is named by its line
	case n == 1:
		parts = append(parts, "run "+f.Runs[0])
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d runs from %s on", n, f.Runs[0]))
	}
	return strings.Join(parts, ", ")
}

// AuditText is an audit for a terminal.
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
		if words := a.idleWords(); words != "" {
			p.Line("")
			p.Paragraph("", "", words)
		}
	}
	return write(w, p.String())
}

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
			p.Paragraph(inner, deep, strings.Join(nonEmpty(a.about(f), f.Saw), ": "))
		}
		p.Paragraph(deep, deeper, "Why it matters: "+x.Rule.Why)
		if x.Rule.More != "" {
			p.Paragraph(deep, deeper, "More: "+x.Rule.More)
		}
	}
}

// AuditMarkdown is an audit as tables for a comment.
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
					string(severity), f.Rule, escapeMarkdown(a.about(f)), escapeMarkdown(f.Saw), escapeMarkdown(f.Why),
				}))
			}
		}
		if words := a.idleWords(); words != "" {
			b.WriteString("\n" + words + "\n")
		}
	}
	return write(w, b.String())
}

// An AuditDocument is knotmeter/audit/v1, which docs/schema/audit-v1.json describes.
type AuditDocument struct {
	Schema  string        `json:"schema"`
	Sources []auditSource `json:"sources"`
}

type auditSource struct {
	Source   string          `json:"source"`
	Read     string          `json:"read"`
	Findings []audit.Finding `json:"findings"`
	Looked   map[string]int  `json:"looked"`  // things that each rule could judge
	Nothing  []string        `json:"nothing"` // rules that had nothing to look at
	Warnings []string        `json:"warnings"`
}

// AuditJSON is an audit as an [AuditDocument].
func AuditJSON(w io.Writer, sources []Audited) error {
	out := AuditDocument{Schema: "knotmeter/audit/v1"}
	for _, a := range sources {
		looked := map[string]int{}
		for _, x := range a.Rules {
			looked[x.Rule.Name] = x.Looked
		}
		out.Sources = append(out.Sources, auditSource{
			a.Source, a.Read, a.Findings(""), looked, a.idle(), append([]string{}, a.Warnings...),
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
