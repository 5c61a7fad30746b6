package report

import (
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// pricesText introduces the prices.
const pricesText = "what a unit of performance costs, by the prices of --price; no verdict is about them."

// A price is a row of the table of prices: the cost of a unit of performance on a target.
type price struct{ Case, Metric, Target, Baseline, Price, BaselinePrice, Ratio, Interval string }

// prices returns the rows of the table.
func prices(c compare.Comparison) []price {
	var list []price
	for _, p := range c.Prices {
		unit := "/h for each " + p.Per
		if p.Currency != "" {
			unit = " " + p.Currency + unit
		}
		list = append(list, price{
			p.Case, p.Metric, p.Target, p.Baseline, threeDigits(float64(p.TargetPrice)) + unit,
			threeDigits(float64(p.BaselinePrice)) + unit,
			"× " + threeDigits(float64(p.Ratio)), ratios(p.CI) + " at " + stats.Percent(p.Level),
		})
	}
	return list
}

func threeDigits(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// ratios formats an interval of ratios.
func ratios(i compare.Interval) string {
	if !i.Bounded() {
		return "without bounds"
	}
	return fmt.Sprintf("[%s, %s]", threeDigits(i.Lo), threeDigits(i.Hi))
}

// prices writes the table.
func (m *markdown) prices(c compare.Comparison) {
	var rows [][]string
	for _, p := range prices(c) {
		rows = append(rows, []string{
			p.Case + ", " + p.Metric, p.Target, p.Price, p.Baseline, p.BaselinePrice, p.Ratio, p.Interval})
	}
	m.rows("Price", pricesText,
		"| case | target | costs | baseline | costs | ratio | interval |\n|--|--|--:|--|--:|--:|--:|\n", rows)
}

// priceSentences returns the prices as sentences.
func priceSentences(c compare.Comparison) []string {
	var list []string
	for _, p := range c.Prices {
		list = append(list, p.Sentence)
	}
	return list
}
