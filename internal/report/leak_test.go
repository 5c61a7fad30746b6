package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// TestLeakSentences checks that leaks are in every report for readers, and that reports without such a case do not
// mention them.
func TestLeakSentences(t *testing.T) {
	with := small()
	with.Comparison.Leaks = []compare.Leak{{Case: "dynamics/policy-first", Target: "a", Trials: 19, Hi: 0.146,
		Sentence: "dynamics/policy-first on a: none in <19> trials."}}
	for name, write := range map[string]func(*strings.Builder, Input) error{
		"text":     func(b *strings.Builder, in Input) error { return Text(b, in, TextOptions{}) },
		"markdown": func(b *strings.Builder, in Input) error { return writeMarkdown(b, in) },
		"html":     func(b *strings.Builder, in Input) error { return writeHTML(b, in) },
	} {
		for _, in := range []Input{with, small()} {
			said := strings.Join(strings.Fields(render(t, func(b *strings.Builder) error { return write(b, in) })), " ")
			if got, want := strings.Contains(said, "policy-first on a"), len(in.Comparison.Leaks) > 0; got != want {
				t.Errorf("%s says it: %v, wanted %v", name, got, want)
			}
			if name == "html" && strings.Contains(said, "<19>") {
				t.Error("a sentence is not escaped")
			}
		}
	}
}
