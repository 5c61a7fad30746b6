package report

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// scale returns how metrics change with a number in which targets differ.
func scale(c compare.Comparison, names figureNames) doc.Block {
	var primary, exploratory []doc.Element
	for _, s := range c.Slopes[:min(len(c.Slopes), maxRows)] {
		t := chart.Trend{Labels: axisLabels(s.Unit), Line: s.Straight(), Slope: float64(s.Estimate) / s.Per}
		for _, p := range s.Points {
			t.Levels = append(t.Levels, chart.Level{Number: p.Number, Median: float64(p.Median),
				Q1: float64(p.Quartiles[0]), Q3: float64(p.Quartiles[1]),
				Title: fmt.Sprintf("%s: %s", p.Target, format(p.Median, s.Unit))})
		}
		f := names.figure(t, s.Metric+" of "+s.Case+" by "+s.Option, "scale", s.Case, s.Metric, s.Option)
		f.Title, f.Note = s.Case, s.Metric+", "+betterText(s.Better)+", by number of "+s.Option
		f.Caption = s.Sentence
		f.Legend = []doc.Label{{Name: "median of a target, with its quartiles"}}
		if t.Line {
			f.Legend = append(f.Legend, doc.Label{Name: "estimated slope", Style: 1})
		}
		if s.Role == result.Primary {
			primary = append(primary, f)
		} else {
			exploratory = append(exploratory, f)
		}
	}
	return doc.Block{ID: "scale", Title: "Scale", About: "How metrics change with a number in which targets differ: a " +
		"straight line through the runs of each block, and the middle of all these lines, with its interval. Two levels " +
		"give the total change alone.",
		Parts: append(primary, nested(doc.Block{Title: "Exploratory", Level: doc.Detail, Parts: exploratory})...)}
}
