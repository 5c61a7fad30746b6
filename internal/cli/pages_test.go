package cli

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// commandsPage is the page that is generated from the help of the commands.
const commandsPage = "docs/commands.md"

// TestCommandsPage checks the page about commands; -update writes it.
func TestCommandsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Commands

What ` + "`--help-all`" + ` of each command shows. Targets are arguments: the first is the baseline.
`)
	for _, c := range commands(newRoot(Streams{}, "test")) {
		b.WriteString(commandText(c))
	}
	golden.Check(t, "../../"+commandsPage, b.String())
}

// commandText returns the section of a command.
func commandText(c *cobra.Command) string {
	parts := []string{"\n## " + c.CommandPath(), asMarkdown(cmp.Or(c.Long, c.Short)), "    " + c.UseLine()}
	if c.Example != "" {
		parts = append(parts, asMarkdown(c.Example))
	}
	if table := flagTable(c); table != "" {
		parts = append(parts, table)
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// asMarkdown turns the indented lines of a help text into code.
func asMarkdown(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			if n := len(lines); n > 0 && lines[n-1] != "" && !strings.HasPrefix(lines[n-1], "    ") {
				lines = append(lines, "")
			}
			line = "  " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// flagTable returns a table of a command's flags.
func flagTable(c *cobra.Command) string {
	var rows string
	for _, f := range shownFlags(c, true) {
		rows += fmt.Sprintf("\n| `%s` | %s |", cell(strings.TrimSpace(flagTerm(f))), cell(flagAbout(f)))
	}
	if rows == "" {
		return ""
	}
	return "| Flag | Description |\n|---|---|" + rows
}

// cell returns text escaped for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// TestTroubleshootingPage checks that the messages that the page explains exist in the program.
func TestTroubleshootingPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t)
	n, explained := 0, false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "| Symptom |"), strings.HasPrefix(line, "| Reason |"):
			explained = true
		case !strings.HasPrefix(line, "|"):
			explained = false
		}
		message, is := strings.CutPrefix(line, "| `")
		if !explained || !is {
			continue
		}
		n++
		message, _, _ = strings.Cut(message, "`")
		message, _, _ = strings.Cut(message, "…")
		if !strings.Contains(code, message) {
			t.Errorf("no message of the program has %q", message)
		}
	}
	if n < 5 {
		t.Errorf("only %d messages were found", n)
	}
}

// sources returns the program's source code without tests; string literals split over several lines are joined.
func sources(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cutText.ReplaceAllString(b.String(), "")
}

var cutText = regexp.MustCompile(`" \+\n\s*"`)

// TestExperimentFilesPage checks the table of fields; -update writes it.
func TestExperimentFilesPage(t *testing.T) {
	const page, end = "../../docs/experiment-files.md", "<!-- end of fields -->"
	const begin = "<!-- fields: written by go test ./internal/cli -update -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place for the fields", page)
	}
	var b strings.Builder
	b.WriteString("\n| Field | Type | Description |\n|---|---|---|\n")
	flags := newRun(Streams{}, "test").Flags()
	for _, s := range settings {
		if s.field != "" {
			usage := flagAbout(flags.Lookup(s.flag))
			if _, text, found := strings.Cut(strings.TrimPrefix(usage, "`"), "` "); found {
				usage = text
			}
			fmt.Fprintf(&b, "| `%s` | %s | `--%s`: %s |\n", s.field, typeName(s.value(new(options))), s.flag,
				cell(strings.ReplaceAll(usage, "; repeated", "")))
		}
	}
	golden.Check(t, page, before+begin+b.String()+"\n"+end+after)
}

// typeName returns the YAML type of a field whose flag sets a variable.
func typeName(variable any) string {
	switch variable.(type) {
	case *commaList:
		return "text or list"
	case *[]string, *[]int, *publishedTables, *matches, *prices, *statedFacts:
		return "list"
	case *bool:
		return "true or false"
	case *int, *float64, *uint64:
		return "number"
	}
	return "text"
}
