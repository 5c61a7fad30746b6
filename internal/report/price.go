package report

import (
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// prices returns the cost of a unit of performance on each target with a price.
func prices(in Input) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "costs"}, {Head: "baseline costs"}, {Head: "ratio"}}}
	for _, p := range in.Comparison.Prices {
		per := "/h for each " + p.Per
		if p.Currency != "" {
			per = p.Currency + per
		}
		table.Rows = append(table.Rows, doc.Row{
			Group: p.Case + ", " + p.Metric + ": " + per, Head: p.Target + " against " + p.Baseline,
			Cells: []doc.Cell{
				{Text: threeDigits(float64(p.TargetPrice))}, {Text: threeDigits(float64(p.BaselinePrice))},
				{Text: "× " + threeDigits(float64(p.Ratio)), Parts: []string{ratios(p.CI), "at " + stats.Percent(p.Level)}},
			}})
	}
	return doc.Block{ID: "price", Title: "Price", Count: counted(table.Rows, "price"),
		About: "Cost of a unit of performance, from the prices that you gave: price per hour divided by the median. The " +
			"ratio is that of the prices divided by that of the performance, with the interval of the comparison; below 1 " +
			"the target is cheaper for what it does. Prices have no verdict.", Parts: parts(table)}
}

func threeDigits(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// ratios formats an interval of ratios.
func ratios(i compare.Interval) string {
	if !i.Bounded() {
		return "without bounds"
	}
	return fmt.Sprintf("[%s, %s]", threeDigits(i.Lo), threeDigits(i.Hi))
}
