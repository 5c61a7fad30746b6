package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
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
			if err := oneOf("--output", output, auditOutputs); err != nil {
				return err
			}
			if err := oneOf("--fail-on", failOn, severities); err != nil && failOn != "" {
				return err
			}
			var sources []report.Audited
			for _, name := range names {
				a, err := auditOf(name)
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
		"how the findings are printed: "+strings.Join(auditOutputs, ", "))
	c.Flags().StringVar(&failOn, "fail-on", "",
		"end with status 3 if there is a finding of this severity or a graver one: "+strings.Join(severities, ", "))
	return c
}

var (
	auditOutputs = []string{"table", "json", "markdown"}
	severities   = []string{string(audit.Error), string(audit.Warning), string(audit.Note)}
)

// auditOf reads a results directory or a file, and applies all rules.
func auditOf(name string) (report.Audited, error) {
	info, err := os.Stat(name)
	if err != nil {
		return report.Audited{}, fmt.Errorf("audit: %w", err)
	}
	if info.IsDir() {
		r, err := openResults(name)
		if err != nil {
			return report.Audited{}, err
		}
		rules := audit.Examine(audit.Evidence{Results: r.Results, Source: name})
		read := unit.Plural(len(r.Runs), "run") + ", " + unit.Plural(len(r.Experiment.Cases), "case")
		return report.Audited{Source: name, Read: read, Rules: rules, Warnings: r.Warnings}, nil
	}
	data, err := userfile.Read(name, userfile.Limit)
	if err != nil {
		return report.Audited{}, fmt.Errorf("audit: %w", err)
	}
	d, err := table.Read(name, data, registry.Families())
	if err != nil {
		return report.Audited{}, err
	}
	rules := audit.Examine(audit.Evidence{Results: d.Results, Source: name})
	read := unit.Plural(d.Tables, "table") + ", " + unit.Plural(d.Figures, "figure")
	return report.Audited{Source: name, Read: read, Rules: rules, Warnings: d.Warnings}, nil
}

// failed is an error with status 3 if a finding is as grave as asked for.
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
