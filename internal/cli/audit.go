package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/published/page"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

func newAudit(s Streams) *cobra.Command {
	var output, failOn string
	c := &cobra.Command{
		Use:   "audit DIR|FILE…",
		Short: "Find implausible numbers in results or published tables",
		Long: `Find numbers that cannot be true, and reasons to doubt others, in results
directories and in files with figures: CSV, Markdown, HTML, or text copied from a
page.
docs/audit.md has the rules and the forms that are read.

The exit status is 0 whatever is found, or 3 as --fail-on asks.`,
		Example: `  knotmeter audit results/2026-12-01-a1b2
  knotmeter audit table.md --fail-on error`,
		Args: operands(1, -1),
		RunE: func(c *cobra.Command, names []string) error {
			if err := oneOf("--output", output, auditOutputs); err != nil {
				return err
			}
			if err := oneOf("--fail-on", failOn, severities); err != nil && failOn != "" {
				return err
			}
			var sources []report.Audited
			var seen audit.Seen
			for _, name := range names {
				a, err := await(c.Context(), func() (report.Audited, error) { return auditOf(name, &seen) })
				if err != nil {
					return err
				}
				for _, w := range a.Warnings {
					warn(s.Err, prose.Plain(w))
				}
				sources = append(sources, a)
			}
			if err := writeAudit(s.Out, output, sources); err != nil {
				return err
			}
			return failed(sources, audit.Severity(failOn))
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table",
		printedAs(auditOutputs))
	c.Flags().StringVar(&failOn, "fail-on", "",
		"`SEVERITY` exit with status 3 if a finding is as severe: "+strings.Join(severities, ", "))
	completeFlag(c, "output", auditOutputs)
	return c
}

var (
	auditOutputs = []string{"table", "json", "markdown"}
	severities   = []string{string(audit.Error), string(audit.Warning), string(audit.Note)}
)

// auditOf applies all rules to a results directory or a file with figures, after those that were seen.
func auditOf(name string, seen *audit.Seen) (report.Audited, error) {
	info, err := os.Stat(name)
	if err != nil {
		return report.Audited{}, fmt.Errorf("audit: %w", err)
	}
	if info.IsDir() {
		r, err := openResults(name)
		if err != nil {
			return report.Audited{}, err
		}
		rules := audit.Examine(audit.Evidence{Results: r.Results, Source: name, Seen: seen})
		read := unit.Plural(len(r.Runs), "run") + ", " + unit.Plural(len(r.Experiment.Cases), "case")
		return report.Audited{Source: name, Read: read, Rules: rules, Warnings: r.Warnings}, nil
	}
	data, err := userfile.Read(name, userfile.Limit)
	if err != nil {
		return report.Audited{}, fmt.Errorf("audit: %w", err)
	}
	d, err := page.Read(name, data, registry.Families())
	if err != nil {
		return report.Audited{}, err
	}
	rules := audit.Examine(audit.Evidence{Results: d.Results, Source: name, Seen: seen})
	read := unit.Plural(d.Tables, "table") + ", " + unit.Plural(d.Figures, "figure")
	return report.Audited{Source: name, Read: read, Rules: rules, Figures: d.Runs, Unread: d.Unread,
		Warnings: d.Warnings}, nil
}

// failed returns an error with status 3 if a finding is at least as severe as least; an empty least never fails.
func failed(sources []report.Audited, least audit.Severity) error {
	if least == "" {
		return nil
	}
	n := 0
	for _, a := range sources {
		for _, severity := range audit.Severities {
			n += len(a.Findings(severity))
			if severity == least {
				break
			}
		}
	}
	if n == 0 {
		return nil
	}
	what := string(least)
	if least != audit.Error {
		what += " or worse"
	}
	return &statusError{statusGateFailed, fmt.Errorf("--fail-on %s: %s (%s)", least, unit.Plural(n, "finding"), what)}
}

func writeAudit(w io.Writer, output string, sources []report.Audited) error {
	switch output {
	case "json":
		return report.AuditJSON(w, sources)
	case "markdown":
		return report.AuditMarkdown(w, sources)
	}
	return report.AuditText(w, sources)
}
