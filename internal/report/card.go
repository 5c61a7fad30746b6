package report

import (
	"io"
	"slices"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/picture"
)

// writeCard writes the headline and the first rows of the matrix as a picture for links.
func writeCard(w io.Writer, in Input) error {
	in = in.spoken()
	h := newHero(in, groups(in), nil, nil)
	about := ran(in)
	card := picture.Card{Headline: glue(prose.Plain(in.Comparison.Headline)),
		Notes: slices.Concat(sessionChanges(in.Comparison), []string{in.Comparison.Summary}, about[1:min(2, len(about))])}
	for i, note := range card.Notes {
		card.Notes[i] = glue(prose.Plain(note))
	}
	for _, c := range h.Columns {
		card.Columns = append(card.Columns, prose.Plain(c.Short))
	}
	for _, r := range h.Rows {
		row := picture.CardRow{Title: prose.Plain(r.Subject), Sub: prose.Plain(r.Quantity)}
		for _, c := range r.Cells {
			row.Cells = append(row.Cells, picture.CardCell{Value: prose.Plain(c.Value()), Change: glue(prose.Plain(c.Change)),
				Mark: c.Mark})
		}
		card.Rows = append(card.Rows, row)
	}
	return picture.EncodeCard(w, card)
}
