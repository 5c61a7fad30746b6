package inspection

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// TestNodeFacts checks that a fact has the values of all nodes if they differ.
func TestNodeFacts(t *testing.T) {
	a, b := node("a z1 small"), node("b z1 large")
	a.Spec.ProviderID = "azure:///subscriptions/secret-looking"
	a.Status.NodeInfo.KernelVersion, b.Status.NodeInfo.KernelVersion = "6.1", "6.2"
	want := map[string]string{"kernel": "6.1 | 6.2", "node-type": "large | small", "zone": "z1",
		"provider": "azure | none given", "os": result.Unknown, "cpus": result.Unknown, "memory": result.Unknown}
	for _, f := range Facts(product.Evidence{Nodes: []corev1.Node{a, b}}) {
		if w, ok := want[f.Name]; ok && f.Value != w {
			t.Errorf("%s is %q, wanted %q", f.Name, f.Value, w)
		}
	}
}

// TestConfidentialLabels checks that labels are signs of confidential machines only with certain values.
func TestConfidentialLabels(t *testing.T) {
	const azure = "kubernetes.azure.com/security-type"
	for label, want := range map[string]string{
		azure + "=ConfidentialVM": "label " + azure + "=ConfidentialVM", azure + "=TrustedLaunch": result.Unknown,
		"feature.node.kubernetes.io/cpu-security.sev.snp.enabled=true": result.Unknown,
		"cloud.google.com/gke-confidential-nodes=false":                result.Unknown,
	} {
		n := node("a z t")
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
		if got := result.FactOf(Facts(product.Evidence{Nodes: []corev1.Node{n}}), "confidential-vm"); got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
}

// TestPodFacts checks that pods report facts of their own and of their node, and also those of the machine if nodes
// cannot be listed.
func TestPodFacts(t *testing.T) {
	see := func(qdisc string, facts ...result.Fact) *preflight.Report {
		return &preflight.Report{MTU: 1450, Facts: facts, Device: machine.Device{Name: "eth0", Qdisc: qdisc,
			Driver: "veth", Offloads: "tso gso", Speed: result.Unknown}}
	}
	e := product.Evidence{
		Pod: see("noqueue", result.Fact{Name: "kernel", Value: "6.18"}, result.Fact{Name: "confidential-vm", Value: "CPU " +
			"flag sev_snp"}, result.Fact{Name: "sysctl.net.core.rmem-max", Value: "1"}),
		Node: see("mq (fq)", result.Fact{Name: "sysctl.net.core.rmem-max", Value: "2"},
			result.Fact{Name: "sysctl.net.core.netdev-budget", Value: "300"},
			result.Fact{Name: "sysctl.net.core.busy-poll", Value: result.Unknown}),
	}
	got := map[string]string{}
	for _, f := range Facts(e) {
		got[f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"kernel": "6.18", "kubelet": result.Unknown, "pod-qdisc": "noqueue", "node-qdisc": "mq (fq)", "node-driver": "veth",
		"pod-speed": result.Unknown, "pod-mtu": "1450",
		"confidential-vm": "CPU flag sev_snp", "sysctl.net.core.rmem-max": "1", "node.sysctl.net.core.rmem-max": "2",
		"node.sysctl.net.core.netdev-budget": "300",
		"node.sysctl.net.core.busy-poll":     "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"pod-qdisc", "node-device", "node-offloads", "cpu-model", "confidential-vm"} {
		for _, f := range Facts(product.Evidence{}) {
			if f.Name == name && f.Value != result.Unknown {
				t.Errorf("without evidence %s is %q", name, f.Value)
			}
		}
	}
}

func TestAttachedAddress(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Annotations: map[string]string{
		product.MultusStatus: `[{"name":"cbr0","ips":["10.244.0.2"],"default":true},` +
			`{"name":"ns/fast","interface":"net1","ips":["fd00::2","10.9.0.2"]}]`,
	}}}
	for _, test := range []struct {
		network string
		family  corev1.IPFamily
		want    string
	}{
		{"fast", corev1.IPv4Protocol, "10.9.0.2"}, {"ns/fast", corev1.IPv6Protocol, "fd00::2"}, {"fast", "", "fd00::2"},
		{"slow", "", ""},
	} {
		a, err := AttachedAddress(p, test.network, test.family)
		if test.want == "" && err == nil || test.want != "" && a.String() != test.want {
			t.Errorf("%s %s: %v, %v", test.network, test.family, a, err)
		}
	}
	for from, says := range map[string]string{"10.9.0.2": "", "::ffff:10.9.0.2": "", "fd00::2": "",
		"10.244.0.2": "come from 10.244.0.2, and pod p has fd00::2, 10.9.0.2 there"} {
		err := CheckNetworkRoute(p, "fast", netip.MustParseAddr(from))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("traffic from %s: %v", from, err)
		}
	}
	p.Annotations = nil
	if CheckNetworkRoute(p, "fast", netip.MustParseAddr("10.9.0.2")) == nil {
		t.Error("a pod without attachments has traffic from one")
	}
	if _, err := AttachedAddress(p, "fast", ""); err == nil || !strings.Contains(err.Error(), "is Multus installed?") {
		t.Error(err)
	}
}

