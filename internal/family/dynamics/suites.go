package dynamics

import (
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// suites returns the family's suites. They have no duration: the length of a run is that of its trials.
func suites() []family.Suite {
	var all []string
	for _, c := range changes {
		all = append(all, string(c))
	}
	all = append(all, "endpoint-gone:how=abrupt", "endpoint-gone:at=same", "endpoint-gone:at=same,how=abrupt",
		"policy-deny:at=same", "endpoint-ready:at=same")
	quick := cases(result.Primary, string(PolicyDeny), string(ServiceProgramming), "endpoint-gone:how=abrupt")
	return []family.Suite{
		{Name: path, About: "policies, endpoints, Services and pods that come and go: how long it takes, what is lost",
			Cases: family.Unique(append(quick[:len(quick):len(quick)], cases(result.Exploratory, all...)...))},
		{Name: path + ":quick", About: "a policy, a new Service, a pod that dies, and the start of a pod",
			Cases: append(quick[:len(quick):len(quick)], cases(result.Exploratory, "first-packet")...)},
	}
}

func cases(role result.Role, names ...string) []family.Case {
	return family.Cases(role, func(name string) (family.Workload, error) { return Parse(name) }, names...)
}
