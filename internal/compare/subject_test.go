package compare

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestSubjects checks that sentences about a group of cases count verdicts alone; a change without a verdict is
// undecided.
func TestSubjects(t *testing.T) {
	of := func(name, group, member string) result.Case {
		return result.Case{Name: name, Metric: "p50", Words: result.Words{Group: group, Member: member}}
	}
	cases := []result.Case{of("api/d/create", "Deployments", "create"), of("api/d/list", "Deployments", "list"),
		of("api/d/scale", "Deployments", "scale"), of("api/d/update", "Deployments", "update"),
		of("api/d/delete", "Deployments", "delete"), of("api/p/get", "Pods", "get"), of("api/p/list", "Pods", "list"),
		of("api/s/get", "Services", "get"), of("api/floor", "", "")}
	c := Comparison{Paired: true, Baseline: "a", Delta: 0.02, Comparisons: []Row{
		row("api/d/create", "p50", unit.Second, "b", -0.2, Different, BetterThan),
		row("api/d/create", "p99", unit.Second, "b", 0.9, Different, WorseThan),
		row("api/d/list", "p50", unit.Second, "b", -0.3, Different, BetterThan),
		row("api/d/scale", "p50", unit.Second, "b", 0.3, Different, WorseThan),
		row("api/d/update", "p50", unit.Second, "b", 0.001, Equivalent, None),
		row("api/d/delete", "p50", unit.Second, "b", 0.9, Undecided, None),
		row("api/s/get", "p50", unit.Second, "b", 0.9, Different, WorseThan),
		row("api/floor", "p50", unit.Second, "b", 0.9, Different, WorseThan),
		row("api/p/get", "p50", unit.Second, "b", 0.9, Undecided, None),
		row("api/p/list", "p50", unit.Second, "b", 0.9, Undecided, None),
	}}
	for i := range c.Comparisons {
		c.Comparisons[i].Baseline, c.Comparisons[i].Role = "a", result.Primary
		if i >= 8 {
			c.Comparisons[i].Role = result.Exploratory
		}
	}
	var got []string
	for _, s := range subjects(c, cases) {
		got = append(got, s.Sentence)
	}
	want := []string{
		"Deployments: b is faster than a in create and list; slower in scale; equivalent within ±2 % in update; " +
			"undecided in delete.",
		"Exploratory: Pods: b is undecided against a in get and list.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}
