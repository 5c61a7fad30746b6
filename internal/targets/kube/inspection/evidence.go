// Package inspection turns objects of the API server into facts: the network plugin and its settings, nodes that can
// take part, what is in a pod besides the agent, what a storage class promises. It is pure: it asks nobody.
package inspection

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An Evidence is what a cluster shows of itself. Each part may be missing: nobody must be allowed to see it.
type Evidence struct {
	Version string
	Network string // that the pods' traffic takes next to the default one, or
	// DefaultNetwork is the one that pods have in place of the cluster's, and Chain its plugins, if they are known.
	DefaultNetwork string
	Chain          []string
	Nodes          []corev1.Node
	DaemonSets     []appsv1.DaemonSet
	Config         map[string]map[string]string // config maps by namespace/name
	Pools          []IPPool                     // Calico's
	Felix          *Felix                       // Calico's, of the whole cluster
	NodeConfigs    []CiliumNodeConfig
	Node           *preflight.Report // of a pod in the network of its node
	Pod            *preflight.Report
	Annotations    map[string]string // of that pod
}

// ConfigMaps are those that network plugins and kube-proxy keep their settings in.
var ConfigMaps = [][2]string{
	{"kube-system", "kube-proxy"}, {"kube-system", "cilium-config"}, {"cilium", "cilium-config"},
	{"kube-flannel", "kube-flannel-cfg"},
	{"kube-system", "kube-flannel-cfg"}, {"kube-system", "canal-config"}, {"kube-system", "calico-config"},
	{"kube-system", "antrea-config"},
}

// Facts are what the evidence says.
func (e Evidence) Facts() []result.Fact {
	list := []result.Fact{
		{Name: "kubernetes", Value: cmp.Or(e.Version, result.Unknown)},
		{Name: "distribution", Value: e.distribution()},
	}
	list = append(append(list, e.nodeFacts()...), machineFacts(e.Nodes)...)
	list = append(list, e.networkFacts()...)
	return append(list, e.placeFacts()...)
}

// nodeFacts are of the nodes that take part. One value if they agree.
func (e Evidence) nodeFacts() []result.Fact {
	of := func(name string, value func(corev1.Node) string) result.Fact {
		seen := map[string]bool{}
		for _, n := range e.Nodes {
			seen[cmp.Or(value(n), result.Unknown)] = true
		}
		if len(seen) == 0 { // the nodes may not be listed, but a pod on one of them has looked
			seen[e.seen(name)] = true
		}
		return result.Fact{Name: name, Value: strings.Join(slices.Sorted(maps.Keys(seen)), " | ")}
	}
	label := func(key string) func(corev1.Node) string {
		return func(n corev1.Node) string { return cmp.Or(n.Labels[key], noneGiven) }
	}
	return []result.Fact{
		of("kubelet", func(n corev1.Node) string { return n.Status.NodeInfo.KubeletVersion }),
		of("container-runtime", func(n corev1.Node) string { return n.Status.NodeInfo.ContainerRuntimeVersion }),
		of("kernel", func(n corev1.Node) string { return n.Status.NodeInfo.KernelVersion }),
		of("os", func(n corev1.Node) string { return n.Status.NodeInfo.OSImage }),
		of("architecture", func(n corev1.Node) string { return n.Status.NodeInfo.Architecture }),
		of("cpus", func(n corev1.Node) string {
			if cpus := n.Status.Capacity.Cpu(); !cpus.IsZero() {
				return cpus.String()
			}
			return ""
		}),
		of("memory", func(n corev1.Node) string {
			if memory := n.Status.Capacity.Memory(); !memory.IsZero() {
				return unit.Format(float64(memory.Value()), unit.Byte)
			}
			return ""
		}),
		of("node-type", label(corev1.LabelInstanceTypeStable)),
		of("zone", label(corev1.LabelTopologyZone)),
		of("region", label(corev1.LabelTopologyRegion)),
		of("provider", func(n corev1.Node) string {
			provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
			return cmp.Or(provider, noneGiven)
		}),
	}
}

// seen is what a place has seen of its machine.
func (e Evidence) seen(name string) string {
	for _, r := range []*preflight.Report{e.Pod, e.Node} {
		if r == nil {
			continue
		}
		if value := result.FactOf(r.Facts, name); value != "" && value != result.Unknown {
			return value
		}
	}
	return result.Unknown
}

