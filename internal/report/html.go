package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
)

//go:embed templates/*.html
var templates embed.FS

// The styles and scripts of pages. Those of uPlot are only in pages with series over time.
var (
	//go:embed templates/style.css
	style string
	//go:embed templates/uplot/uPlot.min.css
	plotStyle string
	//go:embed templates/uplot/uPlot.iife.min.js
	plotScript string
	//go:embed templates/uplot/LICENSE
	plotLicence string
	//go:embed templates/zoom.js
	zoomScript string
	//go:embed templates/copy.js
	copyScript string
)

// writeHTML writes the report as one self-contained page, without network access, with inline figures. Scripts copy
// figures and make series over time zoomable; without them the page shows the same content. The page's content security
// policy names the scripts by hash. The JSON of the comparison is in the script element with id "comparison". Long
// lists are truncated, with a note.
func writeHTML(w io.Writer, in Input) error {
	functions := template.FuncMap{
		"typeset": prose.Typeset, "section": html.Block, "inner": html.Inner,
	}
	t, err := template.New("").Funcs(functions).ParseFS(templates, "templates/*.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	p := newPage(in)
	p.addStyleAndScripts()
	if p.JSON, p.JSONRest, err = embeddedComparison(in.Comparison); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "report.html", p); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	return write(w, b.String())
}

// typesetUnbroken is typeset for a number and its unit, which stay on one line.
func typesetUnbroken(s string) string { return strings.ReplaceAll(prose.Typeset(s), " ", "\u00a0") }

// addStyleAndScripts adds our styles and scripts, and uPlot if there are series. The page's policy names scripts by
// hash, and allows data: images, which the copying of figures needs.
func (p *page) addStyleAndScripts() {
	p.Style = template.CSS(chart.Style() + style)
	scripts := []string{copyScript}
	if p.Zoomable = slices.ContainsFunc(p.Sections, zoomable); p.Zoomable {
		p.Style += template.CSS(plotStyle)
		p.Scripts = []template.HTML{template.HTML("<!-- uPlot: " + plotLicence + "-->")}
		scripts = append(scripts, plotScript, zoomScript)
	}
	p.Policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"script-src"
	for _, script := range scripts {
		hash := sha256.Sum256([]byte(script))
		p.Policy += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
		// The hash covers these bytes, so nothing may be escaped in them.
		p.Scripts = append(p.Scripts, template.HTML("<script>"+script+"</script>"))
	}
}

// zoomable reports whether a block has a figure that a script draws.
func zoomable(b doc.Block) bool {
	return slices.ContainsFunc(b.Parts, func(e doc.Element) bool {
		f, drawn := e.(doc.Figure)
		inner, _ := e.(doc.Block)
		return drawn && f.Data != "" || zoomable(inner)
	})
}

// embeddedComparison returns the comparison as JSON, with lists truncated to maxRows, and a note about that, which is
// also among the warnings of the JSON.
func embeddedComparison(c compare.Comparison) (template.JS, string, error) {
	shown, all := 0, 0
	c.Comparisons = truncateRows(c.Comparisons, &shown, &all)
	c.Medians, c.Groups, c.Boxes = truncateRows(c.Medians, &shown, &all), truncateRows(c.Groups, &shown, &all),
		truncateRows(c.Boxes, &shown, &all)
	c.Findings, c.NotMeasured = truncateRows(c.Findings, &shown, &all), truncateRows(c.NotMeasured, &shown, &all)
	c.Slopes, c.Prices = truncateRows(c.Slopes, &shown, &all), truncateRows(c.Prices, &shown, &all)
	c.Limits = truncateRows(c.Limits, &shown, &all)
	c.Objectives, c.Leaks = truncateRows(c.Objectives, &shown, &all), truncateRows(c.Leaks, &shown, &all)
	note := ""
	if shown < all {
		abridged := compare.Warning{Code: compare.DocumentIsAbridged, Count: shown, Of: all, Needed: maxRows}
		note = warningSentence(abridged)
		c.Warnings = append(slices.Clone(c.Warnings), abridged)
	}
	// json.Marshal escapes <, > and &, so that no text of a user can end the script element.
	text, err := json.Marshal(newDocument(c))
	if err != nil {
		return "", "", fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	return template.JS(text), note, nil
}

// truncateRows returns the first maxRows of a list, and adds its number of rows to shown and all.
func truncateRows[T any](list []T, shown, all *int) []T {
	kept := list[:min(len(list), maxRows)]
	*shown, *all = *shown+len(kept), *all+len(list)
	return kept
}
