package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/markdown"
	"github.com/knotmeter/knotmeter/internal/doc/text"
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

// checkSection compares a section in text and in Markdown with golden files, and checks that the reports have it, and
// that one without its data does not.
func checkSection(t *testing.T, in Input, section func(Input) doc.Block) {
	t.Helper()
	b := section(in)
	terminal, comment := text.NewTerminal(0), markdown.Comment{}
	terminal.Level = doc.Detail
	terminal.Block(b)
	comment.Block(b)
	for name, got := range map[string]string{"txt": terminal.String(), "md": comment.String()} {
		golden.Check(t, "testdata/"+b.ID+"."+name, got)
	}
	plain := textOf(t, in, TextOptions{Verbose: true})
	checkLines(t, plain, prose.Columns)
	if !strings.Contains(plain, terminal.String()) ||
		!strings.Contains(written(t, formatNamed(t, "markdown"), in), strings.TrimSpace(comment.String())) {
		t.Errorf("%s is not in each report", b.Title)
	}
	id := `<section id="` + b.ID + `"`
	if !strings.Contains(inFormat(t, "html", in), id) || strings.Contains(inFormat(t, "html", small()), id) ||
		len(section(small()).Parts) > 0 {
		t.Errorf("%s is not on the page, or it is without its data", b.Title)
	}
}

func TestPricesGolden(t *testing.T) { checkSection(t, priced(t), prices) }

// TestPricesOnThePage checks that the page has a row for each price, that the prices are among the facts, and that a
// page without prices mentions none.
func TestPricesOnThePage(t *testing.T) {
	in := priced(t)
	page, root := rendered(t, in)
	if rows := sectionRows(root, "price"); rows != len(in.Comparison.Prices) || rows == 0 {
		t.Errorf("%d rows for %d prices", rows, len(in.Comparison.Prices))
	}
	if !strings.Contains(page, ">0.42 EUR/<wbr>h<") {
		t.Error("the price is not among the facts")
	}
	without := network(t)
	if page, _ := rendered(t, without); strings.Contains(page, `id="price"`) ||
		strings.Contains(textOf(t, without, TextOptions{}), "PRICE") ||
		strings.Contains(written(t, formatNamed(t, "json"), without), `"prices"`) ||
		strings.Contains(written(t, formatNamed(t, "markdown"), without), "### Price") {
		t.Error("prices are shown that nobody gave")
	}
	if result.FactOf(without.Facts[reporttest.VXLAN], compare.PriceFact) != "" {
		t.Error("the built experiment was changed")
	}
}
