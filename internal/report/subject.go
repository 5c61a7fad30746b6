package report

import "github.com/knotmeter/knotmeter/internal/compare"

// subjectSentences returns a sentence for each target and group of cases.
func subjectSentences(c compare.Comparison) []string {
	var list []string
	for _, s := range c.Subjects {
		list = append(list, s.Sentence)
	}
	return list
}
