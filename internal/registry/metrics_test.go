package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/metric"
)

const metricsIntro = `# Metrics

Values are in base units everywhere but in what people read. A metric is left out of a run where it would be
meaningless. Metrics with a direction are compared; the others are shown. A gate may be about any that its workloads
have. Metrics without a workload are of targets, of other tools or of published tables.

| metric | unit | better | workloads | meaning |
|---|---|---|---|---|
`

const partsIntro = `
A metric may be of a part of what a run did. Its name then has one of these at its beginning or its end: ` +
	"`sync-p99`,\n`cpu-busy-server`. In a mix of requests each kind has `NAME-p50`, `NAME-p99`, `NAME-rate` and " +
	"`NAME-failed`." + `

| part | meaning | compared | workloads |
|---|---|---|---|
`

// TestMetricsPage keeps the page for readers the same as the metrics that there are.
func TestMetricsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(metricsIntro)
	reported := reportedBy()
	for _, m := range metric.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Unit, direction(m.Better), reported.of(m.Name), m.Meaning)
	}
	b.WriteString(partsIntro)
	for _, p := range metric.Parts() {
		name, compared := p.Name+"…", "as the metric"
		if p.Name == metric.OfServer {
			name = "…" + p.Name
		}
		if p.Neutral {
			compared = "no"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, p.Meaning, compared, reported.ofPart(p.Name))
	}
	golden.Check(t, "../../docs/metrics.md", b.String())
}

func direction(b metric.Better) string {
	if b == metric.Neutral {
		return "–"
	}
	return string(b)
}

// workloads are by metric those whose runs may have it.
type workloads map[string][]string

// reportedBy asks the tools about the cases of all suites.
func reportedBy() workloads {
	reported := workloads{}
	for _, s := range Families().Suites() {
		for _, c := range s.Cases {
			t := family.For(Families().Tools(), c.Workload)
			for _, m := range t.Metrics(c.Workload) {
				if name := nameOf(c); !slices.Contains(reported[m.Name], name) {
					reported[m.Name] = append(reported[m.Name], name)
				}
			}
		}
	}
	return reported
}

// nameOf is a workload of the network, or what is measured elsewhere.
func nameOf(c family.Case) string {
	t := c.Workload.Traits()
	if t.Needs.Path != "" {
		kind, _, _ := strings.Cut(t.Kind, ":")
		return kind
	}
	return t.Path
}

func (w workloads) of(name string) string { return list(w[name]) }

func (w workloads) ofPart(part string) string {
	var all []string
	for name, of := range w {
		if strings.HasPrefix(name, part) || strings.HasSuffix(name, part) {
			all = append(all, of...)
		}
	}
	return list(all)
}

// list has one word for all workloads of the network.
func list(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	all := network.Kinds()
	isNetwork := func(name string) bool { return slices.Contains(all, network.Kind(name)) }
	slices.SortFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	names = slices.Compact(names)
	rest := slices.DeleteFunc(slices.Clone(names), isNetwork)
	if len(names)-len(rest) == len(all) {
		names = append([]string{"network"}, rest...)
	}
	for i, name := range names {
		if isNetwork(name) {
			names[i] = "`" + name + "`"
		}
	}
	return strings.Join(names, ", ")
}

func rank(name string) int {
	var order []string
	for _, k := range network.Kinds() {
		order = append(order, string(k))
	}
	return slices.Index(append(order, "storage", "api", "app"), name)
}

var inBackquotes = regexp.MustCompile("`([^`]+)`")

// TestMetricTables holds the tables of metrics of the other pages to what there is.
func TestMetricTables(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		inTable := false
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(line, " | ")
			switch {
			case strings.HasPrefix(line, "| metric | unit | better |"):
				inTable = true
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case inTable && len(cells) > 3 && !strings.HasPrefix(line, "|--"):
				found++
				checkRow(t, page, cells)
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d rows in tables of metrics; have they moved?", found)
	}
}

// checkRow checks names, unit and direction. Metrics of a row whose units differ are checked by their names alone, and
// those of a NAME that users give not at all.
func checkRow(t *testing.T, page string, cells []string) {
	for _, match := range inBackquotes.FindAllStringSubmatch(cells[0], -1) {
		m, known := metric.Find(match[1])
		switch {
		case strings.HasPrefix(match[1], "NAME-"):
		case !known:
			t.Errorf("%s: there is no metric %s", page, match[1])
		case !strings.Contains(cells[1], ",") && cells[1] != string(m.Unit) || cells[2] != direction(m.Better):
			t.Errorf("%s: %s is in %s and better %q, not as %q", page, m.Name, m.Unit, m.Better, cells[1:3])
		}
	}
}
