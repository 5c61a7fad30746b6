package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// TestObjectiveSections checks that the objectives and their official wording are in every report for readers, and that
// reports without API cases do not mention them.
func TestObjectiveSections(t *testing.T) {
	in := Input{Comparison: compare.Comparison{Objectives: []compare.Objective{
		{Case: "api/pod-startup", Target: "a", Limit: 5, Blocks: 8, Samples: 400, Outcome: compare.Met,
			Words: "99th percentile per cluster-day <= 5s", Source: "https://example.org/slos", Sentence: "met so"},
		{Case: "api/pod-startup", Target: "b", Limit: 5, Blocks: 7, Violated: 1, Samples: 40, Above: 1,
			Outcome: compare.TooFew, Words: "99th percentile per cluster-day <= 5s", Source: "https://example.org/slos",
			Sentence: "too few so"},
	}}}
	forms := map[string]func(*strings.Builder, Input) error{
		"text":     func(b *strings.Builder, in Input) error { return Text(b, in, TextOptions{Verbose: true}) },
		"markdown": func(b *strings.Builder, in Input) error { return writeMarkdown(b, in) },
		"html":     func(b *strings.Builder, in Input) error { return writeHTML(b, in) },
	}
	for name, write := range forms {
		var with, without strings.Builder
		if err := write(&with, in); err != nil {
			t.Fatal(name, err)
		}
		if err := write(&without, Input{}); err != nil {
			t.Fatal(name, err)
		}
		for _, want := range []string{"too few blocks", "7", "cluster-day", "example.org/slos"} {
			if !strings.Contains(with.String(), want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
		if strings.Contains(without.String(), "service level objectives") {
			t.Errorf("%s has objectives without any", name)
		}
	}
}
