package report

import (
	"cmp"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// notes returns the sentences that belong to a row.
func notes(r compare.Row) []string {
	list := warningSentences(r.Warnings)
	if r.Shift == nil {
		return list
	}
	return append([]string{"In its own unit: " + difference(r) + "."}, list...)
}

// maxNotes is the maximum number of notes on single comparisons next to a table.
const maxNotes = 12

// chooseNotes returns at most most notes of the rows of groups, each text once, in order, and the number of omitted
// ones. It prefers notes that concern many rows.
func chooseNotes(list []group, most int) (kept []string, omitted int) {
	rows := map[string]int{}
	var texts []string
	for _, g := range list {
		for _, r := range g.Rows {
			for _, n := range notes(r) {
				if rows[n]++; rows[n] == 1 {
					texts = append(texts, n)
				}
			}
		}
	}
	if len(texts) <= most {
		return texts, 0
	}
	common := slices.Clone(texts)
	slices.SortStableFunc(common, func(a, b string) int { return cmp.Compare(rows[b], rows[a]) })
	common = common[:most]
	for _, n := range texts {
		if slices.Contains(common, n) {
			kept = append(kept, n)
		}
	}
	return kept, len(texts) - len(kept)
}
