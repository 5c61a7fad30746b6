package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/meet"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An evidence is what a cluster shows of itself. Each part may be missing: nobody must be allowed to see it.
type evidence struct {
	Version    string
	Nodes      []corev1.Node
	DaemonSets []appsv1.DaemonSet
	Config     map[string]map[string]string // config maps by namespace/name
	Node       *meet.Report                 // of a pod in the network of its node
	Pod        *meet.Report
}

// configMaps are those that network plugins and kube-proxy keep their settings in.
func configMaps() [][2]string {
	return [][2]string{
		{"kube-system", "kube-proxy"}, {"kube-system", "cilium-config"}, {"kube-flannel", "kube-flannel-cfg"},
		{"kube-system", "kube-flannel-cfg"}, {"kube-system", "calico-config"}, {"kube-system", "antrea-config"},
	}
}

// facts are what the evidence says.
func (e evidence) facts() []result.Fact {
	list := []result.Fact{{Name: "kubernetes", Value: known(e.Version, e.Version != "")}}
	list = append(list, e.nodeFacts()...)
	list = append(list, e.networkFacts()...)
	return append(list, e.placeFacts()...)
}

// nodeFacts are of the nodes that take part. One value if they agree.
func (e evidence) nodeFacts() []result.Fact {
	of := func(name string, value func(corev1.Node) string) result.Fact {
		seen := map[string]bool{}
		for _, n := range e.Nodes {
			v := value(n)
			seen[known(v, v != "")] = true
		}
		if len(seen) == 0 {
			seen[result.Unknown] = true
		}
		return result.Fact{Name: name, Value: strings.Join(slices.Sorted(maps.Keys(seen)), " | ")}
	}
	label := func(key string) func(corev1.Node) string {
		return func(n corev1.Node) string { return orNone(n.Labels[key]) }
	}
	return []result.Fact{
		of("kubelet", func(n corev1.Node) string { return n.Status.NodeInfo.KubeletVersion }),
		of("container-runtime", func(n corev1.Node) string { return n.Status.NodeInfo.ContainerRuntimeVersion }),
		of("kernel", func(n corev1.Node) string { return n.Status.NodeInfo.KernelVersion }),
		of("os", func(n corev1.Node) string { return n.Status.NodeInfo.OSImage }),
		of("architecture", func(n corev1.Node) string { return n.Status.NodeInfo.Architecture }),
		of("cpus", func(n corev1.Node) string { return n.Status.Capacity.Cpu().String() }),
		of("memory", func(n corev1.Node) string { return unit.Format(float64(n.Status.Capacity.Memory().Value()), unit.Byte) }),
		of("node-type", label(corev1.LabelInstanceTypeStable)),
		of("zone", label(corev1.LabelTopologyZone)),
		of("region", label(corev1.LabelTopologyRegion)),
		of("provider", func(n corev1.Node) string {
			provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
			return orNone(provider)
		}),
	}
}

// orNone says of what a node does not say of itself that it does not.
func orNone(text string) string {
	if text == "" {
		return "none given"
	}
	return text
}

// A plugin is a network plugin, known by the images of its daemon set.
type plugin struct{ name, image string }

func plugins() []plugin {
	return []plugin{
		{"cilium", "cilium/cilium"}, {"gke-dataplane-v2", "/anetd"}, {"gke-dataplane-v2", "gke.gcr.io/cilium"},
		{"calico", "calico/node"}, {"canal", "canal"}, {"flannel", "flannel"}, {"antrea", "antrea/antrea-agent"},
		{"amazon-vpc", "amazon-k8s-cni"}, {"azure", "azure-cni"}, {"azure", "azure-cns"}, {"kindnet", "kindnetd"}, {"kube-router", "kube-router"},
		{"ovn-kubernetes", "ovn-kube"}, {"kube-ovn", "kube-ovn"}, {"weave", "weave-kube"}, {"multus", "multus"}, {"spiderpool", "spiderpool"},
	}
}

// networkFacts are the pods' network and how Services are done, each by what it shows of itself.
func (e evidence) networkFacts() []result.Fact {
	names, images := e.plugins()
	return []result.Fact{
		{Name: "cni", Value: known(strings.Join(names, " + "), len(names) > 0)},
		{Name: "cni-image", Value: known(strings.Join(images, " "), len(images) > 0)},
		{Name: "encapsulation", Value: e.encapsulation()},
		{Name: "encryption", Value: e.encryption()},
		{Name: "kube-proxy", Value: e.kubeProxy()},
	}
}

// plugins are the names and the images, without registry, of the daemon sets that are network plugins.
func (e evidence) plugins() (names, images []string) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, p := range plugins() {
				if strings.Contains(c.Image, p.image) && !slices.Contains(names, p.name) {
					names = append(names, p.name)
					images = append(images, c.Image[strings.LastIndex(c.Image, "/")+1:])
					break
				}
			}
		}
	}
	slices.Sort(names)
	slices.Sort(images)
	return names, images
}

