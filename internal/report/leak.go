package report

import "github.com/knotmeter/knotmeter/internal/compare"

// leaksText introduces the leaks.
const leaksText = "whether anything passed to or from pods that a policy was there for before they were."

// leakSentences returns a sentence per case on how often forbidden traffic passed.
func leakSentences(c compare.Comparison) []string {
	var list []string
	for _, l := range c.Leaks {
		list = append(list, l.Sentence)
	}
	return list
}