// What versions of API servers have in them, and the labels or annotations that nodes have, by distribution.
var (
	versionSigns = [][2]string{
		{"-gke.", "GKE"}, {"-eks-1-", "EKS Distro"}, {"-eks-", "EKS"}, {"+k3s", "k3s"}, {"+rke2", "RKE2"}, {"+k0s", "k0s"},
		{"-tke", "TKE"}, {"-aliyun", "ACK"},
	}
	nodeSigns = [][2]string{
		{"cloud.google.com/gke-nodepool", "GKE"}, {"eks.amazonaws.com/nodegroup", "EKS"},
		{"kubernetes.azure.com/cluster", "AKS"},
		{"node.openshift.io/os_id", "OpenShift"}, {"constellation.edgeless.systems/scaling-group-id", "Constellation"},
		{"microk8s.io/cluster", "MicroK8s"}, {"minikube.k8s.io/name", "minikube"}, {"doks.digitalocean.com/node-id", "DOKS"},
	}
)

// distribution is what kind of Kubernetes it is, by what only that kind has: its version, or labels of its nodes.
func (e Evidence) distribution() string {
	for _, sign := range versionSigns {
		if strings.Contains(e.Version, sign[0]) {
			return sign[1] + " (version of the API server)"
		}
	}
	for _, n := range e.Nodes {
		for _, sign := range nodeSigns {
			_, label := n.Labels[sign[0]]
			_, annotation := n.Annotations[sign[0]]
			if label || annotation {
				return sign[1] + " (mark on the nodes)"
			}
		}
		provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
		switch {
		case provider == "kind":
			return "kind (provider of the nodes)"
		case strings.Contains(n.Status.NodeInfo.OSImage, "Constellation"):
			return "Constellation (OS of the nodes)"
		case strings.Contains(n.Status.NodeInfo.OSImage, "Talos"):
			return "Talos (OS of the nodes)"
		}
	}
	return result.Unknown
}

// A plugin is a network plugin, known by the images of its daemon set: by a part of the last element of their names, or
// of the whole where it has a slash.
type plugin struct{ name, image string }

var pluginImages = []plugin{
	{"cilium", "cilium/cilium"}, {"gke-dataplane-v2", "/anetd"}, {"gke-dataplane-v2", "gke.gcr.io/cilium"},
	{"calico", "calico/node"}, {"calico", "calico-node"}, {"calico", "hardened-calico"},
	{"canal", "canal"}, {"flannel", "flannel"}, {"antrea", "antrea/antrea-agent"},
	{"amazon-vpc", "amazon-k8s-cni"}, {"azure", "azure-cni"}, {"azure", "azure-cns"}, {"kindnet", "kindnetd"},
	{"kube-router", "kube-router"},
	{"ovn-kubernetes", "ovn-kube"}, {"kube-ovn", "kube-ovn"}, {"weave", "weave-kube"}, {"multus", "multus"},
	{"spiderpool", "spiderpool"},
}

// attaches says of plugins that they only bring pods to the networks of others.
func attaches(plugin string) bool { return plugin == "multus" || plugin == "spiderpool" }

// networkFacts are the pods' network and how Services are done, each by what it shows of itself.
func (e Evidence) networkFacts() []result.Fact {
	names, images := e.Plugins()
	if traces := e.flannelTraces(); traces != "" && len(slices.DeleteFunc(slices.Clone(names), attaches)) == 0 {
		names = append([]string{"flannel (" + traces + ")"}, names...)
	}
	if e.DefaultNetwork != "" {
		names = e.defaultNetwork()
	}
	return []result.Fact{
		{Name: "cni", Value: cmp.Or(strings.Join(names, " + "), result.Unknown)},
		{Name: "cni-image", Value: cmp.Or(strings.Join(images, " "), result.Unknown)},
		{Name: "encapsulation", Value: e.encapsulation()},
		{Name: "encryption", Value: e.encryption()},
		{Name: "cni-settings", Value: e.chosenSettings()},
		{Name: "kube-proxy", Value: e.kubeProxy()},
	}
}

// defaultNetwork is the chain of plugins that pods have in place of the cluster's, with its evidence.
func (e Evidence) defaultNetwork() []string {
	if len(e.Chain) == 0 {
		return nil
	}
	return []string{strings.Join(e.Chain, " + ") + " (NetworkAttachmentDefinition " + e.DefaultNetwork + ")"}
}

// Chain are the plugins of a network's configuration, in their order. Nothing else is read of it; empty if a plugin has
// what is no name of a program.
func Chain(config string) []string {
	var network struct {
		Type    string
		Plugins []struct{ Type string }
	}
	if json.Unmarshal([]byte(config), &network) != nil {
		return nil
	}
	var chain []string
	if network.Type != "" {
		chain = append(chain, network.Type)
	}
	for _, p := range network.Plugins {
		chain = append(chain, p.Type)
	}
	if slices.ContainsFunc(chain, func(name string) bool { return !programName.MatchString(name) }) {
		return nil
	}
	return chain
}

