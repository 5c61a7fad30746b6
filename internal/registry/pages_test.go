package registry

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestSuitesPage checks the page about suites; -update writes it.
func TestSuitesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Suites

What ` + "`--suite`" + ` takes. Verdicts are about primary cases; exploratory ones are shown and marked; references are
measured once in each block. Several suites, as in ` + "`--suite network:quick,storage:quick`" +
		`, make one experiment with one
report. ` + "`--case`" + ` chooses cases of the suites by pattern, with other parameters if it ends in some
(` + "`'*/tcp-stream:size=1024'`" + `), or adds one of your own.
`)
	for _, f := range Families() {
		for _, s := range f.Suites {
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| Case | Role | Metric |\n|---|---|---|\n", s.Name, sentence(s.About))
			for _, c := range s.Cases {
				fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", c.Name(), roleName(c), c.Workload.Traits().Metric)
			}
		}
		if f.File != nil {
			fmt.Fprintf(&b, "\n## %s:FILE\n\n%s.\n", f.Name, sentence(f.File.About))
		}
	}
	golden.Check(t, "../../docs/suites.md", b.String())
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func roleName(c family.Case) string {
	if c.Role == result.Bound {
		return "reference"
	}
	return string(c.Role)
}

// TestNetworkPage checks that the page about the network has a row for each path and workload.
func TestNetworkPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range result.Paths() {
		names = append(names, string(p))
	}
	for _, k := range netload.Kinds() {
		names = append(names, string(k))
	}
	for _, name := range names {
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/network.md has no row for %s", name)
		}
	}
}
