package report

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/doc"
)

// leaks returns how often traffic passed that a policy forbids.
func leaks(in Input) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "trials"}, {Head: "blocks"}, {Head: "share of blocks"}}}
	for _, l := range in.Comparison.Leaks {
		share := doc.Cell{Text: fmt.Sprintf("below %.3g %%", 100*l.Hi)}
		if l.Leaked > 0 {
			share = doc.Cell{Text: fmt.Sprintf("%.3g %%", 100*float64(l.LeakedBlocks)/float64(l.Blocks)),
				Parts: []string{fmt.Sprintf("[%.3g, %.3g]", 100*l.Lo, 100*l.Hi)}}
		}
		table.Rows = append(table.Rows, doc.Row{Group: l.Case, Head: l.Target, Cells: []doc.Cell{
			{Text: fmt.Sprintf("%d of %d", l.Leaked, l.Trials)},
			{Text: fmt.Sprintf("%d of %d", l.LeakedBlocks, l.Blocks)}, share,
		}})
	}
	return doc.Block{ID: "leaks", Title: "Passed though forbidden",
		Count: counted(table.Rows, "count of forbidden traffic"),
		About: "Trials in which traffic passed to or from a pod although a network policy that was there before the pod " +
			"forbids it. Trials of a block are not independent, so the 95 % interval counts blocks.", Parts: parts(table)}
}
