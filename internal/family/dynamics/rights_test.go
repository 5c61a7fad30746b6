package dynamics

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// Each change brings the rights that its trials use and no others, all of them in the namespace of the runs.
func TestRightsGolden(t *testing.T) {
	text := ""
	for _, c := range changes {
		needs := Workload{Change: c}.Traits().Needs
		if text += string(c) + "\n"; !needs.AsksAPI || !needs.ProbesPods {
			t.Errorf("%s needs %+v", c, needs)
		}
		for _, r := range needs.Rights {
			if r.Purpose.Name != "" {
				t.Errorf("%s needs %+v in the whole cluster", c, r)
			}
			verbs := strings.Join(slices.Sorted(slices.Values(r.Verbs)), ",")
			text += "  " + strings.TrimPrefix(r.Group+" ", " ") + r.Resource + " " + verbs + "\n"
		}
	}
	golden.Check(t, "testdata/rights.txt", text)
}
