package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
)

// TestTwoLevels checks that reports give the total change of two levels, without a rate and without a straight line.
func TestTwoLevels(t *testing.T) {
	in, err := manyInput(smallShape("lab:native", "lab:native?rules=5000"))
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]func(*strings.Builder, Input) error{
		"text":     func(b *strings.Builder, in Input) error { return Text(b, in, TextOptions{Width: 400}) },
		"markdown": func(b *strings.Builder, in Input) error { return writeMarkdown(b, in) },
		"html":     func(b *strings.Builder, in Input) error { return writeHTML(b, in) },
	}
	for name, write := range forms {
		text := render(t, func(b *strings.Builder) error { return write(b, in) })
		if strings.Contains(text, "000 rules.") || !strings.Contains(text, "in all; two levels show no rate") {
			t.Errorf("%s gives a rate for two levels", name)
		}
	}
	figure := scale(in.Comparison, figureNames{}).Parts[0].(doc.Figure)
	if strings.Contains(string(figure.Plot), "series1") {
		t.Errorf("a straight line through two levels: %s", figure.Plot)
	}
}

// TestScaleSections checks that slopes are in every report for readers, with a figure on the page, and that reports on
// targets without numbers have none.
func TestScaleSections(t *testing.T) {
	all := inputs(t)
	forms := map[string]func(*strings.Builder, Input) error{
		"brief":    func(b *strings.Builder, in Input) error { return Text(b, in, TextOptions{Width: 400}) },
		"text":     func(b *strings.Builder, in Input) error { return Text(b, in, TextOptions{Verbose: true, Width: 400}) },
		"markdown": func(b *strings.Builder, in Input) error { return writeMarkdown(b, in) },
		"html":     func(b *strings.Builder, in Input) error { return writeHTML(b, in) },
	}
	for name, write := range forms {
		for page, want := range map[string]bool{"scale": true, "two": false} {
			text := render(t, func(b *strings.Builder) error { return write(b, all[page]) })
			if got := strings.Contains(text, "per 1000 rules"); got != want {
				t.Errorf("%s of %s has slopes: %t", name, page, got)
			}
			if name == "html" && strings.Contains(text, `id="scale"`) != want {
				t.Errorf("the page %s has a section on scale: %t", page, !want)
			}
		}
	}
}
