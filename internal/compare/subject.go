package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A GroupOutcome is the outcome of a target in a group of cases, such as the calls on Deployments, by their verdicts
// alone.
type GroupOutcome struct {
	Name     string `json:"name"` // the group of the cases
	Target   string `json:"target"`
	Baseline string `json:"baseline"`
	Sentence string `json:"sentence"`
}

// subjects returns the outcomes of groups with at least two compared cases, in the order of their first rows. In a
// group with primary cases the others are left out.
func subjects(c Comparison, cases []result.Case) []GroupOutcome {
	type key struct{ name, target, baseline string }
	planned := result.CasesByName(cases)
	var order []key
	rows := map[key][]Row{}
	for _, r := range c.Comparisons { // primaries come first
		of := planned[r.Case]
		at := key{of.Words.Group, r.Target, r.Baseline}
		if at.name == "" || r.Metric != of.Metric || c.Paired && r.Baseline != c.Baseline {
			continue
		}
		before := rows[at]
		switch {
		case len(before) == 0:
			order = append(order, at)
		case before[0].Role != r.Role:
			continue
		}
		rows[at] = append(before, r)
	}
	var list []GroupOutcome
	for _, at := range order {
		if of := rows[at]; len(of) > 1 {
			list = append(list, GroupOutcome{at.name, at.target, at.baseline, subjectSentence(at.name, of, planned, c.Delta)})
		}
	}
	return list
}

// subjectSentence lists the cases in which a target is faster, slower, equivalent and undecided.
func subjectSentence(name string, rows []Row, planned map[string]result.Case, delta float64) string {
	worse, better := "worse", "better"
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Unit != unit.Second && r.Unit != unit.PerSecond }) {
		worse, better = "slower", "faster"
	}
	first := rows[0]
	outcomes := []struct {
		first, further string
		is             func(Row) bool
	}{
		{better + " than " + first.Baseline, better, func(r Row) bool {
			return r.Verdict == Different && r.Direction == BetterThan
		}},
		{worse + " than " + first.Baseline, worse, func(r Row) bool {
			return r.Verdict == Different && r.Direction != BetterThan
		}},
		{"equivalent to " + first.Baseline + " within " + marginText(delta), "equivalent within " + marginText(delta),
			func(r Row) bool { return r.Verdict == Equivalent }},
		{"undecided against " + first.Baseline, "undecided", func(r Row) bool { return r.Verdict == Undecided }},
	}
	var clauses []string
	for _, o := range outcomes {
		var members []string
		for _, r := range rows {
			if o.is(r) {
				members = append(members, planned[r.Case].Words.Member)
			}
		}
		words := o.first
		if len(clauses) > 0 {
			words = o.further
		}
		if len(members) > 0 {
			clauses = append(clauses, words+" in "+prose.Enumerate(members))
		}
	}
	text := fmt.Sprintf("%s: %s is %s.", name, first.Target, strings.Join(clauses, "; "))
	if first.Role != result.Primary {
		return "Exploratory: " + text
	}
	return text
}
