package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/explain"
)

// A Document is the JSON of knotmeter/comparison/v1: a comparison with its warnings in words, and with the published
// figures and causes, if any, and the identifier of the rules that judge causes.
type Document struct {
	compare.Comparison
	Comparisons []DocumentRow         `json:"comparisons"`
	Warnings    []DocumentWarning     `json:"warnings"`
	Reference   []publication         `json:"reference,omitempty"`
	Causes      []explain.Explanation `json:"causes,omitempty"`
	Rules       string                `json:"rules"`
}

// A DocumentRow is a row with its warnings in words, and with the delta of its comparison, so that readers of single
// rows have it.
type DocumentRow struct {
	compare.Row
	Delta    float64           `json:"delta"`
	Warnings []DocumentWarning `json:"warnings"`
}

// A DocumentWarning is a warning with its sentence.
type DocumentWarning struct {
	compare.Warning
	Text string `json:"text"`
}

func newDocument(c compare.Comparison) Document {
	d := Document{Comparison: c, Comparisons: []DocumentRow{}, Warnings: documentWarnings(c.Warnings),
		Rules: explain.Rules}
	for _, r := range c.Comparisons {
		d.Comparisons = append(d.Comparisons, newDocumentRow(r, c.Delta))
	}
	return d
}

func newDocumentRow(r compare.Row, delta float64) DocumentRow {
	return DocumentRow{r, delta, documentWarnings(r.Warnings)}
}

func documentWarnings(warnings []compare.Warning) []DocumentWarning {
	list := []DocumentWarning{}
	for _, w := range warnings {
		list = append(list, DocumentWarning{w, warningSentence(w)})
	}
	return list
}

// writeJSON writes the comparison as a [Document].
func writeJSON(w io.Writer, in Input) error {
	d := newDocument(in.Comparison)
	d.Reference, d.Causes = publications(in), in.Causes
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("write the comparison as JSON: %w", err)
	}
	return nil
}
