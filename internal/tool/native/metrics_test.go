package native

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// TestMetricsPage keeps the page for readers the same as the list that the code has.
func TestMetricsPage(t *testing.T) {
	const page = "../../../docs/metrics.md"
	var b strings.Builder
	b.WriteString("# Metrics of the native tool\n\n" +
		"Values are in base units everywhere but in what people read. A metric is left out of a run where it would be\n" +
		"meaningless. Those with a direction are compared; the others are shown. A gate may be about any that its workloads have.\n\n" +
		"| metric | unit | better | workloads | is |\n|---|---|---|---|---|\n")
	for _, m := range Metrics() {
		better := string(m.Better)
		if m.Better == result.Neutral {
			better = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Unit, better, workloads(m.Of), m.Meaning)
	}
	golden.Check(t, page, b.String())
}

// workloads names them.
func workloads(kinds []workload.Kind) string {
	if len(kinds) == len(workload.Kinds()) {
		return "all"
	}
	var names []string
	for _, k := range kinds {
		names = append(names, "`"+string(k)+"`")
	}
	return strings.Join(names, ", ")
}
