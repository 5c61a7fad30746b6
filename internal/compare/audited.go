package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// mistakes are the rules of the audit that found an error in a run, by the run's id. Such a run is not
// averaged, though it is valid.
type mistakes map[string][]string

// mistakesIn picks the errors that name their runs.
func mistakesIn(findings []audit.Finding) mistakes {
	m := mistakes{}
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

// mistakesOf looks at each run by itself, as long as nothing is known of its target.
func mistakesOf(e result.Experiment, runs []result.Run) mistakes {
	var findings []audit.Finding
	for _, r := range runs {
		if of, _ := e.Case(r.Case); r.Valid() {
			findings = append(findings, audit.CheckRun(of, r)...)
		}
	}
	return mistakesIn(findings)
}

// audited sorts the runs of results, and leaves out those that the audit finds an error in.
func audited(r result.Results) *trial {
	findings := audit.Check(audit.Evidence{Results: r}) // before the trial: both take much room
	t := newTrial(r.Experiment, r.Runs)
	t.findings, t.mistakes = findings, mistakesIn(findings)
	return t
}

// auditWords say what the audit has to do with a metric of a case on these targets. Without a name that
// the target is shown by, two targets are compared by blocks.
func (t *trial) auditWords(caseName, metric, shown string, targets ...string) []string {
	var words, wrong []string
	left := map[int]bool{}
	for block, have := range t.last[caseName] {
		for _, target := range targets {
			r, ok := have[target]
			if ok && r.Valid() && len(t.mistakes[r.ID]) > 0 {
				left[block] = true
				wrong = append(wrong, t.mistakes[r.ID]...)
			}
		}
	}
	if len(left) > 0 {
		what := unit.Plural(len(left), "block")
		if shown != "" {
			what = fmt.Sprintf("%s on %s", unit.Plural(len(left), "run"), shown)
		}
		words = append(words, fmt.Sprintf("Left out: %s, where the audit found an error (%s).", what, list(wrong)))
	}
	if rules := t.rulesOn(caseName, metric, targets); len(rules) > 0 {
		words = append(words, fmt.Sprintf("The audit doubts this (%s).", list(rules)))
	}
	return words
}

// rulesOn lists the rules with findings on a metric of a case on one of the targets, but for those
// whose runs are left out.
func (t *trial) rulesOn(caseName, metric string, targets []string) []string {
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

// list joins names, sorted and each once.
func list(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
