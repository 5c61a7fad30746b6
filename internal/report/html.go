package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
)

//go:embed templates
var templates embed.FS

// writeHTML writes the report as one page that needs nothing else: no network, its figures inline. The
// only scripts are those that make the series over time zoomable, and the page's policy names them by
// their hashes; without them it shows the same series as they are. The comparison's JSON is in it, in the script
// element with id "comparison". What there is no room for, so that the page stays below 1 MB, is left out, and the
// page reports it.
func writeHTML(w io.Writer, in Input) error {
	functions := template.FuncMap{
		"percent": func(fraction float64) float64 { return fraction * 100 },
		// A percent sign stays on the line of its number.
		"glue": func(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") },
		"soft": soft, "word": word, "class": class, "gateClass": gateClass,
		"change":   func(r compare.Row) string { return change(r.Change) },
		"interval": func(r compare.Row) string { return interval(r.CI) },
	}
	t, err := template.New("").Funcs(functions).ParseFS(templates, "templates/*.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	p := newPage(in)
	if err := p.dress(); err != nil {
		return err
	}
	if p.JSON, err = embeddedComparison(in.Comparison); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "report.html", p); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	return write(w, b.String())
}

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

// dress adds style and scripts: our own files, and those of uPlot, which are only there for series.
func (p *page) dress() error {
	files := []string{"style.css"}
	scripts := []string{}
	if p.Series.Any() {
		files = append(files, "uplot/uPlot.min.css")
		scripts = append(scripts, "uplot/uPlot.iife.min.js", "zoom.js")
	}
	p.Policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
	var style strings.Builder
	for _, name := range files {
		text, err := templates.ReadFile("templates/" + name)
		if err != nil {
			return fmt.Errorf("read the report's style: %w", err)
		}
		style.Write(text)
	}
	p.Style = template.CSS(style.String())
	for i, name := range scripts {
		text, err := templates.ReadFile("templates/" + name)
		if err != nil {
			return fmt.Errorf("read the report's script: %w", err)
		}
		if i == 0 {
			p.Policy += "; script-src"
		}
		hash := sha256.Sum256(text)
		p.Policy += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
		// The hash is of these bytes, so nothing may be escaped in them.
		p.Scripts = append(p.Scripts, template.HTML("<script>"+string(text)+"</script>"))
	}
	if len(scripts) > 0 {
		licence, err := templates.ReadFile("templates/uplot/LICENSE")
		if err != nil {
			return fmt.Errorf("read the licence of the report's script: %w", err)
		}
		p.Scripts = append([]template.HTML{template.HTML("<!-- uPlot: " + string(licence) + "-->")}, p.Scripts...)
	}
	return nil
}
