package report

import "github.com/knotmeter/knotmeter/internal/compare"

// leaksWords says what leaks are.
const leaksWords = "whether anything passed to or from pods that a policy was there for before they were."

// leakSentences say how often something passed that was forbidden.
func leakSentences(c compare.Comparison) []string {
	var list []string
	for _, l := range c.Leaks {
		list = append(list, l.Sentence)
	}
	return list
}
