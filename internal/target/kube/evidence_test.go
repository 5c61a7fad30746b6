package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/meet"
	"github.com/knotmeter/knotmeter/internal/result"
)

func daemonSet(images ...string) appsv1.DaemonSet {
	d := appsv1.DaemonSet{}
	for _, image := range images {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Image: image})
	}
	return d
}

func annotated(key, value string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
}

func devices(names ...string) *meet.Report {
	r := &meet.Report{}
	for _, name := range names {
		r.Interfaces = append(r.Interfaces, meet.Interface{Name: name})
	}
	return r
}

func TestNetworkFacts(t *testing.T) {
	ciliumConfig := func(pairs ...string) map[string]map[string]string {
		c := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			c[pairs[i]] = pairs[i+1]
		}
		return map[string]map[string]string{"kube-system/cilium-config": c}
	}
	for _, test := range []struct {
		name string
		e    evidence
		want string // cni, encapsulation, encryption, kube-proxy
	}{
		{"nothing", evidence{}, "unknown; unknown; unknown; unknown"},
		{"a node without signs", evidence{Node: devices("eth0", "cni0")}, "unknown; unknown; unknown; unknown"},
		{"cilium native", evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("quay.io/cilium/cilium:v1.19.0@sha256:a"), daemonSet("k8s/kube-proxy:v1")},
			Config:     ciliumConfig("routing-mode", "native", "kube-proxy-replacement", "true", "enable-wireguard", "true"),
		}, "cilium; none, native routing (config map cilium-config); wireguard (config map cilium-config); replaced by cilium (config map cilium-config)"},
		{"cilium tunnel", evidence{Config: ciliumConfig("routing-mode", "tunnel", "tunnel-protocol", "geneve")}, "unknown; geneve (config map cilium-config); none (config map cilium-config); unknown"},
		{"cilium by default", evidence{Config: ciliumConfig("routing-mode", "tunnel")}, "unknown; vxlan (config map cilium-config); none (config map cilium-config); unknown"},
		{"old cilium", evidence{Config: ciliumConfig("tunnel", "vxlan", "enable-ipsec", "true")}, "unknown; vxlan (config map cilium-config); ipsec (config map cilium-config); unknown"},
		{"flannel", evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("ghcr.io/flannel-io/flannel:v0.28.0")},
			Config: map[string]map[string]string{
				"kube-flannel/kube-flannel-cfg": {"net-conf.json": `{"Network":"10.244.0.0/16","Backend":{"Type":"host-gw"}}`},
				"kube-system/kube-proxy":        {"config.conf": "kind: KubeProxyConfiguration\nmode: ipvs\n"},
			},
		}, "flannel; flannel host-gw (config map kube-flannel/kube-flannel-cfg); unknown; ipvs (config map kube-proxy)"},
		{"flannel in k3s", evidence{Nodes: []corev1.Node{annotated("flannel.alpha.coreos.com/backend-type", "vxlan")}}, "unknown; flannel vxlan (annotation of the nodes); unknown; unknown"},
		{"calico", evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("docker.io/calico/node:v3.31.0")},
			Nodes:      []corev1.Node{annotated("projectcalico.org/IPv4IPIPTunnelAddr", "10.244.0.1")},
			Node:       devices("wireguard.cali"),
			Config:     map[string]map[string]string{"kube-system/kube-proxy": {"config.conf": "mode: \"\"\n"}},
		}, "calico; ipip (annotation of the nodes); wireguard (device wireguard.cali of the node); iptables (config map kube-proxy)"},
		{"devices", evidence{Node: devices("lo", "flannel.1", "kube-ipvs0")}, "unknown; vxlan (device flannel.1 of the node); unknown; ipvs (device kube-ipvs0 of the node)"},
		{"kube-proxy itself", evidence{
			Node:   &meet.Report{Answers: map[string]string{"http://127.0.0.1:10249/proxyMode": "nftables\n"}},
			Config: map[string]map[string]string{"kube-system/kube-proxy": {"config.conf": "mode: iptables\n"}},
		}, "unknown; unknown; unknown; nftables (kube-proxy says so)"},
		{"something else there", evidence{Node: &meet.Report{Answers: map[string]string{"x": "<html>"}}}, "unknown; unknown; unknown; unknown"},
		{"garbage", evidence{Config: map[string]map[string]string{"kube-flannel/kube-flannel-cfg": {"net-conf.json": "}"}, "kube-system/kube-proxy": {"config.conf": "\t"}}}, "unknown; unknown; unknown; unknown"},
	} {
		values := map[string]string{}
		for _, f := range test.e.facts() {
			if f.Value == "" || values[f.Name] != "" {
				t.Errorf("%s: fact %s is empty, or there twice", test.name, f.Name)
			}
			values[f.Name] = f.Value
		}
		got := strings.Join([]string{values["cni"], values["encapsulation"], values["encryption"], values["kube-proxy"]}, "; ")
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Nodes that differ are not given one value.
func TestNodeFacts(t *testing.T) {
	a, b := node("a z1 small"), node("b z1 large")
	a.Spec.ProviderID = "azure:///subscriptions/secret-looking"
	a.Status.NodeInfo.KernelVersion, b.Status.NodeInfo.KernelVersion = "6.1", "6.2"
	want := map[string]string{"kernel": "6.1 | 6.2", "node-type": "large | small", "zone": "z1", "provider": "azure | none given", "os": result.Unknown}
	for _, f := range (evidence{Nodes: []corev1.Node{a, b}}).facts() {
		if w, ok := want[f.Name]; ok && f.Value != w {
			t.Errorf("%s is %q, wanted %q", f.Name, f.Value, w)
		}
	}
}

func TestAttachedAddress(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Annotations: map[string]string{
		multusStatus: `[{"name":"cbr0","ips":["10.244.0.2"],"default":true},{"name":"ns/fast","interface":"net1","ips":["fd00::2","10.9.0.2"]}]`,
	}}}
	for _, test := range []struct {
		network string
		family  corev1.IPFamily
		want    string
	}{
		{"fast", corev1.IPv4Protocol, "10.9.0.2"}, {"ns/fast", corev1.IPv6Protocol, "fd00::2"}, {"fast", "", "fd00::2"}, {"slow", "", ""},
	} {
		a, err := attachedAddress(p, test.network, test.family)
		if test.want == "" && err == nil || test.want != "" && a.String() != test.want {
			t.Errorf("%s %s: %v, %v", test.network, test.family, a, err)
		}
	}
	p.Annotations = nil
	if _, err := attachedAddress(p, "fast", ""); err == nil || !strings.Contains(err.Error(), "is Multus installed?") {
		t.Error(err)
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add(`{"Backend":{"Type":"vxlan"}}`, "mode: ipvs", `[{"name":"ns/a","ips":["10.0.0.1"]}]`)
	f.Fuzz(func(t *testing.T, conf, proxy, status string) {
		flannel(conf)
		proxyMode(map[string]string{"config.conf": proxy})
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: map[string]string{multusStatus: status}}}
		if a, err := attachedAddress(p, "a", ""); err == nil && !a.IsValid() {
			t.Error("an invalid address without an error")
		}
	})
}
