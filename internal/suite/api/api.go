// Package api is the suites of cases of a Kubernetes API server: what is asked of it, one resource and one verb at a time.
//
// What the cases tell, and what they do not:
//
//   - configmap/* tells what the API server and etcd take by themselves: no controller, no scheduler and no node has to do with
//     ConfigMaps. It does not tell what admission webhooks for other resources take.
//   - namespace/*, service/* and deployment/* tell how soon the API server answers while controllers work on what was asked:
//     finalizers, addresses, ReplicaSets. They do not tell when the controllers are done.
//   - pod/* tells the same of pods that no node can have. It does not tell how long pods take to start.
//   - list tells what reading takes that is not of one object: from the API server's memory, or consistent=true as of now.
//   - watch tells how long after its request those who watch learn of a new object.
//   - floor tells the round trip with hardly any work (GET /version); the others are not below it.
//   - pod-startup tells how long a pod takes from the request until it is seen to be ready, of an image that is on the node; not what
//     pulling images takes. pod-deletion tells how long one takes to be gone.
//
// All are asked one by one at planned times, at a rate that a healthy server does not feel; none tells what it can carry
// (knee= does).
package api

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// The windows of runs. At the default rate of 20 per second the standard one has 200 requests, and 10 pods start in it.
const (
	standard = 10 * time.Second
	short    = 7 * time.Second // seven pods, from which a median can be had
)

// Suites are all of them.
func Suites() []suite.Suite {
	return []suite.Suite{
		{Name: "api", About: "every verb on five resources, lists of three sizes, watches, pods that start and go", Cases: all(), Duration: standard},
		{Name: "api:quick", About: "a write, a read, a list and a watch without any controller, and the start of pods", Duration: short, Cases: append(
			cases(result.Primary, primaries()...), cases(result.Exploratory, "floor", "pod-startup")...)},
		// Per round K-Bench makes 3 deployments, 4 pods and 5 services, and gives the median of these 3 to 5 calls; K-Bench's names
		// and verbs, each 200 times in a run and in as many runs as the design has, without K-Bench's limit of 5 requests per second.
		{Name: "api:kbench", About: "K-Bench's default work on deployments, pods and services, often enough for a median", Duration: standard, Cases: kbench()},
	}
}

// primaries are few, so that each can show a small difference, and on ConfigMaps, so that they are about the API server and etcd
// and not about how many controllers a cluster has: a write, a read of one object, a consistent read of many, and how soon others
// learn of a write.
func primaries() []string {
	return []string{"configmap/create", "configmap/get", "configmap/list:objects=100,consistent=true", "configmap/watch"}
}

func all() []suite.Case {
	list := cases(result.Primary, primaries()...)
	var rest []string
	for _, r := range workload.Resources() {
		for _, v := range workload.Verbs(r) {
			rest = append(rest, r+"/"+v)
		}
	}
	for _, objects := range []string{"", "objects=100", "objects=1000"} {
		for _, consistent := range []string{"", "consistent=true"} {
			options := objects
			if objects != "" && consistent != "" {
				options += ","
			}
			if options += consistent; options != "" {
				rest = append(rest, "configmap/list:"+options)
			}
		}
	}
	return without(append(list, cases(result.Exploratory, append(rest, workload.Whole()...)...)...))
}

// without leaves out what is there a second time.
func without(list []suite.Case) []suite.Case {
	seen := map[string]bool{}
	var kept []suite.Case
	for _, c := range list {
		if !seen[c.Name()] {
			seen[c.Name()] = true
			kept = append(kept, c)
		}
	}
	return kept
}

func kbench() []suite.Case {
	return cases(result.Primary,
		"deployment/create", "deployment/list", "deployment/update", "deployment/scale", "deployment/delete",
		"pod/create", "pod/list", "pod/get", "pod/update", "pod/delete",
		"service/create", "service/list", "service/get", "service/update", "service/delete")
}

func cases(role result.Role, names ...string) []suite.Case {
	var list []suite.Case
	for _, name := range names {
		w, err := workload.ParseCall(name)
		if err != nil {
			panic("a case of a suite is none: " + err.Error())
		}
		list = append(list, suite.Case{Path: target.API, Workload: w, Role: role})
	}
	return list
}
