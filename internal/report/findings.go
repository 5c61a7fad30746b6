package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
)

// A finding is what the audit found, with a number by which the numbers that it touches refer to it.
type finding struct {
	audit.Finding
	Number int
	Where  string // case, target and metric, and file or runs
}

// ID is that of the finding's element.
func (f finding) ID() string { return fmt.Sprintf("finding-%d", f.Number) }

// Label is what a screen reader says of the mark at a number, which leads to the finding.
func (f finding) Label() string { return fmt.Sprintf("%s %d: %s", f.Severity, f.Number, f.Rule) }

// Sign is a mark of one column for a severity, so that it does not rest on colour.
func (f finding) Sign() string {
	switch f.Severity {
	case audit.Error:
		return "✖"
	case audit.Warning:
		return "▲"
	}
	return "●"
}

// A findingList is the findings, worst first.
type findingList struct {
	capped[finding]
	errors int
	byCase map[string][]finding
}

// mostMarks is how many findings are marked at one number; they all are in the list.
const mostMarks = 2

func newFindings(c compare.Comparison) findingList {
	order := slices.Clone(c.Findings)
	slices.SortStableFunc(order, func(a, b audit.Finding) int {
		return cmp.Compare(severityRank(a.Severity), severityRank(b.Severity))
	})
	list := findingList{byCase: map[string][]finding{}}
	var all []finding
	for i, f := range order {
		all = append(all, finding{Finding: f, Number: i + 1, Where: findingPlace(f)})
		if f.Severity == audit.Error {
			list.errors++
		}
	}
	list.capped = first(all)
	for _, f := range list.Rows {
		if f.Case != "" {
			list.byCase[f.Case] = append(list.byCase[f.Case], f)
		}
	}
	return list
}

func severityRank(s audit.Severity) int {
	return slices.Index(audit.Severities, s) & 3 // an unknown one is last
}

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

// Worst is a sentence for the first screen if there are errors, else nothing.
func (l findingList) Worst() string {
	switch l.errors {
	case 0:
		return ""
	case 1:
		return "✖ One number of this experiment cannot be what it says it is."
	}
	return fmt.Sprintf("✖ %d findings say that numbers of this experiment cannot be what they say they are.", l.errors)
}

// marks are those of the findings that touch a number: of its case, and of no other target or metric.
// An empty metric is that of any.
func (l findingList) marks(name, target, baseline, metric string) []finding {
	var list []finding
	for _, f := range l.byCase[name] {
		of := f.Target == "" || f.Target == target || f.Target == baseline
		if of && (f.Metric == "" || metric == "" || f.Metric == metric) && len(list) < mostMarks {
			list = append(list, f)
		}
	}
	return list
}
