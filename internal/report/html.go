package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed templates
var templates embed.FS

// HTML writes the report as one page that needs nothing else: no network, no script, its figures
// inline. The comparison's JSON is embedded in it, in the script element with id "comparison".
func HTML(w io.Writer, in Input) error {
	style, err := templates.ReadFile("templates/style.css")
	if err != nil {
		return fmt.Errorf("read the report's style: %w", err)
	}
	functions := template.FuncMap{
		"percent": func(fraction float64) float64 { return fraction * 100 },
		// A percent sign stays on the line of its number.
		"glue": func(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") },
	}
	t, err := template.New("").Funcs(functions).ParseFS(templates, "templates/*.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	p := newPage(in)
	p.Style = template.CSS(style) // our own file
	// json.Marshal escapes <, > and &, so that no text of a user's can end the script element.
	text, err := json.Marshal(in.Comparison)
	if err != nil {
		return fmt.Errorf("encode the comparison as JSON: %w", err)
	}
	p.JSON = template.JS(text)
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "report.html", p); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	return write(w, b.String())
}
