package compare

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An auditErrors maps the id of a run to the audit rules that found an error in it. Such a run is left out although it
// is valid.
type auditErrors map[string][]string

// auditErrorsIn collects the errors that name their runs.
func auditErrorsIn(findings []audit.Finding) auditErrors {
	m := auditErrors{}
	for _, f := range findings {
		if f.Severity != audit.Error {
			continue
		}
		for _, id := range f.Runs {
			if !slices.Contains(m[id], f.Rule) {
				m[id] = append(m[id], f.Rule)
			}
		}
	}
	return m
}

// checkRuns audits each valid run by itself, without the facts of its target.
func checkRuns(e result.Experiment, runs []result.Run) auditErrors {
	var findings []audit.Finding
	for _, r := range runs {
		if of, _ := e.Case(r.Case); r.Valid() {
			findings = append(findings, audit.CheckRun(of, r)...)
		}
	}
	return auditErrorsIn(findings)
}

// auditedRuns indexes the runs of results, and excludes those in which the audit finds an error.
func auditedRuns(r result.Results) *runTable {
	findings := audit.Check(audit.Evidence{Results: r}) // before the table is built, because both need much memory
	t := newRunTable(r.Experiment, r.Runs)
	t.findings, t.auditErrors = findings, auditErrorsIn(findings)
	return t
}

// auditWarnings describes the audit's findings on a row: of paired runs with the number of excluded blocks, otherwise
// with that of excluded runs on each target.
func (t *runTable) auditWarnings(r Row) []Warning {
	if t.paired() {
		return t.findingsOn(r, "", r.Baseline, r.Target)
	}
	both := append(t.tableOf(r.Baseline).findingsOn(r, r.Baseline, r.Baseline),
		t.tableOf(r.Target).findingsOn(r, r.Target, r.Target)...)
	return slices.CompactFunc(both, Warning.Equal)
}

// findingsOn describes the audit's findings on a row on these targets. If shown is empty, it counts the excluded
// blocks, otherwise the excluded runs on the target shown.
func (t *runTable) findingsOn(row Row, shown string, targets ...string) []Warning {
	var list []Warning
	var rules []string
	excludedBlocks := map[int]bool{}
	for block, have := range t.lastAttempt[row.Case] {
		for _, target := range targets {
			r, ok := have[target]
			if ok && r.Valid() && len(t.auditErrors[r.ID]) > 0 {
				excludedBlocks[block] = true
				rules = append(rules, t.auditErrors[r.ID]...)
			}
		}
	}
	if len(excludedBlocks) > 0 {
		w := Warning{Code: BlocksExcluded, Count: len(excludedBlocks), Rules: sortedDistinct(rules)}
		if shown != "" {
			w.Code, w.Targets = RunsExcluded, []string{shown}
		}
		list = append(list, w)
	}
	if rules := t.rulesOn(row.Case, row.Metric, targets); len(rules) > 0 {
		list = append(list, Warning{Code: AuditDoubts, Rules: sortedDistinct(rules)})
	}
	return list
}

// rulesOn lists the rules with findings on a metric of a case on one of the targets, without those whose runs are
// excluded.
func (t *runTable) rulesOn(caseName, metric string, targets []string) []string {
	var rules []string
	for _, f := range t.findings {
		out := f.Severity == audit.Error && len(f.Runs) > 0
		if !out && f.Case == caseName && (f.Metric == "" || f.Metric == metric) &&
			(f.Target == "" || slices.Contains(targets, f.Target)) {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

func sortedDistinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
