package inspection

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
)

// weaveFromSecret returns a Weave daemon set whose variables are in a Secret, which is not read.
func weaveFromSecret() appsv1.DaemonSet {
	d := daemonSet("weaveworks/weave-kube:2.8.1")
	d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: new(corev1.SecretEnvSource)}}
	return d
}

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

// calicoNodes returns a node for each address.
func calicoNodes(addresses ...string) (nodes []corev1.Node) {
	for _, a := range addresses {
		nodes = append(nodes, annotated("projectcalico.org/IPv4Address", a))
	}
	return nodes
}

func devices(names ...string) *preflight.Report {
	r := &preflight.Report{}
	for _, name := range names {
		r.Interfaces = append(r.Interfaces, machine.Interface{Name: name})
	}
	return r
}

func pool(ipip, vxlan string) (p IPPool) {
	p.Spec.IPIPMode, p.Spec.VXLANMode = ipip, vxlan
	return p
}

func felixes(text string) *Felix {
	f := &Felix{}
	if err := json.Unmarshal([]byte(text), f); err != nil {
		panic(err)
	}
	return f
}

func nodeConfigs(label, value string, defaults map[string]string) []CiliumNodeConfig {
	var c CiliumNodeConfig
	c.Spec.Selector, c.Spec.Defaults = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}, defaults
	return []CiliumNodeConfig{c}
}

func antreaConfig(text string) map[string]map[string]string {
	return map[string]map[string]string{"kube-system/antrea-config": {"antrea-agent.conf": text}}
}

func router(arguments ...string) appsv1.DaemonSet {
	d := daemonSet("docker.io/cloudnativelabs/kube-router:v2.6.1")
	d.Spec.Template.Spec.Containers[0].Args = arguments
	return d
}

