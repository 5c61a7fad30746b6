package report

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// objectives returns Kubernetes' service level objectives with the measurements of them.
func objectives(in Input) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "objective"}, {Head: "requests above"}, {Head: "blocks above"},
		{Head: "so it is", Words: true}}}
	counts, few := map[compare.Attainment]int{}, false
	var official []string
	for _, o := range in.Comparison.Objectives {
		counts[o.Outcome]++
		few = few || o.Outcome == compare.TooFew
		table.Rows = append(table.Rows, doc.Row{Group: o.Case, Head: o.Target, Cells: []doc.Cell{
			{Text: "p99 ≤ " + unit.Format(o.Limit, unit.Second)}, {Text: fmt.Sprintf("%d of %d", o.Above, o.Samples)},
			{Text: fmt.Sprintf("%d of %d", o.Violated, o.Blocks)}, {Text: string(o.Outcome)},
		}})
		if o.Words != "" {
			official = append(official, fmt.Sprintf("%s (%s)", o.Words, o.Source))
		}
	}
	b := doc.Block{ID: "objectives", Title: "Objectives", Level: doc.Detail, Count: counted(table.Rows, "objective"),
		About: "Kubernetes' service level objectives (SIG Scalability) next to the latencies measured here. The objectives " +
			"are for clusters of thousands of nodes, and every healthy small cluster meets them. They limit the server's " +
			"own time over a day; these latencies are what a client saw in these runs. Objectives have no verdict.",
		Parts: parts(table)}
	if len(b.Parts) == 0 {
		return b
	}
	summary := fmt.Sprintf("%d met, %d not met, %d with too few blocks.", counts[compare.Met], counts[compare.NotMet],
		counts[compare.TooFew])
	if few {
		summary += fmt.Sprintf(" To meet one takes %d blocks without a request above its limit.", compare.BlocksToMeet())
	}
	b.Parts = append([]doc.Element{doc.Paragraph{Text: summary}}, b.Parts...)
	if list := distinct(official); len(list) > 0 {
		b.Parts = append(b.Parts, doc.Paragraph{Text: "Official wording: " + strings.Join(list, "; ") + ".", Tone: doc.Faint})
	}
	return b
}
