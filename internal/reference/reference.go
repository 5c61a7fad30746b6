// Package reference is what others published, as data: figures with their source, machines and
// method, and nothing of what was concluded from them.
//
// It stands beside compare in the data flow: the report shows a table's figures next to those of an
// experiment, case by case, always as of another machine and another method, never as a verdict.
package reference

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
	Name string `json:"name"` // what --reference takes
	About
	Rows []Row `json:"rows"`
}

// About is what is known of a publication besides its figures.
type About struct {
	Title     string   `json:"title"`
	Publisher string   `json:"publisher"`
	URL       string   `json:"url"`
	Date      string   `json:"date"` // as far as it is known, else "unknown"
	Machines  string   `json:"machines"`
	Method    string   `json:"method"`
	Runs      string   `json:"runs"`  // behind each figure
	Notes     []string `json:"notes"` // what a reader should know of the figures; sentences
	Targets   []string `json:"targets"`
}

// A Row is one metric of one case on the targets of the table.
type Row struct {
	Label string `json:"label"` // as published
	Case  string `json:"case"`  // as we name it
	// Synonym is the case of a user's own file with the authors' names of jobs; empty: they published none.
	Synonym string        `json:"synonym,omitempty"`
	Metric  string        `json:"metric"`
	Unit    unit.Unit     `json:"unit"`
	Better  metric.Better `json:"better"`
	// Statistic is what the figure is over the runs behind it.
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

// All lists the tables by name.
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

// Find returns the table of a name; the error lists the names that there are.
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

// file is a table as it is written: values by the order of the targets, in the unit that was published.
type file struct {
	About
	Statistic string `json:"statistic"`
	Rows      []struct {
		Label   string     `json:"label"`
		Case    string     `json:"case"`
		Synonym string     `json:"synonym"`
		Metric  string     `json:"metric"`
		Unit    string     `json:"unit"`
		Values  []*float64 `json:"values"` // null where nothing was published
	} `json:"rows"`
}

func parse(name string, data []byte) (Table, error) {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return Table{}, fmt.Errorf("published table %s: %w", name, err)
	}
	t := Table{Name: name, About: f.About}
	t.Notes = append([]string{}, f.Notes...) // a list in JSON, also if it is empty
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

// statistic names what a figure is. Without runs to take it over it is what the tool gave for its one run.
func statistic(stated, of string) string {
	switch {
	case stated != "":
		return stated
	case of == metric.Mean:
		return "mean over the requests of a run"
	case of == metric.P50:
		return "median over the requests of a run"
	}
	return "mean over the time of a run"
}

// A Match says which target of ours is to be seen next to which target of a publication.
type Match struct{ Ours, Published string }

// Figure is that of a target.
func (r Row) Figure(target string) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Target == target })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Change is that of a figure against another one, as a fraction of the latter.
func (f Figure) Change(against Figure) float64 { return f.Value/against.Value - 1 }

// Beside says whether a published case stands beside one of ours: the path, the workload and its direction
// are the same, whatever the other parameters, which the reader sees.
func Beside(published, ours string) bool { return essence(published) == essence(ours) }

func essence(name string) string {
	head, parameters, _ := strings.Cut(name, ":")
	for p := range strings.SplitSeq(parameters, ",") {
		if strings.HasPrefix(p, "direction=") && p != "direction=forward" {
			return head + ":" + p
		}
	}
	return head
}
