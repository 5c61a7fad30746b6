package report

import (
	"cmp"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/doc"
)

// limits returns the limits that are stated for targets.
func limits(in Input) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "limit"}, {Head: "measured"}, {Head: "share"},
		{Head: "from", Words: true}}}
	cases := in.casesByName()
	for _, l := range in.Comparison.Limits {
		u := cases[l.Case].ShownUnit(l.Unit)
		most := doc.Cell{Text: format(l.Limit, u)}
		switch {
		case l.BothWays:
			most.Notes = []string{"in each direction"}
		case l.Binding:
			most.Notes = []string{"the smaller of volume and VM"}
		}
		table.Rows = append(table.Rows, doc.Row{Group: l.Target, Head: string(l.Resource), Cells: []doc.Cell{
			most, {Text: format(l.Median, u), Notes: []string{l.Case + " " + l.Metric}},
			{Text: fmt.Sprintf("%.0f %%", 100*l.Share)},
			{Text: cmp.Or(l.Source, "not stated"), Notes: nonEmpty(l.Note)},
		}})
	}
	return doc.Block{ID: "limits", Title: "Stated limits", Level: doc.Detail, Count: counted(table.Rows, "stated limit"),
		About: "The most of a link, a volume or a VM that a provider, the lab or you state, next to the median of the case " +
			"that comes nearest. Of a volume and its VM the smaller limit holds. A share above 100 % is credit, a cache, or " +
			"a figure that is not of this machine. Limits have no verdict.", Parts: parts(table)}
}
