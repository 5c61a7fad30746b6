//go:build linux

// Package paths tests whole runs on a real cluster: that traffic takes the path in a case's name, by the counters of
// the nodes, and that a run reports as much as one in the lab.
package paths

import (
	"errors"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// The names of the two targets of the experiment.
const (
	onCluster = "cluster"
	inLab     = "lab"
)

// A network describes a pods' network of test/cluster: the lab's datapath of the same design, and what must be true of
// it.
type network struct {
	lab    string            // target of the lab
	tunnel bool              // traffic between pods of two nodes is encapsulated
	facts  map[string]string // of the target
	podMTU string
	// enforces reports whether NetworkPolicies have an effect. hostile returns a cluster-wide policy of the product's
	// own kind against the pods of a namespace, with the API path to create it at; nil if the product has none.
	enforces bool
	hostile  func(namespace string) (path string, object any)
	// balances holds the paths by a Service whose connections the product balances in place of kube-proxy.
	balances []result.Path
	// redirects reports whether eBPF delivers packets to a pod without passing its device on the node.
	redirects bool
	// localMTU is the MTU of a path from a node to its own pods; empty: podMTU.
	localMTU string
	// source returns the first word of the fact source-address of a run on a path: preserved or translated.
	source func(result.Path) string
}

// networks returns the networks of test/cluster, by name.
func networks() map[string]network {
	translated := func(paths ...result.Path) func(result.Path) string {
		return func(p result.Path) string {
			if slices.Contains(paths, p) {
				return "translated"
			}
			return "preserved"
		}
	}
	// The test cluster has no daemon set of flannel; and flannel encrypts only by its WireGuard backend.
	const flannel, plain = "flannel", "none"
	fromPods := []result.Path{result.PodSvcSame, result.PodSvcOther}
	const ciliumProxy = "iptables; cilium for connections of pods"
	return map[string]network{
		// The network consists of the nodes' routes, which the API does not show. kube-proxy translates the source of
		// packets from a node to a Service to the address of the device that they leave by.
		"native": {
			lab: "lab:native", podMTU: "1500", source: translated(result.NodeSvcSame),
			facts: map[string]string{
				"cni": result.Unknown, "encapsulation": result.Unknown, "encryption": result.Unknown,
				"kube-proxy": "iptables", "pod-mtu": "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
		// flannel has its own address on the tunnel, and masquerades pods outside their network.
		"flannel-vxlan": {
			lab: "lab:vxlan", tunnel: true, podMTU: "1450", source: translated(result.NodeSvcSame, result.NodeSvcOther,
				result.PodNodeOther),
			facts: map[string]string{
				"cni": flannel, "encapsulation": "vxlan", "encryption": plain,
				"kube-proxy": "iptables", "pod-mtu": "1450", "node-mtu": "1500",
				"tunnel-mtu": "fits",
			},
		},
		"flannel-host-gw": {
			lab: "lab:native", podMTU: "1500", source: translated(result.NodeSvcSame, result.PodNodeOther),
			facts: map[string]string{
				"cni": flannel, "encapsulation": "none", "encryption": plain,
				"kube-proxy": "iptables", "pod-mtu": "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
		"kube-router": {
			lab: "lab:native", podMTU: "1500", enforces: true, source: translated(result.NodeSvcSame),
			facts: map[string]string{
				"cni": "kube-router", "cni-image": "kube-router:v2.6.3-k3s1",
				"encapsulation": "none", "encryption": "none",
				"kube-proxy": "iptables", "pod-mtu": "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
		"calico-vxlan": {
			lab: "lab:vxlan", tunnel: true, podMTU: "1450", enforces: true, hostile: calicoHostile,
			source: translated(result.NodeSvcOther, result.PodNodeOther),
			facts: map[string]string{
				"cni": "calico", "cni-image": "node:v3.31.0",
				"encapsulation": "vxlan", "encryption": "none",
				"kube-proxy": "iptables", "pod-mtu": "1450", "node-mtu": "1500",
				"tunnel-mtu": "fits",
			},
		},
		"calico-direct": {
			lab: "lab:native", podMTU: "1500", enforces: true, hostile: calicoHostile,
			source: translated(result.PodNodeOther),
			facts: map[string]string{
				"cni": "calico", "encapsulation": "none", "encryption": "none",
				"kube-proxy": "iptables", "pod-mtu": "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
		"cilium-vxlan": {
			lab: "lab:vxlan", tunnel: true, podMTU: "1450", localMTU: "1500", enforces: true, hostile: ciliumHostile,
			balances: fromPods,
			source:   translated(result.NodeSvcSame, result.NodeSvcOther, result.PodNodeOther),
			facts: map[string]string{
				"cni": "cilium", "cni-image": "cilium:v1.19.3",
				"encapsulation": "vxlan", "encryption": "none",
				"kube-proxy": ciliumProxy, "pod-mtu": "1450", "node-mtu": "1500",
				"tunnel-mtu": "fits",
			},
		},
		"cilium-native": {
			lab: "lab:native", podMTU: "1500", enforces: true, hostile: ciliumHostile, balances: fromPods,
			source: translated(result.NodeSvcSame),
			facts: map[string]string{
				"cni": "cilium", "encapsulation": "none",
				"encryption": "none",
				"kube-proxy": ciliumProxy, "pod-mtu": "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
		"cilium-native-kpr": {
			lab: "lab:native", podMTU: "1500", enforces: true, hostile: ciliumHostile, redirects: true,
			balances: append(fromPods, result.NodeSvcSame, result.NodeSvcOther), source: translated(result.NodeSvcSame),
			facts: map[string]string{
				"cni": "cilium", "encapsulation": "none",
				"encryption": "none",
				"kube-proxy": "replaced by cilium",
				"pod-mtu":    "1500", "node-mtu": "1500", "tunnel-mtu": "",
			},
		},
	}
}

// network returns the description of the cluster's network, and skips the test if there is none.
func (c cluster) network(t *testing.T) network {
	t.Helper()
	n, ok := networks()[c.Network]
	if !ok {
		t.Skipf("the test does not describe the pods' network %q, only %v", c.Network,
			slices.Sorted(maps.Keys(networks())))
	}
	n.enforces = n.enforces || c.Filter
	return n
}

// An outcome is the results of an experiment, with the counters of the nodes during its runs, by run ID.
type outcome struct {
	*store.Results
	cases    []string
	observed map[string]*observation
}

// A testTarget is a target of an experiment.
type testTarget struct {
	name, text string
	watched    bool // whether to read the counters of its nodes around each run
}

// measure runs one block of the cases over an IP version, on the cluster and in the lab.
func measure(t *testing.T, c cluster, n network, ip string, cases []string) outcome {
	t.Helper()
	return runExperiment(t, c, 1, cases, testTarget{onCluster, c.target("ip=" + ip), true},
		testTarget{inLab, n.lab + "?ip=" + ip, false})
}

// runExperiment runs the cases on targets, the first of which is the baseline, as `knotmeter run` does.
func runExperiment(t *testing.T, c cluster, blocks int, cases []string, list ...testTarget) outcome {
	t.Helper()
	var targets []runner.Target
	r := &recorder{watched: map[string]*watched{}, observed: map[string]*observation{}}
	for _, one := range list {
		places := open(t, one.text)
		if one.watched {
			r.watched[one.name] = &watched{Target: places, cluster: c}
			places = r.watched[one.name]
		}
		targets = append(targets, runner.Target{
			Target: result.Target{Name: one.name, Spec: result.SpecOf(one.text)}, Places: places})
	}
	design := runner.DefaultDesign()
	design.Blocks, design.Looks, design.Duration, design.Warmup = blocks, nil, 0.5, 0.1
	now := time.Now()
	families := registry.Families()
	e, err := runner.Resolve(t.Context(), runner.Options{
		Families: families,
		ID:       store.NewID(now), Version: "test", Created: now, Targets: targets, Baseline: list[0].name,
		Suites: []family.Suite{{Name: "paths"}}, Cases: cases, Tool: native.New(), Seed: 1, Design: design,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "results")
	if r.Writer, err = store.Create(dir, e); err != nil {
		t.Fatal(err)
	}
	summary, err := runner.Run(t.Context(), runner.Config{Experiment: e, Targets: targets, Families: families,
		Tool: native.New(), Sink: r})
	if err := r.Writer.Close(); err != nil {
		t.Error(err)
	}
	if err != nil || summary.Stopped != runner.StopComplete {
		t.Fatalf("the experiment ended %s: %v", summary.Stopped, err)
	}
	t.Logf("%d runs in %.0f s, %.0f %% of them measuring", summary.Runs, summary.Total, 100*summary.Share())
	results, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{results, cases, r.observed}
}

// open returns a target, which is closed at the end of the test.
func open(t *testing.T, text string) targets.Target {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	places, err := registry.Target(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := places.Close(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	})
	return places
}

// product returns the cases of every path with every workload.
func product(paths []result.Path, workloads ...netload.Kind) (names []string) {
	for _, p := range paths {
		for _, k := range workloads {
			names = append(names, string(p)+"/"+string(k))
		}
	}
	return names
}

// splitCase returns the path and the workload of a case without parameters.
func splitCase(name string) (result.Path, netload.Kind) {
	i := strings.LastIndex(name, "/")
	return result.Path(name[:i]), netload.Kind(name[i+1:])
}

// TestPaths checks that all cases on the cluster are measured, take the path in their name, and report as much as in
// the lab.
func TestPaths(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	n := c.network(t)
	o := measure(t, c, n, "4", product(result.Paths(), netload.TCPStream, netload.TCPRR, netload.TCPCRR, netload.UDPRR))
	o.check(t, n)
	n.check(t, o.Facts[onCluster])
}

// TestFacts checks that the facts of the target are true.
func TestFacts(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	n := c.network(t)
	facts, err := open(t, c.target(`config={annotations: {kubernetes.io/egress-bandwidth: 50M}}`)).Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.check(t, facts)
	if got := result.FactOf(facts, "pod-bandwidth"); got != "egress 50M (annotations of the pods)" {
		t.Errorf("pod-bandwidth is %q", got)
	}
}

// check checks the facts of a target.
func (n network) check(t *testing.T, facts []result.Fact) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(n.facts)) {
		if got := result.FactOf(facts, name); got != n.facts[name] {
			t.Errorf("%s is %q, not %q", name, got, n.facts[name])
		}
	}
}

// TestIPv6 is TestPaths over IPv6, if the cluster has it.
func TestIPv6(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	if !c.IPv6 {
		t.Skip("the cluster has no IPv6")
	}
	n := c.network(t)
	paths := []result.Path{result.PodPodSame, result.PodPodOther, result.PodSvcSame, result.PodSvcOther}
	o := measure(t, c, n, "6", product(paths, netload.TCPStream, netload.TCPRR))
	o.check(t, n)
	for _, r := range o.Runs {
		if dial, err := netip.ParseAddrPort(r.Fact("dial")); err != nil || !dial.Addr().Is6() || dial.Addr().Is4In6() {
			t.Errorf("%s on %s: the client dials %q (%v), which is not IPv6", r.Case, r.Target, r.Fact("dial"), err)
		}
	}
}

// TestNoIPv6 checks that the errors of a cluster without IPv6 say so, for pods, nodes and Services.
func TestNoIPv6(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	if c.IPv6 {
		t.Skip("the cluster has IPv6")
	}
	k := open(t, c.target("ip=6"))
	// Services come first: once pods are known to have no IPv6, Services are refused for that reason.
	for _, test := range []struct {
		result.Path
		what string
	}{{result.PodSvcOther, "Services"}, {result.PodPodOther, "pods"}, {result.NodeNode, "nodes"}} {
		p, what := test.Path, test.what
		_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: p})
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
			"the cluster's "+what+" have no IPv6 addresses") {
			t.Errorf("%s: %v", p, err)
		}
		if again := k.Supports(targets.Placement{Path: p}); !errors.Is(again, result.ErrNotSupported) {
			t.Errorf("%s: asked again, it is %v", p, again)
		}
	}
}

// check runs the checks of every outcome.
func (o outcome) check(t *testing.T, n network) {
	t.Run("complete", o.checkComplete)
	t.Run("counters", func(t *testing.T) { o.checkCounters(t, n) })
	t.Run("facts", func(t *testing.T) { o.checkFacts(t, n) })
	t.Run("cost", o.checkCost)
	t.Run("same-as-lab", o.compareWithLab)
}

// checkComplete checks that each case has a valid run on both targets, and that nothing was left out.
func (o outcome) checkComplete(t *testing.T) {
	for _, n := range o.Experiment.NotMeasured {
		t.Errorf("not measured: %s on %s: %s", n.Case, n.Target, n.Reason)
	}
	for _, r := range o.Runs {
		// On a busy machine a window may be too short; the runner then measures again.
		if !r.Valid() && r.Invalid[0].Code != result.ShortWindow {
			t.Errorf("%s on %s: invalid: %s", r.Case, r.Target, strings.Join(result.Texts(r.Invalid), "; "))
		}
	}
	for _, name := range o.cases {
		for _, target := range []string{onCluster, inLab} {
			if r := o.run(name, target); r == nil {
				t.Errorf("%s has no valid run on %s", name, target)
			}
		}
	}
}

// run returns the first valid run of a case on a target; nil if there is none.
func (o outcome) run(name, target string) *result.Run {
	i := slices.IndexFunc(o.Runs, func(r result.Run) bool { return r.Case == name && r.Target == target && r.Valid() })
	if i < 0 {
		return nil
	}
	return &o.Runs[i]
}
