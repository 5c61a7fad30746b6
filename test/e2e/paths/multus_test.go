//go:build linux

package paths

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// The networks that test/cluster makes with -multus, in addition to the default network and in its place, with the
// names of the targets that use them.
const (
	attachment        = "default/macvlan"
	byAttachment      = "macvlan"
	defaultAttachment = "default/macvlan-veth"
	byDefault         = "macvlan-veth"
)

// TestMultus compares the default network of a cluster with one that Multus attaches pods to: the traffic of each
// passes its own devices, and the facts of the nodes are the same.
func TestMultus(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	c.needMultus(t)
	n := c.network(t)
	cases := append(product([]result.Path{result.PodPodOther, result.PodPodSame}, netload.TCPRR),
		product([]result.Path{result.PodPodOther}, netload.TCPStream)...)
	const blocks = 2
	o := runExperiment(t, c, blocks, cases, testTarget{onCluster, c.target("ip=4"), true}, testTarget{byAttachment,
		c.target("ip=4", "network="+attachment), true})
	for _, n := range o.Experiment.NotMeasured {
		t.Errorf("not measured: %s on %s: %s", n.Case, n.Target, n.Reason)
	}
	count := map[string]int{}
	for _, r := range o.Runs {
		if !r.Valid() {
			continue
		}
		count[r.Target+" "+r.Case]++
		p, kind := splitCase(r.Case)
		s := o.observed[r.ID]
		if s == nil {
			t.Errorf("%s on %s: the nodes were not read", r.Case, r.Target)
			continue
		}
		devices := devices(p, n)
		if r.Target == byAttachment {
			devices = devicesAttached(p, n)
			if got := r.Fact("source-address"); !strings.HasPrefix(got, "preserved") {
				t.Errorf("%s: the client's address was %s", r.Case, got)
			}
		}
		for _, d := range devices {
			if wrong := loadOf(r, kind).check(d, s); wrong != "" {
				t.Errorf("%s on %s: %s", r.Case, r.Target, wrong)
			}
		}
	}
	for _, name := range cases {
		for _, target := range []string{onCluster, byAttachment} {
			if got := count[target+" "+name]; got < blocks {
				t.Errorf("%s on %s has %d valid runs, not %d", name, target, got, blocks)
			}
		}
	}
	o.checkAttachmentFacts(t)
}