// TestDefaultNetwork checks that a pod's addresses must be in the network that replaces the default one, and that its
// traffic must leave from them, whatever address the server sees.
func TestDefaultNetwork(t *testing.T) {
	pod := func(status string, ips ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Annotations: map[string]string{product.MultusStatus: status}}}
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		return p
	}
	const both = `[{"name":"ns/fast","interface":"eth0","ips":["10.9.0.2"],"default":true},` +
		`{"name":"ns/fast","interface":"veth0"},{"name":"ns/more","ips":["10.8.0.2"]}]`
	for _, test := range []struct {
		name string
		pod  *corev1.Pod
		says string
	}{
		{"the network", pod(both, "10.9.0.2"), ""},
		{"another address", pod(both, "10.8.0.2"), "has the address 10.8.0.2, and in its default network ns/fast it has " +
			"10.9.0.2"},
		{"a further address", pod(both, "10.9.0.2", "fd00::2"), "has the address fd00::2"},
		{"the cluster's network", pod(`[{"name":"cbr0","ips":["10.9.0.2"],"default":true}]`, "10.9.0.2"),
			"is cbr0, not ns/fast"},
		{"as a second network", pod(`[{"name":"cbr0","ips":["10.8.0.2"],"default":true},{"name":"ns/fast",`+
			`"ips":["10.9.0.2"]}]`, "10.8.0.2"), "is cbr0, not ns/fast"},
		{"no Multus", pod("", "10.9.0.2"), "leave default-network= out"},
		{"no JSON", pod("{", "10.9.0.2"), product.MultusStatus},
	} {
		err := CheckDefaultNetwork(test.pod, "ns/fast")
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := CheckDefaultNetwork(test.pod, ""); err != nil {
			t.Errorf("%s, not asked for: %v", test.name, err)
		}
	}
	address := func(device, ip string) machine.Interface {
		return machine.Interface{Name: device, Addresses: []netip.Addr{netip.MustParseAddr(ip)}}
	}
	for device, says := range map[string]string{
		"eth0": "", "net1": "leaves pod p by its device net1 with 10.8.0.2, and the network has 10.9.0.2 there",
		"tun0": "device tun0 with none",
	} {
		err := CheckDefaultRoute(pod(both, "10.9.0.2"), "ns/fast", preflight.Report{Device: machine.Device{Name: device},
			Interfaces: []machine.Interface{address("net1", "10.8.0.2"), address("eth0", "10.9.0.2")}})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("by %s: %v", device, err)
		}
	}
	if CheckDefaultRoute(pod(""), "ns/fast", preflight.Report{}) == nil {
		t.Error("a pod without attachments has traffic from one")
	}
}

// FuzzAttachedAddress checks that any status of Multus gives an error or a valid address.
func FuzzAttachedAddress(f *testing.F) {
	f.Add(`[{"name":"ns/a","ips":["10.0.0.1"]}]`)
	f.Fuzz(func(t *testing.T, status string) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
			Annotations: map[string]string{product.MultusStatus: status}}}
		if a, err := AttachedAddress(p, "a", ""); err == nil && !a.IsValid() {
			t.Error("an invalid address without an error")
		}
	})
}

func TestPodBandwidth(t *testing.T) {
	const egress, ingress = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"
	for want, annotations := range map[string]map[string]string{
		"none given (annotations of the pods)":                            nil,
		"egress 50M, ingress 1G (annotations of the pods)":                {egress: "50M", ingress: "1G"},
		"egress (no plain setting), ingress 1G (annotations of the pods)": {egress: "a b", ingress: "1G"},
	} {
		e := product.Evidence{Pod: &preflight.Report{},
			Admitted: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}
		if got := result.FactOf(Facts(e), "pod-bandwidth"); got != want {
			t.Errorf("%v: %q, not %q", annotations, got, want)
		}
	}
	if got := result.FactOf(Facts(product.Evidence{}), "pod-bandwidth"); got != result.Unknown {
		t.Errorf("without a pod: %q", got)
	}
}
