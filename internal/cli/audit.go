package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/nearest"
	"github.com/knotmeter/knotmeter/internal/table"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

func newAudit(s Streams) *cobra.Command {
	var output, failOn string
	c := &cobra.Command{
		Use:   "audit DIR|FILE…",
		Short: "Look for what is implausible in results or published tables",
		Long: `Look for numbers that cannot be true, and for what speaks against believing others.
A directory is one of results. A file is text with figures: CSV, Markdown, or what
comes of copying a page. Units stand in headers, in labels or beside the figures;
docs/audit.md has the rules and the forms that are read.

Findings are a result: the exit status is 0 with them too, or 3 with --fail-on.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			if !slices.Contains(auditOutputs(), output) {
				return fmt.Errorf("--output: %q is not one of %s", output, nearest.List(output, auditOutputs()))
			}
			if failOn != "" && !slices.Contains(severities(), audit.Severity(failOn)) {
				return fmt.Errorf("--fail-on: %q is not one of %s", failOn, nearest.List(failOn, []string{"error", "warning", "note"}))
			}
			var sources []audited
			for _, name := range names {
				a, err := auditOf(name)
				if err != nil {
					return err
				}
				for _, w := range a.warnings {
					fmt.Fprintln(s.Err, "warning: "+printable(w))
				}
				sources = append(sources, a)
			}
			if err := writeAudit(s.Out, output, sources); err != nil {
				return err
			}
			return failed(sources, audit.Severity(failOn))
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "how the findings are printed: "+strings.Join(auditOutputs(), ", "))
	c.Flags().StringVar(&failOn, "fail-on", "", "end with status 3 if there is a finding of this severity or a graver one: error, warning, note")
	return c
}

func auditOutputs() []string { return []string{"table", "json", "markdown"} }

// severities are the kinds of findings, the gravest first.
func severities() []audit.Severity {
	return []audit.Severity{audit.Error, audit.Warning, audit.Note}
}

// audited is a source with what the rules made of it.
type audited struct {
	name     string
	read     string // what it has
	rules    []audit.Examination
	warnings []string
}

// auditOf reads a results directory or a file, and applies all rules.
func auditOf(name string) (audited, error) {
	info, err := os.Stat(name)
	if err != nil {
		return audited{}, fmt.Errorf("audit: %w", err)
	}
	if info.IsDir() {
		r, err := openResults(name)
		if err != nil {
			return audited{}, err
		}
		rules := audit.Examine(audit.Evidence{Results: compared(r), Source: name})
		return audited{name, fmt.Sprintf("%s, %s", unit.Plural(len(r.Runs), "run"), unit.Plural(len(r.Experiment.Cases), "case")), rules, r.Warnings}, nil
	}
	data, err := userfile.Read(name, userfile.Limit)
	if err != nil {
		return audited{}, fmt.Errorf("audit: %w", err)
	}
	d, err := table.Read(name, data)
	if err != nil {
		return audited{}, err
	}
	rules := audit.Examine(audit.Evidence{Results: d.Results, Source: name})
	return audited{name, fmt.Sprintf("%s, %s", unit.Plural(d.Tables, "table"), unit.Plural(d.Figures, "figure")), rules, d.Warnings}, nil
}

// findings lists those of a severity, all for "".
func (a audited) findings(severity audit.Severity) []audit.Finding {
	found := []audit.Finding{}
	for _, x := range a.rules {
		for _, f := range x.Findings {
			if severity == "" || f.Severity == severity {
				found = append(found, f)
			}
		}
	}
	return found
}

// idle lists the rules that had nothing to look at.
func (a audited) idle() []string {
	names := []string{}
	for _, x := range a.rules {
		if x.Looked == 0 {
			names = append(names, x.Rule.Name)
		}
	}
	return names
}

// failed is an error with status 3 if a finding is as grave as asked for.
func failed(sources []audited, least audit.Severity) error {
	if least == "" {
		return nil
	}
	n := 0
	for _, a := range sources {
		for _, severity := range severities() {
			n += len(a.findings(severity))
			if severity == least {
				break
			}
		}
	}
	if n == 0 {
		return nil
	}
	what := map[audit.Severity]string{audit.Error: "error", audit.Warning: "warning or worse", audit.Note: "note or worse"}[least]
	return &statusError{statusGateFailed, fmt.Errorf("--fail-on %s: %s (%s)", least, unit.Plural(n, "finding"), what)}
}

func writeAudit(w io.Writer, output string, sources []audited) error {
	var err error
	switch output {
	case "json":
		err = auditJSON(w, sources)
	case "markdown":
		_, err = io.WriteString(w, auditMarkdown(sources))
	default:
		_, err = io.WriteString(w, auditText(sources))
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// auditSchema names the form of the JSON.
const auditSchema = "knotmeter/audit/v1"

// auditDocument is what -o json prints; docs/schema/audit-v1.json describes it.
type auditDocument struct {
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

func auditJSON(w io.Writer, sources []audited) error {
	out := auditDocument{Schema: auditSchema}
	for _, a := range sources {
		looked := map[string]int{}
		for _, x := range a.rules {
			looked[x.Rule.Name] = x.Looked
		}
		out.Sources = append(out.Sources, auditSource{a.name, a.read, a.findings(""), looked, a.idle(), append([]string{}, a.warnings...)})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// summary is what was read and found, in a line.
func (a audited) summary() string {
	var parts []string
	for _, severity := range severities() {
		if n := len(a.findings(severity)); n > 0 {
			parts = append(parts, unit.Plural(n, string(severity)))
		}
	}
	found := "nothing found"
	if len(parts) > 0 {
		found = strings.Join(parts, ", ")
	}
	return a.read + ": " + found
}

// auditText is for a terminal of 80 columns.
func auditText(sources []audited) string {
	var b strings.Builder
	for i, a := range sources {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n%s.\n", printable(a.name), printable(a.summary()))
		for _, severity := range severities() {
			a.section(&b, severity)
		}
		if idle := a.idle(); len(idle) > 0 {
			fmt.Fprintf(&b, "\nRules without anything to look at:\n%s", indented(strings.Join(idle, ", ")+".", 2))
		}
	}
	return b.String()
}

func (a audited) section(b *strings.Builder, severity audit.Severity) {
	if len(a.findings(severity)) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%sS\n", strings.ToUpper(string(severity)))
	for _, x := range a.rules {
		found := slices.DeleteFunc(slices.Clone(x.Findings), func(f audit.Finding) bool { return f.Severity != severity })
		if len(found) == 0 {
			continue
		}
		fmt.Fprintf(b, "  %s\n", x.Rule.Name)
		for _, f := range found {
			b.WriteString(indented(a.where(f)+printable(f.Saw), 4))
		}
		b.WriteString(indented("Why it matters: "+x.Rule.Why, 6))
		if x.Rule.More != "" {
			b.WriteString(indented("More: "+x.Rule.More, 6))
		}
	}
}

// where is what a finding is about, with its line or run.
func (a audited) where(f audit.Finding) string {
	var parts []string
	if line, ok := strings.CutPrefix(f.Place, a.name+":"); ok {
		parts = append(parts, "line "+line)
	} else if f.Place != "" {
		parts = append(parts, f.Place)
	}
	for _, name := range []string{f.Case, f.Target} {
		if name != "" {
			parts = append(parts, name)
		}
	}
	if n := len(f.Runs); f.Place != "" {
		// A cell of a table is named by its line.
	} else if n == 1 {
		parts = append(parts, "run "+f.Runs[0])
	} else if n > 1 {
		parts = append(parts, fmt.Sprintf("%d runs from %s on", n, f.Runs[0]))
	}
	if len(parts) == 0 {
		return ""
	}
	return printable(strings.Join(parts, ", ")) + ": "
}

// auditWidth is the width of a terminal that shows everything.
const auditWidth = 80

// indented breaks a text into lines of at most 80 columns, with blanks before each and two more from
// the second on.
func indented(text string, blanks int) string {
	var b strings.Builder
	line, room := "", auditWidth-blanks
	flush := func() {
		b.WriteString(strings.Repeat(" ", blanks) + line + "\n")
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && columns(line)+1+columns(word) > room {
			flush()
			line = "  " + word
			continue
		}
		line += map[bool]string{true: "", false: " "}[line == ""] + word
	}
	flush()
	return b.String()
}

// columns is how many columns a text takes: two for the wide characters of East Asia.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n++
		if unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0xff01 && r <= 0xff60 {
			n++
		}
	}
	return n
}

// printable makes text from a file safe for a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

// auditMarkdown is a table for a comment.
func auditMarkdown(sources []audited) string {
	var b strings.Builder
	for i, a := range sources {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s\n\n%s.\n", cellText(a.name), cellText(a.summary()))
		if len(a.findings("")) > 0 {
			b.WriteString("\n| severity | rule | about | saw | why it matters |\n|---|---|---|---|---|\n")
		}
		for _, severity := range severities() {
			for _, f := range a.findings(severity) {
				about := strings.TrimSuffix(a.where(f), ": ")
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", severity, f.Rule, cellText(about), cellText(f.Saw), cellText(f.Why))
			}
		}
		if idle := a.idle(); len(idle) > 0 {
			fmt.Fprintf(&b, "\nRules without anything to look at: %s.\n", strings.Join(idle, ", "))
		}
	}
	return b.String()
}

// cellText makes a text safe within a cell of Markdown.
func cellText(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[").Replace(printable(text))
}
