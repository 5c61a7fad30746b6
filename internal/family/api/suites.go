package api

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The windows of runs. At the default rate of 20 per second the standard one has 200 requests, and 10 pods start in it;
// the short one has 50, from which a median can be had, and too few pods for one.
const (
	standard = 10 * time.Second
	short    = 2500 * time.Millisecond
)

// suites are all of them.
func suites() []family.Suite {
	return []family.Suite{
		{Name: "api", About: "every verb on five resources, lists of three sizes, watches, pods that start and go",
			Cases: all(), Duration: standard},
		{Name: "api:quick", About: "a write, a read, a list and a watch without any controller, in a few minutes",
			Duration: short, Cases: append(cases(result.Primary, primaries...), cases(result.Exploratory, "floor")...)},
		// Per round K-Bench makes 3 deployments, 4 pods and 5 services, and gives the median of these 3 to 5 calls; K-Bench's
		// names and verbs, each 200 times in a run and in as many runs as the design has, without K-Bench's limit of 5
		// requests per second; and the phases of a pod's start, which K-Bench reports too.
		// K-Bench's pods start: so do those of the exploratory cases, few at a time.
		{Name: "api:kbench", About: "K-Bench's default work on deployments, pods and services, often enough for a median",
			Duration: standard, Cases: append(kbench(), cases(result.Exploratory, "pod-startup",
				"deployment/create:replicas=2", "deployment/scale:replicas=2", "deployment/delete:replicas=2",
				"pod/create:start=true", "pod/delete:start=true")...)},
	}
}

// primaries are few, so that each can show a small difference, and on ConfigMaps, so that they are about the API server
// and etcd and not about how many controllers a cluster has: a write, a read of one object, a consistent read of many,
// and how soon others learn of a write.
var primaries = []string{
	"configmap/create", "configmap/get", "configmap/list:objects=100,consistent=true", "configmap/watch",
}

func all() []family.Case {
	list := cases(result.Primary, primaries...)
	var rest []string
	for _, r := range Resources() {
		for _, v := range Verbs(r) {
			rest = append(rest, r+"/"+v)
		}
	}
	rest = append(rest, "configmap/list:consistent=true", "configmap/list:objects=100",
		"configmap/list:objects=100,consistent=true", "configmap/list:objects=1000",
		"configmap/list:objects=1000,consistent=true")
	return family.Once(append(list, cases(result.Exploratory, append(rest, Whole()...)...)...))
}

func kbench() []family.Case {
	return cases(result.Primary,
		"deployment/create", "deployment/list", "deployment/update", "deployment/scale", "deployment/delete",
		"pod/create", "pod/list", "pod/get", "pod/update", "pod/delete",
		"service/create", "service/list", "service/get", "service/update", "service/delete")
}

func cases(role result.Role, names ...string) []family.Case {
	return family.Cases(role, func(name string) (family.Workload, error) { return Parse(name) }, names...)
}
