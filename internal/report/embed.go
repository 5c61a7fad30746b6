package report

import (
	"encoding/json"
	"fmt"
	"html/template"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// mostJSON is the size in bytes up to which a page embeds its comparison, so that all of it stays below 1 MB.
const mostJSON = 250e3

// embeddedComparison is the comparison as JSON; empty if it is too large for a page.
func embeddedComparison(c compare.Comparison) (template.JS, error) {
	if leastSize(c) > mostJSON {
		return "", nil
	}
	// json.Marshal escapes <, > and &, so that no text of a user's can end the script element.
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	if len(text) > mostJSON {
		return "", nil
	}
	return template.JS(text), nil
}

// leastSize is what a comparison takes as JSON at the very least. It spares writing hundreds of megabytes that are
// too many.
func leastSize(c compare.Comparison) int {
	const (
		row  = `{"case":"","metric":"","unit":"","better":"","role":"","target":"","baseline":""}`
		pair = `{"block":1,"baseline":1,"target":1,"change":1}`
	)
	size := 0
	for _, r := range c.Comparisons {
		size += len(row) + len(r.Pairs)*len(pair)
	}
	return size
}
