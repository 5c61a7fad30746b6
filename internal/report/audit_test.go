package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// TestAuditIsSafe checks that text from a file can neither control a terminal nor break a Markdown table.
func TestAuditIsSafe(t *testing.T) {
	evil := "a\x1b[31m|b\u202e`*_<img>\n"
	f := audit.Finding{Rule: "closed-loop", Severity: audit.Error, Case: evil, Target: evil, Saw: evil, Why: evil}
	sources := []Audited{{Source: evil, Read: evil, Rules: []audit.Examination{
		{Rule: audit.Rule{Name: "closed-loop", Why: "It matters."}, Checked: 1, Findings: []audit.Finding{f}},
	}, Unread: []audit.Unread{{Place: evil, Column: evil, Text: evil, Reason: evil}}}}
	checkLines(t, render(t, func(b *strings.Builder) error { return AuditText(b, sources) }), prose.Columns)
	table := render(t, func(b *strings.Builder) error { return AuditMarkdown(b, sources) })
	for line := range strings.Lines(table) {
		bars := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if strings.Contains(line, "<img") || bars != 0 && bars != 6 || strings.Contains(line, "\x1b") {
			t.Errorf("a line with %d bars: %q", bars, line)
		}
	}
}
