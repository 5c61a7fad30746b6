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
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
)

//go:embed templates/*.html
var templates embed.FS

// What is embedded in pages, the zoomable plot's for those alone that have series over time.
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

// writeHTML writes the report as one page that needs nothing else: no network, its figures inline. Its scripts copy
// figures and make series over time zoomable; without them it shows the same, and its policy names them by hashes.
// The comparison's JSON is in the script element with id "comparison". Of long lists it has the beginning, and says so.
func writeHTML(w io.Writer, in Input) error {
	functions := template.FuncMap{
		"percent": func(fraction float64) float64 { return fraction * 100 },
		"glue":    glue, "sharp": sharp, "share": shareText,
		"soft": soft, "word": word, "class": class, "gateClass": gateClass,
		"change":   func(r compare.Row) string { return change(r.Change) },
		"interval": func(r compare.Row) string { return interval(r.CI) },
	}
	t, err := template.New("").Funcs(functions).ParseFS(templates, "templates/*.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	p := newPage(in.spoken())
	p.dress()
	if p.JSON, p.JSONRest, err = embeddedComparison(in.Comparison); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "report.html", p); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	return write(w, b.String())
}

// glue keeps a percent sign on the line of its number, and gives numbers below 0 a real minus sign.
func glue(s string) string {
	return strings.ReplaceAll(minus.ReplaceAllString(s, "${1}−$2"), " %", "\u00a0%")
}

// sharp is glue for a number and its unit, which stay on one line.
func sharp(s string) string { return whole(glue(s)) }

// minus is a hyphen before a number that is no range.
var minus = regexp.MustCompile(`(^|[\s(\[])-([0-9∞])`)

// separators are where a long name may be broken.
const separators = ":+/_-"

// soft escapes a name and lets it be broken behind separators.
func soft(name string) template.HTML {
	var b strings.Builder
	for {
		i := strings.IndexAny(name, separators)
		if i < 0 || i == len(name)-1 {
			b.WriteString(template.HTMLEscapeString(name))
			return template.HTML(b.String())
		}
		b.WriteString(template.HTMLEscapeString(name[:i+1]) + "<wbr>")
		name = name[i+1:]
	}
}

// dress adds style and scripts: our own, and uPlot where there are series. The page's policy names scripts by their
// hashes; data: images are what figures are copied through.
func (p *page) dress() {
	p.Style = template.CSS(chart.Style() + style)
	scripts := []string{copyScript}
	if p.Series.Any() {
		p.Style += template.CSS(plotStyle)
		p.Scripts = []template.HTML{template.HTML("<!-- uPlot: " + plotLicence + "-->")}
		scripts = append(scripts, plotScript, zoomScript)
	}
	p.Policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"script-src"
	for _, script := range scripts {
		hash := sha256.Sum256([]byte(script))
		p.Policy += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
		// The hash is of these bytes, so nothing may be escaped in them.
		p.Scripts = append(p.Scripts, template.HTML("<script>"+script+"</script>"))
	}
}

// embeddedComparison is the comparison as JSON, its lists no longer than a page shows, and what the page says of that.
// The copy says it too, as a warning.
func embeddedComparison(c compare.Comparison) (template.JS, string, error) {
	shown, all := 0, 0
	c.Comparisons = beginning(c.Comparisons, &shown, &all)
	c.Medians, c.Groups, c.Boxes = beginning(c.Medians, &shown, &all), beginning(c.Groups, &shown, &all),
		beginning(c.Boxes, &shown, &all)
	c.Findings, c.NotMeasured = beginning(c.Findings, &shown, &all), beginning(c.NotMeasured, &shown, &all)
	c.Slopes, c.Prices = beginning(c.Slopes, &shown, &all), beginning(c.Prices, &shown, &all)
	c.Limits = beginning(c.Limits, &shown, &all)
	c.Objectives, c.Leaks = beginning(c.Objectives, &shown, &all), beginning(c.Leaks, &shown, &all)
	said := ""
	if shown < all {
		said = fmt.Sprintf("This copy has at most the first %d rows of each list: %d of %d rows.", mostRows, shown, all)
		c.Warnings = append(slices.Clone(c.Warnings), said)
	}
	// json.Marshal escapes <, > and &, so that no text of a user's can end the script element.
	text, err := json.Marshal(c)
	if err != nil {
		return "", "", fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	return template.JS(text), said, nil
}

// beginning is what a page has of a list; it adds the rows that it has and that there are to the sums.
func beginning[T any](list []T, shown, all *int) []T {
	kept := list[:min(len(list), mostRows)]
	*shown, *all = *shown+len(kept), *all+len(list)
	return kept
}
