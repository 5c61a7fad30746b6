package report

import (
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// objectivesText introduces the objectives.
const objectivesText = "Kubernetes' own service level objectives (SIG Scalability) beside the latencies here, as a " +
	"floor: they are meant for clusters of thousands of nodes, and every healthy small one keeps them. They are about " +
	"the server's own time over a day; these latencies are a client's, of these runs. No verdict is about them."

// An objective is a row of the table of objectives.
type objective struct{ Case, Target, Limit, Above, Violated, Outcome string }

// objectives returns the rows of the table.
func objectives(c compare.Comparison) []objective {
	var list []objective
	for _, o := range c.Objectives {
		list = append(list, objective{
			o.Case, o.Target, "p99 ≤ " + unit.Format(o.Limit, unit.Second),
			strconv.Itoa(o.Above) + " of " + strconv.Itoa(o.Samples),
			strconv.Itoa(o.Violated) + " of " + strconv.Itoa(o.Blocks), string(o.Outcome),
		})
	}
	return list
}

// official returns the official wording of the objectives, each once, with its source.
func official(c compare.Comparison) []string {
	var list []string
	for _, o := range c.Objectives {
		if o.Words != "" {
			list = append(list, fmt.Sprintf("%s (%s)", o.Words, o.Source))
		}
	}
	return distinct(list)
}

// objectives writes the table.
func (m *markdown) objectives(c compare.Comparison) {
	var rows [][]string
	for _, o := range objectives(c) {
		rows = append(rows, []string{o.Case, o.Target, o.Limit, o.Above, o.Violated, o.Outcome})
	}
	m.rows("Objectives", objectivesText, "| case | target | objective | requests above | blocks above | |\n"+
		"|--|--|--:|--:|--:|--|\n", rows)
	m.list("Official wording", official(c))
}

// objectiveLines returns the numbers of objectives by outcome, the sentences of those that are not met, a line about
// those with too few blocks, and the official wording.
func objectiveLines(c compare.Comparison) []string {
	if len(c.Objectives) == 0 {
		return nil
	}
	counts, few := map[compare.Attainment]int{}, []string{}
	for _, o := range c.Objectives {
		counts[o.Outcome]++
		if o.Outcome == compare.TooFew {
			name := o.Case
			if len(c.Targets) != 1 {
				name += " on " + o.Target
			}
			few = append(few, fmt.Sprintf("%s (%d of %d requests in %s above %s)",
				name, o.Above, o.Samples, unit.Plural(o.Blocks, "block"), unit.Format(o.Limit, unit.Second)))
		}
	}
	lines := []string{fmt.Sprintf("%d met, %d not met, %d with too few blocks.",
		counts[compare.Met], counts[compare.NotMet], counts[compare.TooFew])}
	for _, o := range c.Objectives {
		if o.Outcome == compare.NotMet {
			lines = append(lines, o.Sentence)
		}
	}
	if len(few) > 0 {
		lines = append(lines, fmt.Sprintf("Too few blocks; to meet one takes %d without a request above its limit: %s.",
			compare.BlocksToMeet(), listPlaces(few)))
	}
	for _, text := range official(c) {
		lines = append(lines, "official: "+text)
	}
	return lines
}
