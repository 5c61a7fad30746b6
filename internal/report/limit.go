package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// limitsWords says what a table of limits is, and is not.
const limitsWords = "the most of a link, a volume or a VM that a provider, the lab or you state, next to the median " +
	"of the case that comes nearest. Of a volume and its VM the smaller limit holds. A share above 100 % is credit, a " +
	"cache, or a figure that is not of this machine. No verdict is about limits."

// A limit is a line of their table.
type limit struct{ Target, Resource, Limit, Binding, Case, Metric, Median, Share, Source, Note string }

func limits(c compare.Comparison) []limit {
	var list []limit
	for _, l := range c.Limits {
		row := limit{Target: l.Target, Resource: string(l.Resource), Limit: format(l.Limit, l.Unit), Case: l.Case,
			Metric: l.Metric, Median: format(l.Median, l.Unit), Share: fmt.Sprintf("%.0f %%", 100*l.Share),
			Source: l.Source, Note: l.Note}
		switch {
		case l.BothWays:
			row.Binding = "in each direction"
		case l.Binding:
			row.Binding = "the smaller of volume and VM"
		}
		if row.Source == "" {
			row.Source = "not stated"
		}
		list = append(list, row)
	}
	return list
}

// limits is a table of them.
func (m *markdown) limits(c compare.Comparison) {
	var rows [][]string
	for _, l := range limits(c) {
		rows = append(rows, []string{
			l.Target, l.Resource, strings.Join(nonEmpty(l.Limit, l.Binding), ", "), l.Case + ", " + l.Metric, l.Median,
			l.Share, strings.Join(nonEmpty(l.Source, l.Note), "; ")})
	}
	m.rows("Stated limits", limitsWords, "| target | resource | limit | nearest case | measured | share | from |\n"+
		"|--|--|--:|--|--:|--:|--|\n", rows)
}

func limitSentences(c compare.Comparison) []string {
	var list []string
	for _, l := range c.Limits {
		list = append(list, l.Sentence)
	}
	return list
}
