// Package published holds published figures as data: tables with their source, machines and method, without their
// conclusions. Reports show them next to the results of an experiment, case by case, never as a verdict, because they
// come from other machines and methods.
package published

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Table is one publication.
type Table struct {
	Name string `json:"name"` // for --reference
	About
	Rows []Row `json:"rows"`
}

// About describes a publication.
type About struct {
	Title     string   `json:"title"`
	Publisher string   `json:"publisher"`
	URL       string   `json:"url"`
	Date      string   `json:"date"` // may be partial, or "unknown"
	Machines  string   `json:"machines"`
	Method    string   `json:"method"`
	Runs      string   `json:"runs"`  // number of runs behind each figure
	Notes     []string `json:"notes"` // caveats for readers, as sentences
	Targets   []string `json:"targets"`
}

// A Row is one metric of one case on the targets of the table.
type Row struct {
	Label string `json:"label"` // as published
	Case  string `json:"case"`  // our name of the case
	// Synonym is the name of the case in the authors' own job file; empty if they published none.
	Synonym string        `json:"synonym,omitempty"`
	Metric  string        `json:"metric"`
	Unit    unit.Unit     `json:"unit"`
	Better  metric.Better `json:"better"`
	// Statistic describes how the figure was computed, such as "mean over the time of a run".
	Statistic string   `json:"statistic"`
	Figures   []Figure `json:"figures"`
}

// A Figure is the value of a row on a target, in the row's unit.
type Figure struct {
	Target string  `json:"target"`
	Value  float64 `json:"value"`
}

//go:embed tables
var tables embed.FS

// All returns all tables, sorted by name.
func All() []Table {
	entries, err := tables.ReadDir("tables")
	var all []Table
	for _, entry := range entries {
		data, unread := tables.ReadFile(path.Join("tables", entry.Name()))
		t, broken := parse(strings.TrimSuffix(entry.Name(), ".yaml"), data)
		all, err = append(all, t), errors.Join(err, unread, broken)
	}
	if err != nil {
		panic("an embedded table is broken: " + err.Error()) // a test reads them all
	}
	return all
}

// Find returns the table of a name. The error lists the known names.
func Find(name string) (Table, error) {
	var names []string
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Table{}, fmt.Errorf("there is no published table %q; there are %s", name, prose.Choices(name, names))
}

// A file is a table as written: values in the order of the targets, in the published unit.
type file struct {
	About
	Statistic string `json:"statistic"`
	Rows      []struct {
		Label   string     `json:"label"`
		Case    string     `json:"case"`
		Synonym string     `json:"synonym"`
		Metric  string     `json:"metric"`
		Unit    string     `json:"unit"`
		Values  []*float64 `json:"values"` // null: not published
	} `json:"rows"`
}

func parse(name string, data []byte) (Table, error) {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return Table{}, fmt.Errorf("published table %s: %w", name, err)
	}
	t := Table{Name: name, About: f.About}
	t.Notes = append([]string{}, f.Notes...) // never nil, so that JSON has a list
	for i, r := range f.Rows {
		m, known := metric.Find(r.Metric)
		if !known {
			return Table{}, fmt.Errorf("published table %s: row %d has the unknown metric %q", name, i+1, r.Metric)
		}
		row := Row{Label: r.Label, Case: r.Case, Synonym: r.Synonym, Metric: m.Name, Better: m.Better,
			Statistic: statistic(f.Statistic, m.Name)}
		if len(r.Values) != len(f.Targets) {
			return Table{}, fmt.Errorf("published table %s: row %d has %d values for %d targets",
				name, i+1, len(r.Values), len(f.Targets))
		}
		for j, v := range r.Values {
			if v == nil {
				continue
			}
			value, u, err := unit.Parse(fmt.Sprintf("%g %s", *v, r.Unit))
			if err != nil {
				return Table{}, fmt.Errorf("published table %s: row %d: %w", name, i+1, err)
			}
			row.Unit = u
			row.Figures = append(row.Figures, Figure{Target: f.Targets[j], Value: value})
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// statistic returns the stated statistic, or for tables without one what tools report for a single run.
func statistic(stated, metricName string) string {
	switch {
	case stated != "":
		return stated
	case metricName == metric.Mean:
		return "mean over the requests of a run"
	case metricName == metric.P50:
		return "median over the requests of a run"
	}
	return "mean over the time of a run"
}

// A Match pairs a target of the experiment with a target of a publication, to be shown side by side.
type Match struct{ Ours, Published string }

// Figure returns the figure of a target, and whether the row has one.
func (r Row) Figure(target string) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Target == target })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Change returns the difference of f from another figure, as a fraction of the latter.
func (f Figure) Change(against Figure) float64 { return f.Value/against.Value - 1 }

// SameCase reports whether a published case is shown next to a measured one: path, workload and direction are the same.
// Other parameters may differ; readers see them.
func SameCase(published, ours string) bool {
	return withoutParameters(published) == withoutParameters(ours)
}

// withoutParameters returns the name of a case without its parameters, except a direction other than forward.
func withoutParameters(name string) string {
	head, parameters, _ := strings.Cut(name, ":")
	for p := range strings.SplitSeq(parameters, ",") {
		if strings.HasPrefix(p, "direction=") && p != "direction=forward" {
			return head + ":" + p
		}
	}
	return head
}
