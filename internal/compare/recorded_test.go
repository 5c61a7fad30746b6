package compare

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestSiteDoubts(t *testing.T) {
	left := func(text string) []result.Warning { return []result.Warning{{Code: result.SiteNotRemoved, Text: text}} }
	sites := []result.Site{
		{Target: "lab:native"},
		{Target: "kube:a", Warnings: left("pod x is left")},
		{Target: "kube:a", Warnings: append(left("pod y is left"), left("and its namespace")...)},
		{Target: "kube:b", Warnings: left("pod z is left")},
		{Target: "kube:a"},
	}
	want := []Warning{
		{Code: SitesWarn, Counts: []TargetCount{{"kube:a", 2, 3}}, Recorded: &left("pod x is left")[0], Varies: true},
		{Code: SitesWarn, Counts: []TargetCount{{"kube:b", 1, 1}}, Recorded: &left("pod z is left")[0]},
	}
	if diff := cmp.Diff(want, siteWarnings(sites)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSitesWarn checks that leftovers of a site are a warning of the comparison, also with two experiments.
func TestSitesWarn(t *testing.T) {
	w := scenario(8, 1)
	r := result.Results{Experiment: w.e, Runs: w.runs, Sites: []result.Site{{
		Target: w.e.Baseline, Warnings: []result.Warning{{Code: result.SiteNotRemoved, Text: "pod x is left"}},
	}}}
	c, err := Compare(r)
	if err != nil {
		t.Fatal(err)
	}
	both, err := compareSeveral(r, result.Results{Experiment: w.e, Runs: w.runs})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Comparison{c, both} {
		if !slices.ContainsFunc(c.Warnings, func(w Warning) bool {
			return w.Code == SitesWarn && w.Recorded.Text == "pod x is left"
		}) {
			t.Errorf("warnings %+v", c.Warnings)
		}
	}
}
