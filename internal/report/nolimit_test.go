package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestReferenceThatIsNoLimit: what is exceeded is named as that in every format, with nothing as a share of it.
func TestReferenceThatIsNoLimit(t *testing.T) {
	in := small()
	for i := range in.Comparison.Comparisons {
		if b := in.Comparison.Comparisons[i].UpperBound; b != nil {
			in.Comparison.Comparisons[i].UpperBound = &compare.UpperBound{
				Case: b.Case, Median: b.Median, TargetMedian: b.Median, BaselineShare: compare.Missing(),
				TargetShare: compare.Missing(), ExceededBy: 35.21, Faster: "lab:vxlan",
			}
		}
	}
	const words = "not a limit here, lab:vxlan is faster by 3521 %"
	for name, text := range map[string]string{
		"table":    render(t, func(b *strings.Builder) error { return Text(b, in, TextOptions{Verbose: true}) }),
		"markdown": render(t, func(b *strings.Builder) error { return writeMarkdown(b, in) }),
		"html":     render(t, func(b *strings.Builder) error { return writeHTML(b, in) }),
	} {
		flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "\u00a0", " ")), " ")
		if !strings.Contains(flat, words) || strings.Contains(flat, "of that:") {
			t.Errorf("%s: %s", name, text)
		}
	}
	m := compare.Median{Case: stream, UpperBound: in.Comparison.Comparisons[0].UpperBound}
	if got := share(m); !strings.HasSuffix(got, words) {
		t.Errorf("a median's share is %q", got)
	}
}

// The reference of a target with an underlay of its own is named next to the baseline's.
func TestReferences(t *testing.T) {
	row := func(target string, own compare.Number) compare.Row {
		return compare.Row{Target: target, UpperBound: &compare.UpperBound{Median: 20e-6, TargetMedian: own}}
	}
	g := group{Unit: unit.Second, Bound: &compare.UpperBound{Median: 20e-6},
		Rows: []compare.Row{row("same", 20e-6), row("other", 23e-6), row("unknown", compare.Missing()), {Target: "none"}}}
	if got, want := references(g), "20.0 µs, on other 23.0 µs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
