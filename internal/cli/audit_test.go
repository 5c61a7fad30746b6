package cli

import (
	"strings"
	"testing"
)

// Findings fit into a terminal of 80 columns, also with characters that take two.
func TestIndented(t *testing.T) {
	for _, text := range []string{
		"", "word", strings.Repeat("some words ", 40), strings.Repeat("节点间 同节点 ", 30), strings.Repeat("a", 70) + " " + strings.Repeat("b", 70),
	} {
		for _, blanks := range []int{0, 4, 6} {
			got := indented(text, blanks)
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")
				if columns(line) > auditWidth {
					t.Errorf("%d columns: %q", columns(line), line)
				}
				if !strings.HasPrefix(line, strings.Repeat(" ", blanks)) {
					t.Errorf("not indented by %d: %q", blanks, line)
				}
			}
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// What a file holds does nothing to a terminal or to the rest of a Markdown table.
func TestAuditTextIsSafe(t *testing.T) {
	evil := "a\x1b[31m|b\u202e`*_<img>\n"
	if got := printable(evil); strings.ContainsAny(got, "\x1b\n\u202e") {
		t.Errorf("got %q", got)
	}
	if got := cellText(evil); strings.Contains(got, "<") || strings.Contains(strings.ReplaceAll(got, `\|`, ""), "|") || strings.Contains(got, "\n") {
		t.Errorf("got %q", got)
	}
}
