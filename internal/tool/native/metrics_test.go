package native

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestMetricsPage keeps the page for readers the same as the list that the code has.
func TestMetricsPage(t *testing.T) {
	const page = "../../../docs/metrics.md"
	var b strings.Builder
	b.WriteString("# Metrics of the native tool\n\n" +
		"Values are in base units everywhere but in what people read. A metric is left out of a run where it would be\n" +
		"meaningless. Those with a direction are compared; the others are shown.\n\n" +
		"| metric | unit | better | is |\n|---|---|---|---|\n")
	for _, m := range Metrics() {
		better := string(m.Better)
		if m.Better == result.Neutral {
			better = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Unit, better, m.Meaning)
	}
	golden.Check(t, page, b.String())
}
