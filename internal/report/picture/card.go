package picture

import (
	"image"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// A Card is the answer as a picture of 1200 by 630 pixels, the size that links have in chats and feeds.
type Card struct {
	Headline string
	Columns  []string // the targets
	Rows     []CardRow
	Notes    []string // below: counts and scope
}

// A CardRow is a case in plain words with a cell for each target.
type CardRow struct {
	Title, Sub string
	Cells      []CardCell
}

// A CardCell is a value, and how it differs from the baseline's.
type CardCell struct {
	Value, Change string
	Mark          chart.Mark // empty where nothing is compared
}

// Sizes of a card, in points.
const (
	cardWidth  = 600
	cardHeight = 315
	cardEdge   = 26
	cardTitle  = 168 // of the column of cases
	cardRow    = 36
)

// What a card has room for.
const (
	mostCardRows    = 4
	mostCardColumns = 4
)

// EncodeCard writes a card as a PNG. Rows and columns beyond those that there is room for are not drawn.
func EncodeCard(w io.Writer, c Card) error {
	fonts, err := newFonts()
	if err != nil {
		return err
	}
	d := &cardPage{Card: c, canvas: canvas{fonts: fonts}}
	return encode(w, d.draw())
}

type cardPage struct {
	Card
	canvas
}

func (d *cardPage) draw() *image.RGBA {
	d.box(0, 0, cardWidth, 5, better)
	d.text("KNOTMETER", point{cardEdge, 28}, left, smallStyle, better)
	y := 32.0
	for _, line := range d.lines(d.Headline, headlineStyle, cardWidth-2*cardEdge, 4) {
		y += 22
		d.text(line, point{cardEdge, y}, left, headlineStyle, ink)
	}
	y += 24
	columns := d.Columns[:min(len(d.Columns), mostCardColumns)]
	for i, name := range columns {
		d.text(fit(d.fonts[strongStyle], name, d.column()-10), point{d.x(i), y}, left, strongStyle, muted)
	}
	y += 7
	for _, row := range d.Rows[:min(len(d.Rows), mostCardRows)] {
		if y+cardRow > cardHeight-30 {
			break
		}
		d.row(row, y, len(columns))
		y += cardRow
	}
	d.text(fit(d.fonts[smallStyle], strings.Join(d.Notes, " · "), cardWidth-2*cardEdge),
		point{cardEdge, cardHeight - 14}, left, smallStyle, muted)
	return d.image(cardWidth, cardHeight)
}

// column is the width of a target's column.
func (d *cardPage) column() float64 {
	return (cardWidth - 2*cardEdge - cardTitle) / float64(max(1, min(len(d.Columns), mostCardColumns)))
}

func (d *cardPage) x(column int) float64 { return cardEdge + cardTitle + float64(column)*d.column() }

func (d *cardPage) row(r CardRow, y float64, columns int) {
	d.box(cardEdge, y, cardWidth-cardEdge, y+0.5, rule)
	d.text(fit(d.fonts[strongStyle], r.Sub, cardTitle-12), point{cardEdge, y + 15}, left, strongStyle, ink)
	d.text(fit(d.fonts[smallStyle], r.Title, cardTitle-12), point{cardEdge, y + 29}, left, smallStyle, muted)
	for i, c := range r.Cells[:min(len(r.Cells), columns)] {
		d.text(fit(d.fonts[strongStyle], c.Value, d.column()-10), point{d.x(i), y + 15}, left, strongStyle, ink)
		if c.Mark == "" {
			continue
		}
		d.mark(c.Mark, point{d.x(i) + 5, y + 25}, markSize)
		change := fit(d.fonts[plainStyle], c.Change, d.column()-24)
		d.text(change, point{d.x(i) + 15, y + 29.5}, left, plainStyle, shadeOf(c.Mark))
	}
}
