package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestReferenceThatIsNoLimit checks that every format marks a reference that a target exceeds as no limit, and omits
// shares of it.
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
	if got := shareOfReference(m); !strings.HasSuffix(got, words) {
		t.Errorf("a median's share is %q", got)
	}
}

// TestReferences checks that the reference of a target with its own underlay is shown next to the baseline's.
func TestReferences(t *testing.T) {
	row := func(target string, own compare.Number) compare.Row {
		return compare.Row{Target: target, UpperBound: &compare.UpperBound{Median: 20e-6, TargetMedian: own}}
	}
	g := group{Unit: unit.Second, Bound: &compare.UpperBound{Median: 20e-6},
		Rows: []compare.Row{row("same", 20e-6), row("other", 23e-6), row("unknown", compare.Missing()), {Target: "none"}}}
	if got, want := g.references(), "20.0 µs, on other 23.0 µs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReferencesOfEachTarget checks that a page has the reference of each target: as a line in its column of the
// figure, and by name in tables.
func TestReferencesOfEachTarget(t *testing.T) {
	in := small()
	in.Comparison.Comparisons[0].UpperBound.TargetMedian = 7.3e9
	b := newBuilder(in, groups(in), in.runs())
	c := b.caseRuns(b.results[0])
	const words = "Dashed: node-to-node reference 9.40 Gbit/s, on lab:vxlan 7.30 Gbit/s, " +
		"the median of node-node/tcp-stream."
	if c.Caption != words {
		t.Errorf("%q, want %q", c.Caption, words)
	}
	lines := regexp.MustCompile(`class="bound" d="M0 ([0-9.]+)H500M500 ([0-9.]+)H1000"`).
		FindStringSubmatch(string(c.Plot))
	if len(lines) == 0 || lines[1] == lines[2] {
		t.Errorf("the columns have not a line each: %q", lines)
	}
	_, root := rendered(t, in)
	for _, n := range elements(root, named("td")) {
		if attribute(n, "data-column") == referenceName && strings.Contains(content(n), "on lab:vxlan 7.30 Gbit/s") {
			return
		}
	}
	t.Error("the table of paths does not name the reference of lab:vxlan")
}
