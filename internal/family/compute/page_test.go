package compute

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// workloadTable matches the table of workloads in a page, after a comment.
var workloadTable = regexp.MustCompile(`(<!-- workloads: written by a test -->\n)((?:\|[^\n]*\n)*)`)

// TestPage checks the table of workloads in the page about the family; -update writes it.
func TestPage(t *testing.T) {
	const page = "../../../docs/compute.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := "| Workload | Verdicts are about | Counts | Stresses | Does not measure |\n|---|---|---|---|---|\n"
	for _, k := range kinds {
		takes := "<br>"
		for _, p := range parameters.HelpOf(Workload{Kind: k.name}) {
			takes += "`" + p.Name + "=` "
		}
		takes = strings.TrimSuffix(strings.TrimSpace(takes), "<br>")
		table += fmt.Sprintf("| `%s`%s | `%s` | %s | %s | %s |\n", k.name, takes, k.metric, k.counts, k.about, k.not)
	}
	if !workloadTable.Match(text) {
		t.Fatal("the page has no place for the table")
	}
	golden.Check(t, page, workloadTable.ReplaceAllString(string(text), "${1}"+table))
}
