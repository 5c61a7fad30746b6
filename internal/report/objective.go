package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// objectivesWords says what the objectives are, and are not.
const objectivesWords = "Kubernetes' own service level objectives (SIG Scalability) beside the latencies here, as a floor: they are meant for clusters of " +
	"thousands of nodes, and every healthy small one keeps them. They are about the server's own time over a day; these latencies are a client's, of these " +
	"runs. No verdict is about them."

// An objective is a line of their table.
type objective struct{ Case, Target, Limit, Above, Outcome string }

func objectives(c compare.Comparison) []objective {
	var list []objective
	for _, o := range c.Objectives {
		list = append(list, objective{
			o.Case, o.Target, "p99 ≤ " + unit.Format(o.Limit, unit.Second), strconv.Itoa(o.Above) + " of " + strconv.Itoa(o.Samples), string(o.Outcome),
		})
	}
	return list
}

// official are the objectives' own words, each once, with where they stand.
func official(c compare.Comparison) []string {
	var list []string
	for _, o := range c.Objectives {
		if text := fmt.Sprintf("%s (%s)", o.Words, o.Source); o.Words != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// objectives is a table of them.
func (m *markdown) objectives(c compare.Comparison) {
	list := objectives(c)
	if len(list) == 0 {
		return
	}
	m.line("### Objectives")
	m.line("%s", escapeMarkdown(objectivesWords))
	if !m.put("| case | target | objective | longer | |\n|--|--|--:|--:|--|\n") {
		return
	}
	for _, o := range list {
		m.cells([]string{o.Case, o.Target, o.Limit, o.Above, o.Outcome})
	}
	m.b.WriteString("\n")
	m.list("Official wording", official(c))
}

// objectives writes them below the table: one line where all are met, else those that are not.
func (t *textReport) objectives(c compare.Comparison) {
	if len(c.Objectives) == 0 {
		return
	}
	t.paragraph("OBJECTIVES: ", "  ", objectivesWords)
	t.line("")
	counts := map[compare.Attainment]int{}
	for _, o := range c.Objectives {
		counts[o.Outcome]++
	}
	t.paragraph("  ", "    ", fmt.Sprintf("%d met, %d not met, %d with too few samples.", counts[compare.Met], counts[compare.NotMet], counts[compare.TooFew]))
	for _, o := range c.Objectives {
		if o.Outcome != compare.Met || t.options.All {
			t.paragraph("  ", "    ", o.Sentence)
		}
	}
	for _, text := range official(c) {
		t.paragraph("  official: ", "    ", text)
	}
	t.line("")
}
