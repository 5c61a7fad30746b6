package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

// writeJSON writes the comparison as a [Document], row by row, because it may be large.
func writeJSON(w io.Writer, in Input) error {
	c := in.Comparison
	rows := c.Comparisons
	c.Comparisons = nil
	d := newDocument(c)
	d.Reference, d.Causes = publications(in), in.Causes
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	// This line occurs once: texts in JSON contain no line breaks.
	const place = "\n  \"comparisons\": ["
	head, tail, found := bytes.Cut(text, []byte(place+"]"))
	if !found {
		return errors.New("encode the comparison as JSON: it has no list of comparisons")
	}
	out := bufio.NewWriter(w)
	out.Write(head) // out keeps an error until Flush
	out.WriteString(place)
	for i, r := range rows {
		line, err := json.MarshalIndent(newDocumentRow(r, c.Delta), "    ", "  ")
		if err != nil {
			return fmt.Errorf("encode the comparison as JSON: %w", err)
		}
		out.WriteString(map[bool]string{true: "\n    ", false: ",\n    "}[i == 0])
		out.Write(line)
	}
	if len(rows) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]")
	out.Write(tail)
	out.WriteString("\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