// programName is how programs of plugins are called.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// Plugins are the names and the images, without registry, of the daemon sets that are network plugins.
func (e Evidence) Plugins() (names, images []string) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, p := range pluginImages {
				in := c.Image
				if !strings.Contains(p.image, "/") {
					in = imageName(c.Image)
				}
				if strings.Contains(in, p.image) && !slices.Contains(names, p.name) {
					names = append(names, p.name)
					images = append(images, imageName(c.Image))
					break
				}
			}
		}
	}
	slices.Sort(names)
	slices.Sort(images)
	return names, images
}

// imageName is an image's without registry and repository.
func imageName(image string) string { return image[strings.LastIndex(image, "/")+1:] }

// placeFacts are what pods saw of where they were. What a node has for all its pods only a pod in its network sees.
func (e Evidence) placeFacts() []result.Fact {
	list := []result.Fact{
		{Name: "cpu-model", Value: e.seen("cpu-model")},
		{Name: "confidential-vm", Value: e.confidential()},
		{Name: "pod-mtu", Value: mtuOf(e.Pod)},
		{Name: "node-mtu", Value: mtuOf(e.Node)},
		{Name: "pod-bandwidth", Value: e.bandwidth()},
	}
	if room := e.tunnelRoom(); room != "" {
		list = append(list, result.Fact{Name: "tunnel-mtu", Value: room})
	}
	for _, place := range []struct {
		name string
		of   *preflight.Report
	}{{"pod", e.Pod}, {"node", e.Node}} {
		var d preflight.Device
		if place.of != nil {
			d = place.of.Device
		}
		for _, f := range []result.Fact{{Name: "device", Value: d.Name}, {Name: "driver", Value: d.Driver},
			{Name: "offloads", Value: d.Offloads}, {Name: "qdisc", Value: d.Qdisc}, {Name: "speed", Value: d.Speed}} {
			list = append(list, result.Fact{Name: place.name + "-" + f.Name, Value: cmp.Or(f.Value, result.Unknown)})
		}
	}
	return append(append(list, sysctlsOf(e.Pod, "")...), sysctlsOf(e.Node, "node.")...)
}

// sysctlsOf are those that a place has. A pod does not see those of its machine, and they are no fact about it then.
func sysctlsOf(r *preflight.Report, prefix string) []result.Fact {
	if r == nil {
		return nil
	}
	var list []result.Fact
	for _, f := range r.Facts {
		if strings.HasPrefix(f.Name, "sysctl.") && f.Value != result.Unknown {
			list = append(list, result.Fact{Name: prefix + f.Name, Value: f.Value})
		}
	}
	return list
}

// confidentialLabels are those of nodes that are confidential machines. Those of Node Feature Discovery for SEV are of
// machines that could start such ones.
var confidentialLabels = []string{
	"cloud.google.com/gke-confidential-nodes=true", "kubernetes.azure.com/security-type=ConfidentialVM",
	"feature.node.kubernetes.io/cpu-security.tdx.protected=true",
}

// confidential are signs of confidential machines, from within and on the nodes. Where a pod has looked, that there is
// none is said as well.
func (e Evidence) confidential() string {
	var signs []string
	within := e.seen("confidential-vm")
	for _, n := range e.Nodes {
		for _, label := range confidentialLabels {
			key, value, _ := strings.Cut(label, "=")
			if sign := "label " + label; n.Labels[key] == value && !slices.Contains(signs, sign) {
				signs = append(signs, sign)
			}
		}
	}
	if within != result.Unknown && within != noSign {
		signs = append([]string{within}, signs...)
	}
	if len(signs) == 0 {
		return within
	}
	return strings.Join(signs, ", ")
}

// noSign is what a place says that saw none of a confidential machine.
const noSign = "no sign seen"

func mtuOf(r *preflight.Report) string {
	if r == nil || r.MTU == 0 {
		return result.Unknown
	}
	return strconv.Itoa(r.MTU)
}

// ProxyURLs are where kube-proxy tells its mode on a node with that address.
func ProxyURLs(address string) []string {
	var urls []string
	for _, host := range []string{"127.0.0.1", address} {
		u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, "10249"), Path: "/proxyMode"}
		urls = append(urls, u.String())
	}
	return urls
}
