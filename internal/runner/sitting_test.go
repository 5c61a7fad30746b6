package runner

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// named is a workload that needs its own sites if its name begins with a dash.
type named string

func (n named) String() string { return string(n) }

func (n named) Traits() family.Traits {
	return family.Traits{Kind: string(n), Alone: strings.HasPrefix(string(n), "-")}
}

func TestGroupBySites(t *testing.T) {
	for _, test := range []struct{ cases, want string }{
		{"a b c", "a b c"},
		{"-a", "-a"},
		{"a -b c", "a c|-b"},
		{"-a b -c d", "-a|b d|-c"},
	} {
		s := &session{workloads: map[string]family.Workload{}}
		var cases []CaseBlock
		for name := range strings.FieldsSeq(test.cases) {
			s.workloads[name] = named(name)
			cases = append(cases, CaseBlock{Case: result.Case{Name: name}})
		}
		var got []string
		for _, group := range s.groupBySites(cases) {
			var names []string
			for _, b := range group {
				names = append(names, b.Case.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%s: %q, want %q", test.cases, got, test.want)
		}
	}
}
