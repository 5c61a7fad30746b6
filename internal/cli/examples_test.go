package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// TestExamples checks that each experiment file of a study can be resolved, and measures every row of the published
// table that it repeats, except those that the study's guide names.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e, tables := exampleOf(t, file)
			if len(tables) == 0 {
				t.Error("it names no published table")
			}
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			guide, err := os.ReadFile("../../docs/studies/" + name + ".md")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(guide), "examples/"+name+".yaml") {
				t.Error("the guide does not name the file")
			}
			for _, table := range tables {
				for _, row := range table.Rows {
					if !measures(e, row) && !strings.Contains(string(guide), row.Label) {
						t.Errorf("%s (%s %s) is neither measured nor named by the guide", row.Label, row.Case, row.Metric)
					}
				}
			}
		})
	}
}

// TestStudyCosts compares the table of the studies' costs with the plans of their files; -update writes it.
func TestStudyCosts(t *testing.T) {
	const (
		page  = "../../docs/studies/README.md"
		begin = "<!-- costs: written by go test ./internal/cli -run TestStudyCosts -update -->\n"
		end   = "<!-- end of costs -->\n"
	)
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	var table strings.Builder
	table.WriteString("| Study | Targets | Once: `--blocks 1` | At least | At most | Node hours |\n" +
		"|---|--:|--:|--:|--:|--:|\n")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		e, _ := exampleOf(t, file)
		d := plan.Document{Schema: plan.Schema, Experiment: e}
		if err := d.Predict(plan.EarlierResults{}, runner.CaseTimes(d.Experiment, registry.Families())); err != nil {
			t.Fatal(err)
		}
		first := e.Design.Looks[0]
		block := time.Duration(d.Block.Seconds * float64(time.Second))
		minutes := func(blocks int) string {
			m := int(math.Ceil((time.Duration(blocks) * block).Minutes()))
			if m < 100 {
				return fmt.Sprintf("%d min", m)
			}
			return fmt.Sprintf("%d h %02d min", m/60, m%60)
		}
		guide, err := os.ReadFile("../../docs/studies/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		nodes := 0
		if m := nodesOfStudy.FindSubmatch(guide); m != nil {
			nodes, _ = strconv.Atoi(string(m[1]))
		}
		once := strings.TrimSuffix(minutes(1), " min") + " minutes"
		if nodes == 0 || !strings.Contains(string(guide), "A single pass") ||
			!strings.Contains(string(guide), "takes "+once) {
			t.Errorf("the guide of %s does not say that a single pass takes %s, or counts no nodes", name, once)
		}
		hours := func(blocks int) float64 { return float64(nodes) * (time.Duration(blocks) * block).Hours() }
		fmt.Fprintf(&table, "| [%s](%s.md) | %d | %s | %s, %d blocks | %s, %d blocks | %.1f, %.0f, %.0f |\n", name, name,
			len(e.Targets), minutes(1), minutes(first), first, minutes(e.Design.Blocks), e.Design.Blocks, hours(1),
			hours(first), hours(e.Design.Blocks))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	golden.Check(t, page, head+begin+"\n"+table.String()+"\n"+end+tail)
}

// nodesOfStudy matches the number of nodes in the cost formula of a study's guide.
var nodesOfStudy = regexp.MustCompile(`(?m)^    hours x \((\d+) x price of a node`)

// TestStudyGuides checks that each guide has what a reader needs to repeat the study: commands, costs, rights, and what
// cannot be repeated.
func TestStudyGuides(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		_, tables := exampleOf(t, file)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		guide, err := os.ReadFile("../../docs/studies/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		wanted := []string{"knotmeter image push ", "    knotmeter doctor ", "    knotmeter doctor --rbac 'kube:",
			"knotmeter plan -f examples/" + name + ".yaml", "knotmeter run -f examples/" + name + ".yaml --blocks 1 ",
			"--reference " + tables[0].Name, "## What it costs", "## Rights", "## Rows",
			"**What cannot be repeated**:\n\n- "}
		for _, want := range wanted {
			if !strings.Contains(string(guide), want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
	}
}

// exampleOf resolves the experiment of a file, without connecting to clusters.
func exampleOf(t *testing.T, file string) (result.Experiment, []published.Table) {
	t.Helper()
	var o options
	var x experiment
	t.Cleanup(func() { x.close(io.Discard) })
	c := &cobra.Command{Use: "run"}
	o.register(c)
	if err := c.ParseFlags([]string{"--file", file}); err != nil {
		t.Fatal(err)
	}
	if err := o.read(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := x.resolve(t.Context(), &o, "test"); err != nil {
		t.Fatal(err)
	}
	e := x.config.Experiment
	if err := o.matches.check(o.reference, e.TargetNames()); err != nil {
		t.Error(err)
	}
	return e, o.reference
}

// measures reports whether an experiment has the case and metric of a published row.
func measures(e result.Experiment, row published.Row) bool {
	return slices.ContainsFunc(e.Cases, func(rc result.Case) bool {
		w, err := registry.Families().Parse(rc.Name, rc.Definition)
		if err != nil || !published.SameCase(row.Case, rc.Name) {
			return false
		}
		has := family.ToolFor(registry.Families().Tools(), w.Workload).Metrics(w.Workload)
		return slices.ContainsFunc(has, func(m metric.Metric) bool { return m.Name == row.Metric })
	})
}