// checkAttachmentFacts checks the facts of the pods' device, and that those of the nodes are the same as without it.
func (o outcome) checkAttachmentFacts(t *testing.T) {
	for name, want := range map[string]string{
		"network": attachment, "pod-device": "net1", "pod-driver": "macvlan", "encapsulation": result.Unknown,
		"encryption": result.Unknown,
	} {
		if got := result.FactOf(o.Facts[byAttachment], name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	for _, f := range o.Facts[onCluster] {
		host := f.Name == "kube-proxy" || strings.HasPrefix(f.Name, "node-") || strings.HasPrefix(f.Name, "node.")
		if got := result.FactOf(o.Facts[byAttachment], f.Name); host && got != f.Value {
			t.Errorf("%s is %q with the attachment and %q without", f.Name, got, f.Value)
		}
	}
}

// TestMultusElsewhere checks that an attachment supports only traffic between pods, and that the error for other
// traffic names it.
func TestMultusElsewhere(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	c.needMultus(t)
	k := open(t, c.target("network="+attachment))
	for _, p := range append(targettest.On(result.Paths()...), targets.Placement{}, targets.Placement{Volume: true},
		targets.Placement{AsksAPI: true}) {
		err := k.Supports(p)
		between := p.Path == result.PodPodSame || p.Path == result.PodPodOther
		if between && err != nil || !between && (!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
			attachment)) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestNoSuchAttachment checks that the error for a network that does not exist names the option and its format.
func TestNoSuchAttachment(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	c.needMultus(t)
	for _, option := range []string{"network", "default-network"} {
		nowhere := open(t, c.target(option+"=default/nowhere"))
		_, err := targets.OpenOne(t.Context(), nowhere, targets.Placement{Path: result.PodPodOther})
		if err == nil || !strings.Contains(err.Error(), option+"=NAMESPACE/NAME") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestMacvlanDefault compares the network of a cluster with macvlan in its place, next to the plugin veth, which routes
// traffic to the node and to Services through the node: all paths are measured, on the expected devices.
func TestMacvlanDefault(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	c.needMultus(t)
	n := c.network(t)
	cases := product(result.Paths(), netload.TCPStream, netload.TCPRR, netload.TCPCRR)
	o := runExperiment(t, c, 1, cases, testTarget{onCluster, c.target("ip=4"), false}, testTarget{byDefault,
		c.target("ip=4", "default-network="+defaultAttachment), true})
	for _, n := range o.Experiment.NotMeasured {
		t.Errorf("not measured: %s on %s: %s", n.Case, n.Target, n.Reason)
	}
	for _, name := range cases {
		r := o.run(name, byDefault)
		if r == nil {
			t.Errorf("%s has no valid run", name)
			continue
		}
		p, kind := splitCase(name)
		s, load := o.observed[r.ID], loadOf(*r, kind)
		for _, d := range devicesByDefault(p, n) {
			if wrong := load.check(d, s); wrong != "" {
				t.Errorf("%s: %s", name, wrong)
			}
		}
		if wrong := load.checkService(p, s); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
		source := "preserved"
		if p == result.PodSvcSame || p == result.PodSvcOther { // kube-proxy does not know these pods' addresses as pods
			source = "translated"
		}
		if got, _, _ := strings.Cut(r.Fact("source-address"), " "); got != source {
			t.Errorf("%s: the client's address was %s, not %s", name, r.Fact("source-address"), source)
		}
	}
	for name, want := range map[string]string{
		"default-network": defaultAttachment, "cni": "macvlan + veth",
		"encapsulation": result.Unknown, "encryption": result.Unknown, "kube-proxy": n.facts["kube-proxy"],
		"pod-device": "eth0", "pod-driver": "macvlan", "pod-mtu": "1500", "node-mtu": "1500",
	} {
		if got := result.FactOf(o.Facts[byDefault], name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if !slices.ContainsFunc(o.Facts[byDefault], func(f result.Fact) bool {
		return f.Name == "cni" && f.Evidence == "NetworkAttachmentDefinition "+defaultAttachment
	}) {
		t.Errorf("the evidence of the CNI is missing: %+v", o.Facts[byDefault])
	}
}

// TestMacvlanDefaultElsewhere checks that a network in place of the default network supports every placement.
func TestMacvlanDefaultElsewhere(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	c.needMultus(t)
	k := open(t, c.target("default-network="+defaultAttachment, "storage-class=loop-ext4"))
	for _, p := range append(targettest.On(result.Paths()...), targets.Placement{}, targets.Placement{Volume: true},
		targets.Placement{AsksAPI: true}) {
		if err := k.Supports(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	place, err := targets.OpenOne(t.Context(), k, targets.Placement{AsksAPI: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// needMultus skips the test if the API server does not have the kind NetworkAttachmentDefinition.
func (c cluster) needMultus(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.Discovery().ServerResourcesForGroupVersion("k8s.cni.cncf.io/v1")
	if apierrors.IsNotFound(err) && !c.Multus {
		t.Skip("the cluster has no Multus: its API server has no kind NetworkAttachmentDefinition; " +
			"'cluster up -multus' makes one that has")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// devicesByDefault returns the devices with macvlan in place of the default network and the plugin veth next to it.
// Traffic between a pod and a Service, or its own node, takes the pair of devices between the pod and the node.
func devicesByDefault(p result.Path, n network) []device {
	byNode := p.Service() && (p.ClientPod() || p.Same()) || p.ClientPod() && !p.ServerPod() && p.Same()
	taken := map[string]bool{
		"client's device in the attachment":        p.ClientPod() && !byNode,
		"server's device in the attachment":        p.ServerPod() && !(byNode && p.Same()),
		"underlay":                                 p.Other(),
		"devices of the pods on the client's node": byNode,
		serversPods:                                byNode && p.Same(),
	}
	list := devicesAttached(p, n)
	for i, d := range list {
		list[i].onPath = taken[d.name]
	}
	return list
}

// devicesAttached returns the devices for an attachment: macvlan's own in both pods, and between nodes the underlay.
// The nodes' devices of the default network are off the path.
func devicesAttached(p result.Path, n network) []device {
	of := func(server bool) func(*observation) traffic {
		return func(s *observation) (t traffic) {
			for address, counted := range s.attached {
				if (address == s.listen) == server {
					t = t.plus(counted)
				}
			}
			return t
		}
	}
	atClient, atServer := of(false), of(true)
	list := []device{
		{
			name: "client's device in the attachment", onPath: true,
			there: func(s *observation) (uint64, uint64) { return atClient(s).txBytes, atClient(s).txPackets },
			back:  func(s *observation) (uint64, uint64) { return atClient(s).rxBytes, atClient(s).rxPackets },
		},
		{
			name: "server's device in the attachment", onPath: true,
			there: func(s *observation) (uint64, uint64) { return atServer(s).rxBytes, atServer(s).rxPackets },
			back:  func(s *observation) (uint64, uint64) { return atServer(s).txBytes, atServer(s).txPackets },
		},
	}
	for _, d := range devices(p, n) {
		d.onPath = d.name == "underlay" && p.Other()
		list = append(list, d)
	}
	return list
}

// attached returns the counters of the pods' macvlan devices, by address.
func (c cluster) attached() (map[netip.Addr]traffic, error) {
	if !c.Multus {
		return nil, nil
	}
	files, err := c.within("find", "/run/netns", "-name", "cni-*")
	if err != nil {
		return nil, err
	}
	found := map[netip.Addr]traffic{}
	for _, file := range strings.Fields(string(files)) {
		text, err := c.within("ip", "-n", filepath.Base(file), "-details", "-statistics", "-json", "address",
			"show")
		if err != nil {
			if _, gone := c.within("test", "-e", file); gone != nil {
				continue // it ended with its pod
			}
			return nil, err
		}
		if err := parseAttached(text, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// parseAttached adds the counters of a pod's macvlan devices to found, from the output of ip.
func parseAttached(text []byte, found map[netip.Addr]traffic) error {
	var list []struct {
		Link struct {
			Kind string `json:"info_kind"`
		} `json:"linkinfo"`
		Addresses []struct {
			Local  netip.Addr
			Family string
		} `json:"addr_info"`
		Counters struct {
			RX, TX struct{ Bytes, Packets uint64 }
		} `json:"stats64"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("what ip reports of a pod's devices: %w", err)
	}
	for _, d := range list {
		for _, a := range d.Addresses {
			if d.Link.Kind == "macvlan" && a.Family == "inet" {
				found[a.Local] = traffic{d.Counters.RX.Bytes, d.Counters.RX.Packets, d.Counters.TX.Bytes, d.Counters.TX.Packets}
			}
		}
	}
	return nil
}
