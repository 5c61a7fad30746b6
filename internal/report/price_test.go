package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
)

// priced returns the built experiment with prices of two of its targets.
func priced(t *testing.T) Input {
	t.Helper()
	in := network(t)
	in.Facts = compare.SetPrices(map[string]compare.Price{
		reporttest.Native: {PerHour: 0.42, Currency: "EUR"}, reporttest.VXLAN: {PerHour: 0.3, Currency: "EUR"},
	}, in.Facts, in.Experiment.Targets)
	c, err := compare.Compare(result.Results{Experiment: in.Experiment, Runs: in.Runs, Facts: in.Facts})
	if err != nil {
		t.Fatal(err)
	}
	in.Comparison = c
	return in
}

// section returns a part of a text: a heading, its first paragraph and its table.
func section(text, heading string) string {
	_, rest, found := strings.Cut(text, heading)
	if !found {
		return ""
	}
	parts := strings.SplitN(rest, "\n\n", 4)
	return heading + strings.Join(parts[:min(3, len(parts))], "\n\n") + "\n"
}

// checkPart compares a part of the terminal text and of the Markdown, each found by its heading, with golden files.
func checkPart(t *testing.T, in Input, file, terminal, markdown string) {
	t.Helper()
	plain := text(t, in, TextOptions{Verbose: true})
	checkLines(t, plain, prose.Columns)
	parts := strings.SplitN(section(plain, terminal), "\n\n", 3)
	golden.Check(t, "testdata/"+file+".txt", strings.Join(parts[:2], "\n\n")+"\n")
	golden.Check(t, "testdata/"+file+".md", section(written(t, formatNamed(t, "markdown"), in), markdown))
}

func TestPricesGolden(t *testing.T) { checkPart(t, priced(t), "price", "PRICE: ", "### Price") }

// TestPricesOnThePage checks that the page has a row for each price, that the prices are among the facts, and that a
// page without prices mentions none.
func TestPricesOnThePage(t *testing.T) {
	in := priced(t)
	page, root := rendered(t, in)
	if rows := sectionRows(root, "price"); rows != len(in.Comparison.Prices) || rows == 0 {
		t.Errorf("%d rows for %d prices", rows, len(in.Comparison.Prices))
	}
	if !strings.Contains(page, ">0.42 EUR/h<") {
		t.Error("the price is not among the facts")
	}
	without := network(t)
	if page, _ := rendered(t, without); strings.Contains(page, `id="price"`) ||
		strings.Contains(text(t, without, TextOptions{}), "PRICE") ||
		strings.Contains(written(t, formatNamed(t, "json"), without), `"prices"`) ||
		strings.Contains(written(t, formatNamed(t, "markdown"), without), "### Price") {
		t.Error("prices are shown that nobody gave")
	}
	if result.FactOf(without.Facts[reporttest.VXLAN], compare.PriceFact) != "" {
		t.Error("the built experiment was changed")
	}
}
