package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// limitsText introduces the stated limits.
const limitsText = "the most of a link, a volume or a VM that a provider, the lab or you state, next to the median " +
	"of the case that comes nearest. Of a volume and its VM the smaller limit holds. A share above 100 % is credit, a " +
	"cache, or a figure that is not of this machine. No verdict is about limits."

// A limit is a row of the table of stated limits.
type limit struct{ Target, Resource, Limit, Binding, Case, Metric, Median, Share, Source, Note string }

// limits returns the rows of the table.
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

// limits writes the table.
func (m *markdown) limits(c compare.Comparison) {
	var rows [][]string
	for _, l := range limits(c) {
		rows = append(rows, []string{
			l.Target, l.Resource, strings.Join(nonEmpty(l.Limit, l.Binding), ", "), l.Case + ", " + l.Metric, l.Median,
			l.Share, strings.Join(nonEmpty(l.Source, l.Note), "; ")})
	}
	m.rows("Stated limits", limitsText, "| target | resource | limit | nearest case | measured | share | from |\n"+
		"|--|--|--:|--|--:|--:|--|\n", rows)
}

// limitSentences returns the limits as sentences.
func limitSentences(c compare.Comparison) []string {
	var list []string
	for _, l := range c.Limits {
		list = append(list, l.Sentence)
	}
	return list
}
