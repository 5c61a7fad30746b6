package api

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The windows of runs. At the default rates the standard window has 200 requests, or 10 pods that start. The short
// window has 50 requests, which are enough for a median; its pods are too few.
const (
	standard = 10 * time.Second
	short    = 2500 * time.Millisecond
)

// suites returns the family's suites.
func suites() []family.Suite {
	return []family.Suite{
		{Name: "api", About: "every verb on five resources, lists of three sizes, watches, pods that start and go",
			Cases: all(), Duration: standard},
		{Name: "api:quick", About: "a write, a read, a list and a watch without any controller, in a few minutes",
			Duration: short, Cases: append(cases(result.Primary, primaries...), cases(result.Exploratory, "floor")...)},
		// In each round K-Bench creates 3 deployments, 4 pods and 5 services, and reports the median of these 3 to 5
		// calls. This suite has K-Bench's names and verbs, each call 200 times per run, without K-Bench's limit of 5
		// requests per second, and the phases of a pod's start, which K-Bench reports too. K-Bench's pods start; here
		// those of the exploratory cases start, few at a time.
		{Name: "api:kbench", About: "K-Bench's default work on deployments, pods and services, often enough for a median",
			Duration: standard, Cases: append(kbench(), cases(result.Exploratory, "pod-startup",
				"deployment/create:replicas=2", "deployment/scale:replicas=2", "deployment/delete:replicas=2",
				"pod/create:start=true", "pod/delete:start=true")...)},
	}
}

// primaries lists the primary cases. They are few, so that each can show a small difference, and on ConfigMaps, so that
// they measure the API server and etcd and not the controllers of a cluster: a write, a read of one object, a
// consistent read of many, and the delay of a watch.
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
	return family.Unique(append(list, cases(result.Exploratory, append(rest, VerbsWithoutResource()...)...)...))
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
