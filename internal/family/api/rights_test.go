package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Each case brings the rights that it uses and no others: cases of namespaces alone those on all namespaces, and only
// those that read metrics the ones on them.
func TestRightsGolden(t *testing.T) {
	text := ""
	for _, c := range all() {
		w := c.Workload.(Workload)
		if text += w.Title() + "\n"; len(w.Traits().Needs.Rights) != len(w.rights()) || !w.Traits().Needs.AsksAPI {
			t.Errorf("%s needs %+v", w, w.Traits().Needs)
		}
		for _, r := range w.rights() {
			text += line(r)
		}
	}
	golden.Check(t, "testdata/rights.txt", text)
}

// line returns a right as text.
func line(r targets.Right) string {
	where := "namespace"
	if r.Purpose.Name != "" {
		where = "CLUSTER, for " + r.Purpose.Name
	}
	verbs := strings.Join(slices.Sorted(slices.Values(r.Verbs)), ",")
	return "  " + where + ": " + strings.TrimPrefix(r.Group+" ", " ") + r.Resource + " " + verbs + "\n"
}
