package report

import "github.com/knotmeter/knotmeter/internal/compare"

// subjectSentences say how each target came out in each group of cases.
func subjectSentences(c compare.Comparison) []string {
	var list []string
	for _, s := range c.Subjects {
		list = append(list, s.Sentence)
	}
	return list
}
