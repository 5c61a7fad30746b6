package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
)

// A finding is a finding of the audit, with a number by which marks next to values refer to it.
type finding struct {
	audit.Finding
	Number int
	Where  string // case, target and metric, and file or runs
}

// ID returns the id of the finding's HTML element.
func (f finding) ID() string { return fmt.Sprintf("finding-%d", f.Number) }

// Label returns the text for screen readers of the mark that links to the finding.
func (f finding) Label() string { return fmt.Sprintf("%s %d: %s", f.Severity, f.Number, f.Rule) }

// Sign returns a mark of one column for a severity, so that it does not depend on colour.
func (f finding) Sign() string {
	switch f.Severity {
	case audit.Error:
		return "✖"
	case audit.Warning:
		return "▲"
	}
	return "●"
}

// A findingList holds the findings, most severe first.
type findingList struct {
	all    []finding
	errors int
	byCase map[string][]finding
}

// maxMarks is the maximum number of findings marked next to one value; the list has all.
const maxMarks = 2

// newFindings sorts and numbers the findings of a comparison.
func newFindings(c compare.Comparison) findingList {
	order := slices.Clone(c.Findings)
	slices.SortStableFunc(order, func(a, b audit.Finding) int {
		return cmp.Compare(severityRank(a.Severity), severityRank(b.Severity))
	})
	list := findingList{byCase: map[string][]finding{}}
	for i, f := range order {
		list.all = append(list.all, finding{Finding: f, Number: i + 1, Where: findingPlace(f)})
		if f.Severity == audit.Error {
			list.errors++
		}
	}
	for _, f := range list.all[:min(len(list.all), maxRows)] {
		if f.Case != "" {
			list.byCase[f.Case] = append(list.byCase[f.Case], f)
		}
	}
	return list
}

// severityRank returns the rank of a severity, 0 for the most severe.
func severityRank(s audit.Severity) int {
	return slices.Index(audit.Severities, s) & 3 // an unknown severity, -1, becomes 3 and is last
}

// findingPlace returns the case, target, metric, place and runs of a finding.
func findingPlace(f audit.Finding) string {
	parts := nonEmpty(f.Case, f.Target, f.Metric, f.Place)
	if n := len(f.Runs); n > 0 {
		text := "run " + f.Runs[0]
		if n > 1 {
			text = fmt.Sprintf("%d runs (%s)", n, strings.Join(f.Runs[:min(n, 4)], ", "))
		}
		if n > 4 {
			text = fmt.Sprintf("%d runs (%s …)", n, strings.Join(f.Runs[:4], ", "))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}

// Worst returns a sentence for the first screen if there are errors, else "".
func (l findingList) Worst() string {
	switch l.errors {
	case 0:
		return ""
	case 1:
		return "One number of this experiment cannot be what it says it is."
	}
	return fmt.Sprintf("%d findings say that numbers of this experiment cannot be what they say they are.", l.errors)
}

// audited returns the findings of the audit.
func audited(c compare.Comparison) doc.Block {
	if len(c.Findings) == 0 {
		return doc.Block{}
	}
	var list doc.Entries
	for _, f := range newFindings(c).all {
		e := doc.Entry{ID: f.ID(), Text: strings.TrimSpace(f.Saw + " " + f.Why), Details: nonEmpty(f.More),
			Label: strings.Join(nonEmpty(strings.TrimSpace(f.Sign()+" "+f.Label()), f.Where), " · ")}
		list = append(list, e)
	}
	return doc.Block{ID: "audit", Title: "Audit", Level: doc.Detail, Count: counted(c.Findings, "audit finding"),
		About: "Implausible numbers, worst first. An error is a number that cannot be what it claims to be; a warning " +
			"needs an explanation.", Parts: []doc.Element{list}}
}

// auditSection returns the findings of the audit, or that there are none.
func auditSection(c compare.Comparison) doc.Block {
	if b := audited(c); len(b.Parts) > 0 {
		return b
	}
	return doc.Block{ID: "audit", Title: "Audit",
		Parts: []doc.Element{doc.Paragraph{Text: "The audit found nothing implausible."}}}
}

// marks returns the findings, at most maxMarks, that concern a value: findings of its case that name no other target or
// metric. An empty metric matches any.
func (l findingList) marks(name, target, baseline, metric string) []finding {
	var list []finding
	for _, f := range l.byCase[name] {
		sameTarget := f.Target == "" || f.Target == target || f.Target == baseline
		if sameTarget && (f.Metric == "" || metric == "" || f.Metric == metric) && len(list) < maxMarks {
			list = append(list, f)
		}
	}
	return list
}