func TestNetworkFacts(t *testing.T) {
	const ciliumDefault = " (Cilium's default, config map cilium-config names no other)"
	const antreaDefault = " (Antrea's default, config map antrea-config names no other)"
	forOthers := pool("Never", "Never")
	forOthers.Spec.AllowedUses = []string{"LoadBalancer"}
	onVPC := []appsv1.DaemonSet{daemonSet("eks/amazon-k8s-cni:v1"), daemonSet("cilium/cilium:v1"),
		daemonSet("calico/node:v3")}
	const vpc = "none (amazon-vpc has nothing else: pods have addresses of the VPC)"
	ovn := []appsv1.DaemonSet{daemonSet("ghcr.io/ovn-kubernetes/ovn-kube-ubuntu:v1")}
	const ovnProxy = "replaced by ovn-kubernetes (it does Services itself)"
	ciliumConfig := func(pairs ...string) map[string]map[string]string {
		c := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			c[pairs[i]] = pairs[i+1]
		}
		return map[string]map[string]string{"kube-system/cilium-config": c}
	}
	for _, test := range []struct {
		name string
		e    Evidence
		want string // cni, encapsulation, encryption, kube-proxy
	}{
		{"nothing", Evidence{}, "unknown; unknown; unknown; unknown"},
		{"a node without signs", Evidence{Node: devices("eth0", "cni0")}, "unknown; unknown; unknown; unknown"},
		{"cilium native", Evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("quay.io/cilium/cilium:v1.19.0@sha256:a"), daemonSet("k8s/kube-proxy:v1")},
			Config:     ciliumConfig("routing-mode", "native", "kube-proxy-replacement", "true", "enable-wireguard", "true"),
		}, "cilium; none (config map cilium-config); wireguard (config map cilium-config); replaced by " +
			"cilium (config map cilium-config)"},
		{"cilium tunnel", Evidence{Config: ciliumConfig("routing-mode", "tunnel", "tunnel-protocol", "geneve")},
			"unknown; geneve (config map cilium-config); none (config map cilium-config); unknown"},
		{"cilium by default", Evidence{Config: ciliumConfig("routing-mode", "tunnel")},
			"unknown; vxlan" + ciliumDefault + "; none (config map cilium-config); unknown"},
		{"old cilium", Evidence{Config: ciliumConfig("tunnel", "vxlan", "enable-ipsec", "true")},
			"unknown; vxlan (config map cilium-config); ipsec (config map cilium-config); unknown"},
		{"flannel", Evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("ghcr.io/flannel-io/flannel:v0.28.0"), daemonSet("k8s/kube-proxy:v1")},
			Config: map[string]map[string]string{
				"kube-flannel/kube-flannel-cfg": {"net-conf.json": `{"Network":"10.244.0.0/16","Backend":{"Type":"host-gw"}}`},
				"kube-system/kube-proxy":        {"config.conf": "kind: KubeProxyConfiguration\nmode: ipvs\n"},
			},
		}, "flannel; none (backend host-gw of flannel, config map kube-flannel/kube-flannel-cfg); " +
			"none (backend of flannel); ipvs (config map kube-proxy)"},
		{"flannel in k3s", Evidence{Nodes: []corev1.Node{annotated("flannel.alpha.coreos.com/backend-type", "vxlan")}},
			"flannel (annotation of the nodes); vxlan (backend vxlan of flannel, annotation of the nodes); " +
				"none (backend of flannel); unknown"},
		{"calico", Evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("docker.io/calico/node:v3.31.0"), daemonSet("k8s/kube-proxy:v1")},
			Nodes:      []corev1.Node{annotated("projectcalico.org/IPv4IPIPTunnelAddr", "10.244.0.1")},
			Node:       devices("wireguard.cali"),
			Config:     map[string]map[string]string{"kube-system/kube-proxy": {"config.conf": "mode: \"\"\n"}},
		}, "calico; ipip-maybe-cross-subnet (annotation of the nodes); wireguard (device wireguard.cali of the " +
			"node); iptables (kube-proxy's default, config map kube-proxy names no other)"},
		{"devices", Evidence{Node: devices("lo", "flannel.1", "kube-ipvs0")},
			"unknown; vxlan (device flannel.1 of the node); unknown; ipvs (device kube-ipvs0 of the node)"},
		{"kube-proxy itself", Evidence{
			Node:   &preflight.Report{Answers: map[string]string{"http://127.0.0.1:10249/proxyMode": "nftables\n"}},
			Config: map[string]map[string]string{"kube-system/kube-proxy": {"config.conf": "mode: iptables\n"}},
		}, "unknown; unknown; unknown; nftables (kube-proxy says so)"},
		{"cilium on some nodes", Evidence{
			Config: ciliumConfig("routing-mode", "tunnel"), Nodes: []corev1.Node{node("a z1 t"), node("b z2 t")},
			NodeConfigs: nodeConfigs(corev1.LabelTopologyZone, "z2",
				map[string]string{"routing-mode": "native", "kube-proxy-replacement": "true"}),
		}, "unknown; none | vxlan (config map cilium-config; Cilium's default, config map cilium-config names no other); " +
			"none (config map cilium-config); replaced by cilium | unknown (config map cilium-config)"},
		{"cilium on other nodes", Evidence{
			Config: ciliumConfig("routing-mode", "tunnel"), Nodes: []corev1.Node{node("a z t")},
			NodeConfigs: nodeConfigs(corev1.LabelTopologyZone, "z2", map[string]string{"routing-mode": "native"}),
		}, "unknown; vxlan" + ciliumDefault + "; none (config map cilium-config); unknown"},
		{"cilium beside kube-proxy", Evidence{
			Config: ciliumConfig("routing-mode", "native", "kube-proxy-replacement", "false"),
			Node:   &preflight.Report{Answers: map[string]string{"x": "iptables"}},
		}, "unknown; none (config map cilium-config); none (config map cilium-config); iptables; " +
			"cilium for connections of pods (kube-proxy says so; it balances those itself)"},
		{"cilium that encrypts some namespaces", Evidence{Config: ciliumConfig("routing-mode", "native",
			"enable-ztunnel", "true")}, "unknown; none (config map cilium-config); unknown; unknown"},
		{"cilium that encrypts nodes, and some namespaces once more", Evidence{Config: ciliumConfig("routing-mode",
			"native", "enable-ztunnel", "true", "enable-wireguard", "true")},
			"unknown; none (config map cilium-config); wireguard (config map cilium-config); unknown"},
		{"calico with IPsec", Evidence{Felix: felixes(`{"spec":{"ipsecMode":"PSK"}}`)},
			"unknown; unknown; ipsec (FelixConfiguration of Calico); unknown"},
		{"an old antrea with IPsec", Evidence{Config: antreaConfig("trafficEncapMode: encap\nenableIPSecTunnel: true\n")},
			"unknown; geneve" + antreaDefault + "; ipsec (config map antrea-config); unknown"},
		{"weave with variables from elsewhere", Evidence{DaemonSets: []appsv1.DaemonSet{weaveFromSecret()}},
			"weave; unknown; unknown; unknown"},
		{"cilium and nonsense", Evidence{Config: ciliumConfig("routing-mode", "tunnel", "tunnel-protocol", "password")},
			"unknown; unknown; none (config map cilium-config); unknown"},
		{"calico's pools", Evidence{
			Pools: []IPPool{pool("Always", "Never"), pool("", "Always")}, Felix: felixes(`{"spec":{}}`),
			Nodes: []corev1.Node{annotated("projectcalico.org/IPv4IPIPTunnelAddr", "10.244.0.1")},
		}, "unknown; ipip | vxlan (IPPools of Calico); none (FelixConfiguration of Calico); unknown"},
		{"calico within a subnet", Evidence{Pools: []IPPool{pool("Never", "CrossSubnet")},
			Felix: felixes(`{"spec":{"wireguardEnabled":true,"bpfEnabled":true}}`)},
			"unknown; vxlan-cross-subnet (IPPools of Calico); wireguard (FelixConfiguration of " +
				"Calico); replaced by calico, eBPF (FelixConfiguration of Calico)"},
		{"calico whose nodes are in one subnet", Evidence{Pools: []IPPool{pool("Never", "CrossSubnet")},
			Nodes: calicoNodes("192.0.2.1/24", "192.0.2.2/24")},
			"unknown; none (IPPools of Calico with tunnels between subnets; the nodes' annotations name one); unknown; unknown"},
		{"calico whose nodes are in two subnets", Evidence{Pools: []IPPool{pool("CrossSubnet", "")},
			Nodes: calicoNodes("192.0.2.1/24", "192.0.3.2/24")},
			"unknown; ipip-cross-subnet (IPPools of Calico); unknown; unknown"},
		{"calico whose nodes have no subnet", Evidence{Pools: []IPPool{pool("CrossSubnet", "")},
			Nodes: calicoNodes("192.0.2.1/32", "192.0.2.2/32")},
			"unknown; ipip-cross-subnet (IPPools of Calico); unknown; unknown"},
		{"calico with a node without an address", Evidence{Pools: []IPPool{pool("CrossSubnet", "")},
			Nodes: append(calicoNodes("192.0.2.1/24", "192.0.2.2/24"), corev1.Node{})},
			"unknown; ipip-cross-subnet (IPPools of Calico); unknown; unknown"},
		{"calico with a nonsensical address", Evidence{Pools: []IPPool{pool("CrossSubnet", "")},
			Nodes: calicoNodes("192.0.2.1/24", "192.0.2.2")},
			"unknown; ipip-cross-subnet (IPPools of Calico); unknown; unknown"},
		{"calico without tunnels", Evidence{Pools: []IPPool{pool("Never", "Never")}},
			"unknown; none (IPPools of Calico); unknown; unknown"},
		{"antrea", Evidence{Config: antreaConfig("trafficEncapMode: encap\ntrafficEncryptionMode: " +
			"wireGuard\nantreaProxy:\n  proxyAll: true\n")},
			"unknown; wireguard (config map antrea-config); wireguard (config map antrea-config); replaced by antrea (config " +
				"map antrea-config)"},
		{"antrea with routes", Evidence{Config: antreaConfig("trafficEncapMode: noEncap\n")},
			"unknown; none (config map antrea-config); none (config map antrea-config); unknown"},
		{"antrea, hybrid", Evidence{Config: antreaConfig("trafficEncapMode: hybrid\ntunnelType: vxlan\n")},
			"unknown; vxlan-cross-subnet (config map antrea-config); none (config map antrea-config); " +
				"unknown"},
		{"kube-router", Evidence{DaemonSets: []appsv1.DaemonSet{router("--run-service-proxy=false", "--overlay-type=full",
			"--overlay-encap=fou")}},
			"kube-router; fou (arguments of kube-router); none (kube-router has no encryption); unknown"},
		{"kube-router as a firewall alone", Evidence{DaemonSets: []appsv1.DaemonSet{router("--run-router=false",
			"--run-service-proxy=false")}}, "kube-router; unknown; unknown; unknown"},
		{"kube-router by default", Evidence{DaemonSets: []appsv1.DaemonSet{router("--run-router")}},
			"kube-router; ipip-cross-subnet (arguments of kube-router); none (kube-router has no " +
				"encryption); replaced by kube-router, ipvs (arguments of kube-router)"},
		{"kube-router without tunnels", Evidence{DaemonSets: []appsv1.DaemonSet{router("--enable-overlay=false",
			"--run-service-proxy")}},
			"kube-router; none (arguments of kube-router); none (kube-router has no encryption); replaced by " +
				"kube-router, ipvs (arguments of kube-router)"},
		{"weave", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("weaveworks/weave-kube:2.8.1")},
			Node: devices("vxlan-6784")},
			"weave; vxlan (device vxlan-6784 of the node); none (weave has no password); unknown"},
		{"kindnet", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("kindest/kindnetd:v2")}},
			"kindnet; none (kindnet has nothing else); unknown; unknown"},
		{"an unused tunnel", Evidence{Node: devices("tunl0")}, "unknown; unknown; unknown; unknown"},
		{"flannel with direct routing", Evidence{Config: map[string]map[string]string{
			"kube-system/canal-config": {"net-conf.json": `{"Backend":{"Type":"vxlan","DirectRouting":true}}`},
		}}, "unknown; vxlan-cross-subnet (backend vxlan of flannel, config map kube-system/canal-config); unknown; unknown"},
		{"flannel with WireGuard", Evidence{Config: map[string]map[string]string{
			"kube-flannel/kube-flannel-cfg": {"net-conf.json": `{"Backend":{"Type":"wireguard"}}`},
		}}, "flannel (config map kube-flannel/kube-flannel-cfg); wireguard (backend wireguard of flannel, " +
			"config map kube-flannel/kube-flannel-cfg); wireguard (backend of flannel); unknown"},
		{"cilium beside a kube-proxy that it replaces", Evidence{
			Config: ciliumConfig("routing-mode", "native", "kube-proxy-replacement", "true"),
			Node:   &preflight.Report{Answers: map[string]string{"x": "iptables"}},
		}, "unknown; none (config map cilium-config); none (config map cilium-config); replaced by cilium; " +
			"kube-proxy runs too: iptables (config map cilium-config; kube-proxy says so)"},
		{"cilium chained to another plugin", Evidence{DaemonSets: onVPC[:2],
			Config: ciliumConfig("routing-mode", "native", "cni-chaining-mode", "aws-cni")},
			"amazon-vpc + cilium; " + vpc + "; unknown; unknown"},
		{"calico with policies alone", Evidence{DaemonSets: append(onVPC[:1:1], onVPC[2]),
			Pools: []IPPool{pool("Always", "")}}, "amazon-vpc + calico; " + vpc + "; unknown; unknown"},
		{"calico with a pool for load balancers", Evidence{Pools: []IPPool{pool("", "Always"), forOthers}},
			"unknown; vxlan (IPPools of Calico); unknown; unknown"},
		{"calico whose pools may not be seen", Evidence{Node: devices("vxlan.calico")},
			"unknown; vxlan-maybe-cross-subnet (device vxlan.calico of the node); unknown; unknown"},
		{"canal of RKE2", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("rancher/hardened-calico:v3",
			"rancher/hardened-flannel:v0")}}, "calico + flannel; unknown; unknown; unknown"},
		{"an image with a plugin's name in its repository", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet(
			"registry.example/flannel/nginx:1")}}, "unknown; unknown; unknown; unknown"},
		{"antrea with policies alone", Evidence{Config: antreaConfig("trafficEncapMode: networkPolicyOnly\n")},
			"unknown; unknown; unknown; unknown"},
		{"antrea in an unknown mode", Evidence{Config: antreaConfig("trafficEncapMode: new\n")},
			"unknown; unknown; none (config map antrea-config); unknown"},
		{"kube-router with a value in an argument of its own", Evidence{DaemonSets: []appsv1.DaemonSet{router(
			"--run-service-proxy=false", "--overlay-type", "full")}},
			"kube-router; ipip (arguments of kube-router); none (kube-router has no encryption); unknown"},
		{"kube-router of an unknown type", Evidence{DaemonSets: []appsv1.DaemonSet{router(
			"--run-service-proxy=false", "--overlay-type=new")}},
			"kube-router; unknown; none (kube-router has no encryption); unknown"},
		{"kube-router that advertises the routes of others", Evidence{DaemonSets: []appsv1.DaemonSet{router(
			"--run-service-proxy=false", "--enable-cni=false", "--enable-overlay=false")}},
			"kube-router; unknown; unknown; unknown"},
		{"ovn-kubernetes", Evidence{DaemonSets: ovn}, "ovn-kubernetes; unknown; unknown; " + ovnProxy},
		{"ovn-kubernetes with a tunnel", Evidence{DaemonSets: ovn, Node: devices("genev_sys_6081")},
			"ovn-kubernetes; geneve (device genev_sys_6081 of the node); unknown; " + ovnProxy},
		{"ovn-kubernetes with two", Evidence{DaemonSets: ovn, Node: devices("genev_sys_6081", "vxlan_sys_4789")},
			"ovn-kubernetes; geneve | vxlan (device genev_sys_6081 of the node; device vxlan_sys_4789 of the node); " +
				"unknown; " + ovnProxy},
		{"weave's bridge", Evidence{Node: devices("weave")}, "unknown; unknown; unknown; unknown"},
		{"an unknown tunnel", Evidence{Node: devices("vxlan-100")}, "unknown; unknown; unknown; unknown"},
		{"a config map of a kube-proxy that is gone", Evidence{
			DaemonSets: []appsv1.DaemonSet{daemonSet("kubeovn/kube-ovn:v1")},
			Config:     map[string]map[string]string{"kube-system/kube-proxy": {"config.conf": "mode: ipvs"}},
		}, "kube-ovn; unknown; unknown; unknown"},
		{"something else there", Evidence{Node: &preflight.Report{Answers: map[string]string{"x": "<html>"}}},
			"unknown; unknown; unknown; unknown"},
		{"garbage", Evidence{Config: map[string]map[string]string{"kube-flannel/kube-flannel-cfg": {"net-conf.json": "}"},
			"kube-system/kube-proxy": {"config.conf": "\t"}}}, "unknown; unknown; unknown; unknown"},
	} {
		values := map[string]string{}
		for _, f := range test.e.Facts() {
			if f.Value == "" || values[f.Name] != "" {
				t.Errorf("%s: fact %s is empty, or there twice", test.name, f.Name)
			}
			values[f.Name] = f.String()
		}
		got := strings.Join([]string{values["cni"], values["encapsulation"], values["encryption"], values["kube-proxy"]},
			"; ")
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func flannelMap(backend string) map[string]map[string]string {
	return map[string]map[string]string{"kube-flannel/kube-flannel-cfg": {
		"net-conf.json": `{"Network":"10.244.0.0/16","Backend":{"Type":"` + backend + `"}}`,
	}}
}

// TestFlannel checks that flannel's traces alone show its encapsulation and encryption, unless another plugin left
// traces too.
func TestFlannel(t *testing.T) {
	const inMap, onNodes = " (config map kube-flannel/kube-flannel-cfg)", " (annotation of the nodes)"
	backed := func(backend, by string) string { return " (backend " + backend + " of flannel, " + by[2:] }
	on := func(backends ...string) (nodes []corev1.Node) {
		for _, b := range backends {
			nodes = append(nodes, annotated(flannelType, b))
		}
		return nodes
	}
	calico := annotated(flannelType, "vxlan")
	calico.Annotations["projectcalico.org/IPv4Address"] = "10.0.0.1/24"
	for _, test := range []struct {
		name string
		e    Evidence
		want string // cni, encapsulation, encryption
	}{
		{"vxlan", Evidence{Nodes: on("vxlan", "vxlan"), Config: flannelMap("vxlan"),
			Node: devices("eth0", "flannel.1", "cni0")},
			"flannel" + onNodes + "; vxlan" + backed("vxlan", inMap) + "; none (backend of flannel)"},
		{"host-gw", Evidence{Nodes: on("host-gw", "host-gw"), Config: flannelMap("host-gw"), Node: devices("eth0", "cni0")},
			"flannel" + onNodes + "; none" + backed("host-gw", inMap) + "; none (backend of flannel)"},
		{"only nodes may be seen", Evidence{Nodes: on("host-gw"), Node: devices("eth0", "cni0")}, "flannel" + onNodes +
			"; none" + backed("host-gw", onNodes) + "; none (backend of flannel)"},
		{"only config maps may be seen", Evidence{Config: flannelMap("udp")}, "flannel" + inMap + "; udp" +
			backed("udp", inMap) +
			"; none (backend of flannel)"},
		{"only devices may be seen", Evidence{Node: devices("eth0", "flannel.1", "cni0")},
			"flannel (devices flannel.1 and cni0 of the node); vxlan (device flannel.1 of the node); unknown"},
		{"a bridge alone", Evidence{Node: devices("eth0", "cni0")}, "unknown; unknown; unknown"},
		{"a tunnel alone", Evidence{Node: devices("eth0", "flannel.1")}, "unknown; vxlan (device flannel.1 of the node); " +
			"unknown"},
		{"WireGuard", Evidence{Nodes: on("wireguard"), Config: flannelMap("wireguard")}, "flannel" + onNodes +
			"; wireguard" + backed("wireguard", inMap) + "; wireguard (backend of flannel)"},
		{"WireGuard by its device", Evidence{Nodes: on("vxlan"), Node: devices("flannel-wg", "cni0")},
			"flannel" + onNodes + "; vxlan" + backed("vxlan", onNodes) + "; wireguard (device flannel-wg of the node)"},
		{"IPsec", Evidence{Nodes: on("ipsec")}, "flannel" + onNodes + "; ipsec" + backed("ipsec", onNodes) +
			"; ipsec (backend of flannel)"},
		{"a config map that is not yet in force", Evidence{Nodes: on("vxlan", "vxlan"), Config: flannelMap("wireguard")},
			"flannel" + onNodes + "; vxlan" + backed("vxlan", onNodes) + "; none (backend of flannel)"},
		{"on the way from one to the other", Evidence{Nodes: on("wireguard", "vxlan"), Config: flannelMap("wireguard")},
			"flannel" + onNodes + "; vxlan | wireguard" + backed("vxlan | wireguard", onNodes) +
				"; none | wireguard (backend of flannel)"},
		{"a config map of a flannel that is gone", Evidence{Nodes: []corev1.Node{node("a z t")}, Config: flannelMap("vxlan"),
			Node: devices("eth0")},
			"unknown; unknown; unknown"},
		{"on one node only", Evidence{Nodes: append(on("vxlan"), node("a z t"))}, "unknown; vxlan" +
			backed("vxlan", onNodes) + "; unknown"},
		{"an unknown backend", Evidence{Nodes: on("tencent-vpc")}, "flannel" + onNodes + "; none" +
			backed("tencent-vpc", onNodes) + "; unknown"},
		{"a backend that is no name", Evidence{Nodes: on("a key: secret!")}, "unknown; unknown; unknown"},
		{"beside Calico", Evidence{Nodes: []corev1.Node{calico}, Config: flannelMap("vxlan")}, "unknown; vxlan" +
			backed("vxlan", inMap) + "; unknown"},
		{"beside Calico's devices", Evidence{Nodes: on("vxlan"), Node: devices("cali1", "cni0")}, "unknown; vxlan" +
			backed("vxlan", onNodes) + "; unknown"},
		{"as a part of canal", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("calico/node:v3", "flannel/flannel:v0")},
			Nodes: on("vxlan")},
			"calico + flannel; vxlan" + backed("vxlan", onNodes) + "; unknown"},
		{"canal that does not encrypt", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("calico/node:v3",
			"flannel/flannel:v0")}, Nodes: on("vxlan"), Felix: felixes(`{}`)},
			"calico + flannel; vxlan" + backed("vxlan", onNodes) + "; none (FelixConfiguration of Calico)"},
		{"canal whose flannel encrypts", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("calico/node:v3",
			"flannel/flannel:v0")}, Nodes: on("wireguard"), Felix: felixes(`{}`)},
			"calico + flannel; wireguard" + backed("wireguard", onNodes) + "; wireguard (backend of flannel)"},
		{"with Multus", Evidence{DaemonSets: []appsv1.DaemonSet{daemonSet("k8snetworkplumbingwg/multus-cni:v4")},
			Nodes: on("vxlan")},
			"flannel + multus" + onNodes + "; vxlan" + backed("vxlan", onNodes) + "; none (backend of flannel)"},
		{"where traffic takes another network", Evidence{Network: "default/macvlan", Nodes: on("vxlan"),
			Config: flannelMap("vxlan")}, "flannel" + onNodes + "; unknown; unknown"},
		{"where pods have another network", Evidence{DefaultNetwork: "ns/fast", Chain: []string{"macvlan", "veth"},
			Nodes: on("vxlan"), Config: flannelMap("vxlan")},
			"macvlan + veth (NetworkAttachmentDefinition ns/fast); unknown; unknown"},
		{"where it is not known what", Evidence{DefaultNetwork: "ns/fast", Nodes: on("vxlan")}, "unknown; unknown; unknown"},
	} {
		values := map[string]string{}
		for _, f := range test.e.Facts() {
			values[f.Name] = f.String()
		}
		if got := strings.Join([]string{values["cni"], values["encapsulation"], values["encryption"]},
			"; "); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestNodeFacts checks that a fact has the values of all nodes if they differ.
func TestNodeFacts(t *testing.T) {
	a, b := node("a z1 small"), node("b z1 large")
	a.Spec.ProviderID = "azure:///subscriptions/secret-looking"
	a.Status.NodeInfo.KernelVersion, b.Status.NodeInfo.KernelVersion = "6.1", "6.2"
	want := map[string]string{"kernel": "6.1 | 6.2", "node-type": "large | small", "zone": "z1",
		"provider": "azure | none given", "os": result.Unknown, "cpus": result.Unknown, "memory": result.Unknown}
	for _, f := range (Evidence{Nodes: []corev1.Node{a, b}}).Facts() {
		if w, ok := want[f.Name]; ok && f.Value != w {
			t.Errorf("%s is %q, wanted %q", f.Name, f.Value, w)
		}
	}
}

func TestDistribution(t *testing.T) {
	marked := node("a z t")
	marked.Labels["kubernetes.azure.com/cluster"] = "MC_x"
	built := node("a z t")
	built.Status.NodeInfo.OSImage = "Fedora Linux 40 (Constellation)"
	for _, test := range []struct {
		e    Evidence
		want string
	}{
		{Evidence{Version: "v1.34.1-gke.100"}, "GKE (version of the API server)"},
		{Evidence{Version: "v1.34.1-eks-b9c9ed7"}, "EKS (version of the API server)"},
		{Evidence{Version: "v1.34.1-eks-1-34-3"}, "EKS Distro (version of the API server)"},
		{Evidence{Version: "v1.34.1+k3s1"}, "k3s (version of the API server)"},
		{Evidence{Version: "v1.34.1", Nodes: []corev1.Node{marked}}, "AKS (mark on the nodes)"},
		{Evidence{Version: "v1.34.1", Nodes: []corev1.Node{node("a z t"), built}}, "Constellation (OS of the nodes)"},
		{Evidence{Version: "v1.34.1", Nodes: []corev1.Node{node("a z t")}}, result.Unknown},
		{Evidence{}, result.Unknown},
	} {
		if got := test.e.distribution(); got != test.want {
			t.Errorf("%s: %q, want %q", test.e.Version, got, test.want)
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
		if got := result.FactOf((Evidence{Nodes: []corev1.Node{n}}).Facts(), "confidential-vm"); got != want {
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
	e := Evidence{
		Pod: see("noqueue", result.Fact{Name: "kernel", Value: "6.18"}, result.Fact{Name: "confidential-vm", Value: "CPU " +
			"flag sev_snp"}, result.Fact{Name: "sysctl.net.core.rmem-max", Value: "1"}),
		Node: see("mq (fq)", result.Fact{Name: "sysctl.net.core.rmem-max", Value: "2"},
			result.Fact{Name: "sysctl.net.core.netdev-budget", Value: "300"},
			result.Fact{Name: "sysctl.net.core.busy-poll", Value: result.Unknown}),
	}
	got := map[string]string{}
	for _, f := range e.Facts() {
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
		for _, f := range (Evidence{}).Facts() {
			if f.Name == name && f.Value != result.Unknown {
				t.Errorf("without evidence %s is %q", name, f.Value)
			}
		}
	}
}

func TestAttachedAddress(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Annotations: map[string]string{
		multusStatus: `[{"name":"cbr0","ips":["10.244.0.2"],"default":true},` +
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
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{multusStatus: status}}}
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
		{"no JSON", pod("{", "10.9.0.2"), multusStatus},
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

// TestChain checks that Chain returns the plugins of a configuration if all of them have valid names.
func TestChain(t *testing.T) {
	for config, want := range map[string]string{
		`{"type":"sriov","vlan":7}`:                         "sriov",
		`{"plugins":[{"type":"macvlan"},{"type":"veth"}]}`:  "macvlan veth",
		`{"plugins":[{"type":"macvlan"},{"type":"a b"}]}`:   "",
		`{"plugins":[{"type":"macvlan"},{"chained":true}]}`: "",
		"": "", "{}": "", "{": "",
	} {
		if got := strings.Join(Chain(config), " "); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add(`{"Backend":{"Type":"vxlan"}}`, "mode: ipvs", `[{"name":"ns/a","ips":["10.0.0.1"]}]`)
	f.Fuzz(func(t *testing.T, conf, proxy, status string) {
		Evidence{Config: map[string]map[string]string{flannelMaps[0]: {"net-conf.json": conf}}}.flannelConfig()
		written := []corev1.Node{annotated(flannelType, conf)}
		for _, e := range []Evidence{{Config: antreaConfig(conf)}, {DaemonSets: []appsv1.DaemonSet{router(conf, proxy)}},
			{Config: map[string]map[string]string{CiliumMap: {"routing-mode": conf, "mtu": proxy}}},
			{Nodes: written, Config: flannelMap(proxy)}} {
			for _, f := range e.Facts() {
				if f.Value == "" {
					t.Errorf("the fact %s is empty", f.Name)
				}
			}
		}
		proxyMode(map[string]string{"config.conf": proxy})
		Chain(conf)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: map[string]string{multusStatus: status}}}
		if a, err := AttachedAddress(p, "a", ""); err == nil && !a.IsValid() {
			t.Error("an invalid address without an error")
		}
	})
}

func TestTunnelMTU(t *testing.T) {
	vxlan, routes := map[string]string{"routing-mode": "tunnel"}, map[string]string{"routing-mode": "native"}
	encrypted := map[string]string{"routing-mode": "tunnel", "enable-wireguard": "true"}
	for _, test := range []struct {
		cilium    map[string]string
		pod, node int
		want      string
	}{
		{vxlan, 1450, 1500, "fits (pods 1450, vxlan 50, nodes 1500)"},
		{vxlan, 1451, 1500, "does not fit (pods 1451, vxlan 50, nodes 1500)"},
		{encrypted, 1390, 1500, "fits (pods 1390, vxlan in wireguard 110, nodes 1500)"},
		{encrypted, 1420, 1500, "does not fit (pods 1420, vxlan in wireguard 110, nodes 1500)"},
		{map[string]string{"routing-mode": "native", "enable-wireguard": "true"}, 1440, 1500,
			"fits (pods 1440, wireguard 60, nodes 1500)"},
		{map[string]string{"routing-mode": "tunnel", "enable-ipsec": "true"}, 1400, 1500, ""},
		{routes, 1500, 1500, ""},
		{vxlan, 0, 1500, ""},
	} {
		node := devices("eth0", "cilium_host")
		node.Device.Name, node.Interfaces[0].MTU = "eth0", test.node
		node.MTU = test.pod // the route to the pod leads through the tunnel
		e := Evidence{Config: map[string]map[string]string{CiliumMap: test.cilium}, Pod: &preflight.Report{MTU: test.pod},
			Node: node}
		tunnelMTU := func() string {
			for _, f := range e.Facts() {
				if f.Name == "tunnel-mtu" {
					return f.String()
				}
			}
			return ""
		}
		if got := tunnelMTU(); got != test.want {
			t.Errorf("%v, pods %d, nodes %d: %q, not %q", test.cilium, test.pod, test.node, got, test.want)
		}
		node.Interfaces[0].Addresses = []netip.Addr{netip.MustParseAddr("fd00::1")}
		const over6 = "does not fit (pods 1450, vxlan 70, nodes 1500)"
		if got := result.FactOf(e.Facts(), "tunnel-mtu"); strings.HasPrefix(test.want, "fits (pods 1450)") && got != over6 {
			t.Errorf("over IPv6: %q, not %q", got, over6)
		}
	}
}

func TestPodBandwidth(t *testing.T) {
	const egress, ingress = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"
	for want, annotations := range map[string]map[string]string{
		"none given (annotations of the pods)":                            nil,
		"egress 50M, ingress 1G (annotations of the pods)":                {egress: "50M", ingress: "1G"},
		"egress (no plain setting), ingress 1G (annotations of the pods)": {egress: "a b", ingress: "1G"},
	} {
		e := Evidence{Pod: &preflight.Report{},
			Admitted: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}
		if got := result.FactOf(e.Facts(), "pod-bandwidth"); got != want {
			t.Errorf("%v: %q, not %q", annotations, got, want)
		}
	}
	if got := result.FactOf(Evidence{}.Facts(), "pod-bandwidth"); got != result.Unknown {
		t.Errorf("without a pod: %q", got)
	}
}
