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
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
)

const metricsIntro = `# Metrics

Values are in base units, except in tables and reports for readers. A run leaves out a metric that would be meaningless.
Metrics with a direction are compared; the others are shown. A gate may be about any metric of its workloads. Metrics
without a workload belong to targets, to other tools or to published tables.

| metric | unit | better | workloads | meaning |
|---|---|---|---|---|
`

const partsIntro = `
A metric may be of a part of a run. Its name then begins or ends with one of these: ` +
	"`sync-p99`,\n`cpu-busy-server`. In a mix of requests each kind has `NAME-p50`, `NAME-p99`, `NAME-rate` and " +
	"`NAME-failed`." + `

| part | meaning | compared | workloads |
|---|---|---|---|
`

const layersIntro = `
CPU time per operation or byte is also sampled by layer of the kernel where the agent may do so: as root on this
machine, in pods if the cluster lets them. ` + "`cpu-per-op.vxlan`" + ` is the part of ` + "`cpu-per-op`" + ` that is
in VXLAN, and ` + "`cpu-per-gb`" + ` is divided likewise for tcp-stream. All layers add up to the whole, with what the
machine does besides; a layer without a sample is left out. A sample belongs to the innermost function that is of a
layer, so time in memory allocation counts for the layer that allocates. Layers have no verdicts of their own:
[explain](explain.md) compares them as differences, since of a layer that one target does not have there is no ratio.

| layer | meaning |
|---|---|
`

const countersIntro = `
Network runs of the native tool also have what the kernel counted in the window.
` + "`kernel.listen-overflows`" + ` is of the client's network namespace, with ` + "`-server`" + ` at the end
of that of the server, and with ` + "`node-`" + ` before the counter of that of a pod's node, in the lab. What
did not rise is left out; the facts ` + "`counters.client`" + ` and ` + "`counters.server`" + ` say where it was
counted. Counters have no verdicts of their own either.

| counter | unit | meaning |
|---|---|---|
`

// TestMetricsPage checks the page about metrics; -update writes it.
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
	b.WriteString(layersIntro)
	for _, p := range metric.Layers() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, p.Meaning)
	}
	b.WriteString(countersIntro)
	for _, c := range metric.Counters() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Unit, c.Meaning)
	}
	golden.Check(t, "../../docs/metrics.md", b.String())
}

func direction(b metric.Better) string {
	if b == metric.Neutral {
		return "–"
	}
	return string(b)
}

// workloads are the names of the workloads that may have a metric, by metric.
type workloads map[string][]string

// reportedBy collects the metrics of the cases of all suites and of every kind of workload.
func reportedBy() workloads {
	reported := workloads{}
	for _, s := range Families().Suites() {
		for _, c := range s.Cases {
			reported.add(c.Workload)
		}
	}
	for _, f := range Families() {
		for _, k := range f.Kinds {
			reported.add(k.Workload)
		}
	}
	return reported
}

// add adds a workload to the metrics that its tool reports.
func (w workloads) add(about family.Workload) {
	for _, m := range family.ToolFor(Families().Tools(), about).Metrics(about) {
		if name := nameOf(about); !slices.Contains(w[m.Name], name) {
			w[m.Name] = append(w[m.Name], name)
		}
	}
}

// nameOf returns the kind of a network workload, or the path of another one.
func nameOf(w family.Workload) string {
	t := w.Traits()
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

// list joins names of workloads; all network workloads together become "network".
func list(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	all := netload.Kinds()
	isNetwork := func(name string) bool { return slices.Contains(all, netload.Kind(name)) }
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
	for _, k := range netload.Kinds() {
		order = append(order, string(k))
	}
	return slices.Index(append(order, "storage", "api", "app"), name)
}

var inBackquotes = regexp.MustCompile("`([^`]+)`")

// TestMetricTables checks the tables of metrics in the other pages.
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

// checkRow checks names, unit and direction. Of rows with several units, only the names are checked; metrics with a
// user's NAME are not checked.
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