// encapsulation is how pods' packets cross the network of the nodes.
func (e evidence) encapsulation() string {
	if c := e.Config["kube-system/cilium-config"]; c != nil {
		return cilium(c)
	}
	for _, name := range []string{"kube-flannel/kube-flannel-cfg", "kube-system/kube-flannel-cfg"} {
		if backend := flannel(e.Config[name]["net-conf.json"]); backend != "" {
			return "flannel " + backend + " (config map " + name + ")"
		}
	}
	for _, n := range e.Nodes {
		if backend := n.Annotations["flannel.alpha.coreos.com/backend-type"]; backend != "" {
			return "flannel " + backend + " (annotation of the nodes)"
		}
	}
	for _, n := range e.Nodes {
		switch {
		case n.Annotations["projectcalico.org/IPv4IPIPTunnelAddr"] != "":
			return "ipip (annotation of the nodes)"
		case n.Annotations["projectcalico.org/IPv4VXLANTunnelAddr"] != "":
			return "vxlan (annotation of the nodes)"
		}
	}
	return e.byDevice(map[string]string{
		"flannel.": "vxlan", "cilium_vxlan": "vxlan", "cilium_geneve": "geneve", "vxlan.calico": "vxlan", "vxlan-v6.calico": "vxlan",
		"genev_sys": "geneve", "vxlan_sys": "vxlan", "vxlan-": "vxlan", "weave": "vxlan",
	})
}

func cilium(c map[string]string) string {
	const from = " (config map cilium-config)"
	mode, protocol := c["routing-mode"], c["tunnel-protocol"]
	switch {
	case mode == "native" || c["tunnel"] == "disabled":
		return "none, native routing" + from
	case protocol != "":
		return protocol + from
	case c["tunnel"] != "":
		return c["tunnel"] + from
	case mode == "tunnel":
		return "vxlan" + from // Cilium's default
	}
	return result.Unknown
}

// flannel is the backend of a net-conf.json; empty if that is none.
func flannel(text string) string {
	var conf struct {
		Backend struct{ Type string }
	}
	if json.Unmarshal([]byte(text), &conf) != nil {
		return ""
	}
	return conf.Backend.Type
}

// byDevice names what the devices of a node, by how their names begin, are signs of.
func (e evidence) byDevice(signs map[string]string) string {
	if e.Node == nil {
		return result.Unknown
	}
	for _, i := range e.Node.Interfaces {
		for _, prefix := range slices.Sorted(maps.Keys(signs)) {
			if strings.HasPrefix(i.Name, prefix) {
				return signs[prefix] + " (device " + i.Name + " of the node)"
			}
		}
	}
	return result.Unknown
}

func (e evidence) encryption() string {
	if c := e.Config["kube-system/cilium-config"]; c != nil {
		switch {
		case c["enable-wireguard"] == "true":
			return "wireguard (config map cilium-config)"
		case c["enable-ipsec"] == "true":
			return "ipsec (config map cilium-config)"
		}
		return "none (config map cilium-config)"
	}
	if backend := e.encapsulation(); strings.HasPrefix(backend, "flannel wireguard") {
		return "wireguard (backend of flannel)"
	}
	return e.byDevice(map[string]string{"cilium_wg": "wireguard", "wireguard.cali": "wireguard", "flannel-wg": "wireguard", "wg-": "wireguard"})
}

// kubeProxy is how Services become endpoints: what kube-proxy itself says on its node, else what it or what replaces it is
// configured for.
func (e evidence) kubeProxy() string {
	if e.Node != nil {
		for _, u := range slices.Sorted(maps.Keys(e.Node.Answers)) {
			mode := strings.TrimSpace(e.Node.Answers[u])
			if slices.Contains([]string{"iptables", "ipvs", "nftables", "userspace"}, mode) {
				return mode + " (kube-proxy says so)"
			}
		}
	}
	if c := e.Config["kube-system/cilium-config"]; c != nil {
		if r := c["kube-proxy-replacement"]; r == "true" || r == "strict" {
			return "replaced by cilium (config map cilium-config)"
		}
	}
	if mode, ok := proxyMode(e.Config["kube-system/kube-proxy"]); ok {
		return mode + " (config map kube-proxy)"
	}
	return e.byDevice(map[string]string{"kube-ipvs0": "ipvs"})
}

// proxyMode reads kube-proxy's configuration; an empty mode is its default.
func proxyMode(data map[string]string) (string, bool) {
	for _, key := range []string{"config.conf", "config", "kube-proxy-config.yaml"} {
		text, ok := data[key]
		if !ok {
			continue
		}
		var conf struct {
			Mode string `json:"mode"`
		}
		if yaml.Unmarshal([]byte(text), &conf) != nil {
			return "", false
		}
		if conf.Mode == "" {
			return "iptables", true
		}
		return conf.Mode, true
	}
	return "", false
}

// placeFacts are what pods saw of where they were.
func (e evidence) placeFacts() []result.Fact {
	pod := func(name string) string {
		for _, r := range []*meet.Report{e.Pod, e.Node} {
			if r != nil {
				return fact(*r, name)
			}
		}
		return result.Unknown
	}
	list := []result.Fact{
		{Name: "cpu-model", Value: pod("cpu-model")},
		{Name: "confidential-vm", Value: pod("confidential-vm")},
		{Name: "pod-mtu", Value: mtuOf(e.Pod)},
		{Name: "node-mtu", Value: mtuOf(e.Node)},
	}
	if e.Pod != nil {
		for _, f := range e.Pod.Facts {
			if strings.HasPrefix(f.Name, "sysctl.") {
				list = append(list, f)
			}
		}
	}
	return list
}

func mtuOf(r *meet.Report) string {
	if r == nil {
		return result.Unknown
	}
	return known(fmt.Sprint(r.MTU), r.MTU > 0)
}

// proxyURLs are where kube-proxy tells its mode on a node with that address.
func proxyURLs(address string) []string {
	var urls []string
	for _, host := range []string{"127.0.0.1", address} {
		u := url.URL{Scheme: "http", Host: netJoin(host), Path: "/proxyMode"}
		urls = append(urls, u.String())
	}
	return urls
}

func netJoin(host string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":10249"
}
