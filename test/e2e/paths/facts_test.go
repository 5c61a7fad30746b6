//go:build linux

package paths

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// checkFacts checks the MTU and the source address of each run, which follow from its path and the network.
func (o outcome) checkFacts(t *testing.T, n network) {
	for _, r := range o.Runs {
		if r.Target != onCluster || !r.Valid() {
			continue
		}
		p, _ := splitCase(r.Case)
		mtu := "1500"
		if p.ClientPod() || p.ServerPod() {
			mtu = n.podMTU
		}
		if p.Same() && !p.ClientPod() && n.localMTU != "" {
			mtu = n.localMTU
		}
		if got := r.Fact("mtu"); got != mtu {
			t.Errorf("%s: the MTU is %s, not %s", r.Case, got, mtu)
		}
		if got, _, _ := strings.Cut(r.Fact("source-address"), " "); got != n.source(p) {
			t.Errorf("%s: the client's address was %s, not %s", r.Case, r.Fact("source-address"), n.source(p))
		}
	}
}

// checkCost checks that the sites record their pods and requests to the API server, and that each pair of ends took
// few.
func (o outcome) checkCost(t *testing.T) {
	const most = 25 // requests per pair: making, watching and removing pods and a Service; commands in the pods
	pairs := map[[3]bool]bool{}
	for _, r := range o.Runs {
		p, _ := splitCase(r.Case)
		pairs[[3]bool{p.ClientPod(), p.ServerPod(), p.Other()}] = true
	}
	sites := 0
	for _, s := range o.Sites {
		if s.Target != onCluster {
			continue
		}
		sites++
		if pods, _ := s.Value("pods"); int(pods.Number) != 2*len(pairs) {
			t.Errorf("%v pods for %d pairs", pods.Number, len(pairs))
		}
		if calls, _ := s.Value("api-calls"); calls.Number < 6 || int(calls.Number) > most*len(pairs) {
			t.Errorf("%v requests to the API server for %d pairs", calls.Number, len(pairs))
		}
	}
	if sites == 0 {
		t.Error("no site is recorded")
	}
}

// expectedDifferences returns the facts and metrics of runs that only one kind of target can have, with the reasons.
func expectedDifferences() map[string]map[string]string {
	return map[string]map[string]string{
		onCluster: {
			"source-address": "kube-proxy may translate it; the lab's Services never do",
			"image":          "the lab has no images", "image-digest": "the lab has no images",
			"sidecars":      "the lab has no pods to inject one into",
			"cpu-limit":     "the lab has no containers whose CPU time could be limited",
			"agent":         "the lab has only one way to start the agent",
			"agent-version": "in the lab the agent is the program itself, whose version is the experiment's",
			"layers.client": "pods may not sample the node's CPUs", "layers.server": "pods may not sample the node's CPUs",
		},
		inLab: {
			"path-mtu": "the datapath check of the lab finds it by sending; " +
				"on a cluster TCP's own pmtu is a metric of the run",
			"underlay-header": "the underlay of a cluster is not captured",
			"encapsulation":   "on a cluster it is a fact of the target",
			"encryption":      "on a cluster it is a fact of the target",
			"proxy":           "on a cluster it is a fact of the target",
		},
	}
}

// optional reports whether a run may lack a metric: it needs enough operations, sampled CPUs, or a counter of the
// kernel that is not zero. The node's counters are recorded in the lab alone.
func optional(metric string) bool {
	of := func(prefix string) bool { return strings.HasPrefix(metric, prefix) }
	return of("kernel.") || of("p90 ") || of("p99 ") || of("p99.9 ") || of("cpu-per-op.") || of("cpu-per-gb.")
}

// compareWithLab checks that a run on the cluster has the same metrics, histograms, series and facts as one in the lab.
func (o outcome) compareWithLab(t *testing.T) {
	for _, name := range o.cases {
		a, b := o.run(name, onCluster), o.run(name, inLab)
		if a == nil || b == nil {
			continue
		}
		for kind, names := range map[string]func(*result.Run) []string{"metric": metrics, "series": series,
			"histogram": histograms, "fact": factNames} {
			for _, missing := range without(names(b), names(a)) {
				if why := expectedDifferences()[inLab][missing]; why == "" && !optional(missing) {
					t.Errorf("%s: the run in the lab has the %s %q, that on the cluster not", name, kind, missing)
				}
			}
			for _, more := range without(names(a), names(b)) {
				if why := expectedDifferences()[onCluster][more]; why == "" && !optional(more) {
					t.Errorf("%s: the run on the cluster has the %s %q, that in the lab not", name, kind, more)
				}
			}
		}
		for _, f := range a.Facts {
			if f.Value == result.Unknown && b.Fact(f.Name) != result.Unknown {
				t.Errorf("%s: %s is unknown on the cluster", name, f.Name)
			}
		}
	}
}

func without(names, others []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(others, n) })
}

func metrics(r *result.Run) (names []string) {
	for _, v := range r.Values {
		names = append(names, v.Metric+" in "+string(v.Unit))
	}
	return names
}

func series(r *result.Run) (names []string) {
	for _, s := range r.Series {
		names = append(names, s.Name)
	}
	return names
}

func histograms(r *result.Run) (names []string) {
	for _, h := range r.Histograms {
		names = append(names, h.Name+" in "+h.Unit)
	}
	return names
}

func factNames(r *result.Run) (names []string) {
	for _, f := range r.Facts {
		names = append(names, f.Name)
	}
	return names
}
