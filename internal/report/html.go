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
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
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
// The comparison's JSON is in the script element with id "comparison". What there is no room for, so that the page
// stays below 1 MB, is left out, and the page reports it.
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
	if p.JSON, err = embeddedComparison(in.Comparison); err != nil {
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
	p.Style = template.CSS(style)
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

// mostJSON is the size in bytes up to which a page embeds its comparison, so that all of it stays below 1 MB.
const mostJSON = 250e3

// embeddedComparison is the comparison as JSON; empty if it is too large for a page.
func embeddedComparison(c compare.Comparison) (template.JS, error) {
	size := 0
	for _, r := range c.Comparisons { // all of them may be hundreds of megabytes
		text, err := json.Marshal(r)
		if size += len(text); err != nil || size > mostJSON {
			return "", err
		}
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
