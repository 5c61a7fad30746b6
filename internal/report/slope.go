package report

import (
	"fmt"
	"html/template"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// slopesText introduces the slopes.
const slopesText = "How metrics change with a number in which targets differ: a straight line through the runs of " +
	"each block, and the middle of all these lines, with its interval. Two levels give the total change alone."

// slopeSentences returns the slopes of a role as sentences.
func slopeSentences(c compare.Comparison, role result.Role) []string {
	var list []string
	for _, s := range c.Slopes {
		if s.Role == role {
			list = append(list, s.Sentence)
		}
	}
	return list
}

// A trend is a slope with its figure.
type trend struct {
	File                           string
	Case, Metric, Option, Sentence string
	Axis, Plot                     template.HTML
}

// trends draws the slopes.
func trends(c compare.Comparison) []trend {
	var list []trend
	for i, s := range c.Slopes {
		figure := chart.Trend{Labels: axisLabels(s.Unit), Line: s.Straight(), Slope: float64(s.Estimate) / s.Per,
			Caption: chart.Caption{ID: "s" + strconv.Itoa(i+1), Title: s.Metric + " of " + s.Case + " by " + s.Option}}
		for _, p := range s.Points {
			figure.Levels = append(figure.Levels, chart.Level{Number: p.Number, Median: float64(p.Median),
				Q1: float64(p.Quartiles[0]), Q3: float64(p.Quartiles[1]),
				Title: fmt.Sprintf("%s: %s", p.Target, format(p.Median, s.Unit))})
		}
		list = append(list, trend{"", s.Case, s.Metric + ", " + betterText(s.Better), s.Option, s.Sentence,
			figure.YAxis(), figure.Plot()})
	}
	return list
}
