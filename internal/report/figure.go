package report

import (
	"fmt"
	"html/template"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A plot is a drawing with the labels of its values, which stand to its left.
type plot interface {
	YAxis() template.HTML
	Plot(chart.Caption) template.HTML
}

// figure returns a plot as a figure with a file of its own, whose name is made of parts. Screen readers read the title.
func (n figureNames) figure(p plot, title string, parts ...string) doc.Figure {
	name := n.unique(parts...)
	return doc.Figure{Name: name, Axis: p.YAxis(), Plot: p.Plot(chart.Caption{ID: "figure-" + name, Title: title})}
}

// perCase returns what draw returns for the first maxCases cases: that of primary cases, and the rest folded.
func (b *builder) perCase(draw func(caseResult) []doc.Element) []doc.Element {
	var list, exploratory []doc.Element
	cases := 0
	for _, m := range b.results[:min(len(b.results), maxCases)] {
		switch drawn := draw(m); {
		case m.Role == result.Primary:
			list = append(list, drawn...)
		case len(drawn) > 0:
			exploratory, cases = append(exploratory, drawn...), cases+1
		}
	}
	if cases > 0 {
		list = append(list, doc.Block{Title: fmt.Sprintf("Exploratory cases (%d)", cases), Level: doc.Data,
			Parts: exploratory})
	}
	if len(list) > 0 && len(b.results) > maxCases {
		list = append(list, faint(fmt.Sprintf("The first %d of %d cases have figures in this page.",
			maxCases, len(b.results)))...)
	}
	return list
}

// nested returns the blocks that have parts, as parts of another.
func nested(blocks ...doc.Block) []doc.Element {
	var list []doc.Element
	for _, b := range present(blocks...) {
		list = append(list, b)
	}
	return list
}

// links returns the marks of findings next to what they are about.
func links(findings []finding) []doc.Hyperlink {
	var list []doc.Hyperlink
	for _, f := range findings {
		list = append(list, doc.Hyperlink{ID: f.ID(), Sign: fmt.Sprint(f.Sign(), f.Number), Label: f.Label()})
	}
	return list
}

// targetLabels returns the names of targets with the styles of their lines or bars.
func targetLabels(names []string, bars bool) []doc.Label {
	var list []doc.Label
	for i, name := range names {
		list = append(list, doc.Label{Name: name, Style: chart.StyleNumber(i), Bars: bars})
	}
	return list
}
