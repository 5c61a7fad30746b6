package registry

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
)

// TestToyFamily checks that a family that only this test knows is run on real targets, compared and reported, and that
// it has at most 150 lines.
func TestToyFamily(t *testing.T) {
	code, err := os.ReadFile("toy_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(code, []byte("\n")); n > 150 {
		t.Errorf("a family takes %d lines", n)
	}
	families := append(Families(), toys())
	e, targets := planned(t, families)
	if _, err := runner.Begin(t.Context(), runner.Config{
		Experiment: e, Targets: targets, Families: families, Tool: families.Tools(),
	}, true); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/results"
	w, err := store.Create(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := runner.Run(t.Context(), runner.Config{
		Experiment: e, Targets: targets, Families: families, Tool: families.Tools(), Sink: w, Version: "test",
	})
	if err != nil || summary.Runs != 2*2*2 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare.Compare(result.Results{Experiment: r.Experiment, Runs: r.Runs, Facts: r.Facts})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Formats() {
		var out bytes.Buffer
		in := report.Input{Comparison: c, Experiment: r.Experiment, Runs: r.Runs, Facts: r.Facts}
		if f.Files != nil {
			if files, err := f.Files(in); err != nil || len(files) == 0 {
				t.Errorf("%s: %d files, %v", f.Name, len(files), err)
			}
			continue
		}
		if err := f.Write(&out, in); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Name == "table" && !strings.Contains(out.String(), "toy/crc") {
			t.Errorf("the table has no toy/crc:\n%s", &out)
		}
	}
}

// planned returns an experiment with the toy family on two targets, which are both this machine.
func planned(t *testing.T, families family.List) (result.Experiment, []runner.Target) {
	t.Helper()
	var measured []runner.Target
	for _, text := range []string{"local:?label=a", "local:?label=b"} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		places, err := Target(spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := places.Close(); err != nil {
				t.Error(err)
			}
		})
		measured = append(measured, runner.Target{Target: result.Target{Name: spec.Label(), Spec: spec}, Places: places})
	}
	design := runner.DefaultDesign()
	design.Blocks, design.Looks, design.Duration, design.Warmup = 2, nil, 0.1, 0.02
	suites := families.Suites()
	e, err := runner.Resolve(t.Context(), runner.Options{
		ID: store.NewID(time.Now()), Version: "test", Created: time.Now(), Targets: measured, Families: families,
		Suites: suites[len(suites)-1:], Tool: families.Tools(), Seed: 1, Design: design,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, measured
}

// TestNames checks that every case of every suite can be parsed from its name and definition, and is in its suite once.
func TestNames(t *testing.T) {
	for _, s := range append(Families(), toys()).Suites() {
		seen := map[string]bool{}
		for _, c := range s.Cases {
			got, err := append(Families(), toys()).Parse(c.Name(), c.Workload.Traits().Definition)
			if err != nil || got.Workload != c.Workload {
				t.Errorf("%s: %s is read as %+v, %v", s.Name, c.Name(), got, err)
			}
			traits := c.Workload.Traits()
			if c.Name() != traits.Path+"/"+traits.Kind || seen[c.Name()] {
				t.Errorf("%s: %s is there twice, or is not %s/%s", s.Name, c.Name(), traits.Path, traits.Kind)
			}
			seen[c.Name()] = true
		}
	}
}

// TestWords checks that every case of every suite has words, and no two cases of a suite have the same.
func TestWords(t *testing.T) {
	for _, f := range Families() {
		for _, s := range f.Suites {
			seen := map[result.Words]string{}
			for _, c := range s.Cases {
				w := c.Workload.Traits().Words
				if w.Subject == "" || w.Quantity == "" {
					t.Errorf("%s: %s has the words %+v", s.Name, c.Name(), w)
				}
				if other := seen[w]; other != "" {
					t.Errorf("%s: %s and %s are both %+v", s.Name, other, c.Name(), w)
				}
				seen[w] = c.Name()
			}
		}
	}
}
