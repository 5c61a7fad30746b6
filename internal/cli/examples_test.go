package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestExamples: each experiment file of a study can be run, and measures every row of the table that it repeats. The
// guide of the study names those that it does not.
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

// TestStudyCosts holds the table of what the studies cost to what plan says of their files; -update writes it.
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
	table.WriteString("| Study | Targets | Once: `--blocks 1` | At least | At most |\n|---|--:|--:|--:|--:|\n")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		e, _ := exampleOf(t, file)
		d := plan.Document{Schema: plan.Schema, Experiment: e}
		if err := d.Predict(plan.Known{}, registry.Families()); err != nil {
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
		fmt.Fprintf(&table, "| [%s](%s.md) | %d | %s | %s, %d blocks | %s, %d blocks |\n", name, name, len(e.Targets),
			minutes(1), minutes(first), first, minutes(e.Design.Blocks), e.Design.Blocks)
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

// exampleOf is the experiment of a file, which asks no cluster for anything.
func exampleOf(t *testing.T, file string) (result.Experiment, []reference.Table) {
	t.Helper()
	var o options
	var x experiment
	t.Cleanup(func() { x.close(io.Discard) })
	c := &cobra.Command{Use: "run"}
	o.register(c)
	if err := c.ParseFlags([]string{"--file", file}); err != nil {
		t.Fatal(err)
	}
	if err := o.read(nil); err != nil {
		t.Fatal(err)
	}
	if err := x.resolve(&o, "test"); err != nil {
		t.Fatal(err)
	}
	e := x.config.Experiment
	if err := o.matches.check(o.reference, e.TargetNames()); err != nil {
		t.Error(err)
	}
	return e, o.reference
}

// measures says whether an experiment has what a published row is of.
func measures(e result.Experiment, row reference.Row) bool {
	return slices.ContainsFunc(e.Cases, func(rc result.Case) bool {
		w, err := registry.Families().Parse(rc.Name, rc.Definition)
		if err != nil || !reference.Beside(row.Case, rc.Name) {
			return false
		}
		has := family.For(registry.Families().Tools(), w.Workload).Metrics(w.Workload)
		return slices.ContainsFunc(has, func(m metric.Metric) bool { return m.Name == row.Metric })
	})
}
