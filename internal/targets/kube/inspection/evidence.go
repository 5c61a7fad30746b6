// Package inspection derives facts from objects of the API server: the network plugin and its settings, the usable
// nodes, the containers in a pod besides the agent, and the properties of storage classes. Its functions are pure and
// send no requests.
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

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An Evidence holds the objects and preflight reports that the facts of a cluster derive from. Each part may be
// missing, since the user may lack the right to read it.
type Evidence struct {
	Version        string   // of the API server
	Network        string   // additional network that the traffic takes, or empty
	DefaultNetwork string   // network that pods have in place of the cluster's, or empty
	Chain          []string // plugins of DefaultNetwork, if known
	Nodes          []corev1.Node
	DaemonSets     []appsv1.DaemonSet
	Config         map[string]map[string]string // config maps by namespace/name
	Pools          []IPPool                     // Calico's
	Felix          *Felix                       // Calico's, of the whole cluster
	NodeConfigs    []CiliumNodeConfig
	Node           *preflight.Report // from a pod in its node's network
	Pod            *preflight.Report // from a pod in the pod network
	Admitted       *corev1.Pod       // the pod that reported Pod, as the API server admitted it
}

// ConfigMaps lists the config maps, as namespace and name, with the settings of network plugins and kube-proxy.
var ConfigMaps = [][2]string{
	{"kube-system", "kube-proxy"}, {"kube-system", "cilium-config"}, {"cilium", "cilium-config"},
	{"kube-flannel", "kube-flannel-cfg"},
	{"kube-system", "kube-flannel-cfg"}, {"kube-system", "canal-config"}, {"kube-system", "calico-config"},
	{"kube-system", "antrea-config"},
}

// Facts returns the facts about the cluster. What the evidence does not show is result.Unknown.
func (e Evidence) Facts() []result.Fact {
	list := []result.Fact{
		{Name: "kubernetes", Value: cmp.Or(e.Version, result.Unknown)},
		result.WithEvidence("distribution", e.distribution()),
	}
	list = append(append(list, e.nodeFacts()...), machineFacts(e.Nodes)...)
	return slices.Concat(list, e.networkFacts(), e.meshFacts(), e.podFacts())
}

// nodeFacts returns facts about the nodes of the experiment. If the nodes differ, a fact has all their values.
func (e Evidence) nodeFacts() []result.Fact {
	of := func(name string, value func(corev1.Node) string) result.Fact {
		seen := map[string]bool{}
		for _, n := range e.Nodes {
			seen[cmp.Or(value(n), result.Unknown)] = true
		}
		if len(seen) == 0 { // nodes cannot be listed: use the report of a pod on one of them
			seen[e.reported(name)] = true
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

// reported returns a fact about the machine from the pods' preflight reports.
func (e Evidence) reported(name string) string {
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

// Signs of distributions, each with the name of the distribution: substrings of API server versions, and labels or
// annotations of nodes. The first sign that is found counts.
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

// distribution returns the Kubernetes distribution, with the sign that identifies it.
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

// A plugin identifies a network plugin by the images of its daemon set: image is a substring of the last element of an
// image's name, or, if image contains a slash, of the whole name.
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

// onlyAttaches reports whether a plugin only attaches pods to the networks of other plugins.
func onlyAttaches(plugin string) bool { return plugin == "multus" || plugin == "spiderpool" }

// networkFacts returns facts about the pod network and the implementation of Services, each with its evidence.
func (e Evidence) networkFacts() []result.Fact {
	names, images := e.Plugins()
	if traces := e.flannelTraces(); traces != "" && len(slices.DeleteFunc(slices.Clone(names), onlyAttaches)) == 0 {
		names = append([]string{"flannel (" + traces + ")"}, names...)
	}
	if e.DefaultNetwork != "" {
		names = e.defaultNetwork()
	}
	return []result.Fact{
		result.WithEvidence("cni", cmp.Or(strings.Join(names, " + "), result.Unknown)),
		{Name: "cni-image", Value: cmp.Or(strings.Join(images, " "), result.Unknown)},
		result.WithEvidence("encapsulation", e.encapsulation()),
		result.WithEvidence("encryption", e.encryption()),
		{Name: "cni-settings", Value: e.settingsFact()},
		result.WithEvidence("kube-proxy", e.kubeProxy()),
	}
}

// defaultNetwork returns the plugin chain of DefaultNetwork with its evidence; nil if it is unknown.
func (e Evidence) defaultNetwork() []string {
	if len(e.Chain) == 0 {
		return nil
	}
	return []string{strings.Join(e.Chain, " + ") + " (NetworkAttachmentDefinition " + e.DefaultNetwork + ")"}
}

// Chain returns the plugins of a CNI configuration in order. It reads nothing else of the configuration, and returns
// nil if the configuration is invalid or the name of a plugin is not that of a program.
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

// programName matches names of plugin programs.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// Plugins returns the network plugins that run as daemon sets, and their images without registry and repository; both
// sorted.
func (e Evidence) Plugins() (names, images []string) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, p := range pluginImages {
				image := c.Image
				if !strings.Contains(p.image, "/") {
					image = imageName(c.Image)
				}
				if strings.Contains(image, p.image) && !slices.Contains(names, p.name) {
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

// imageName returns the name of an image without registry and repository.
func imageName(image string) string { return image[strings.LastIndex(image, "/")+1:] }

// podFacts returns facts from the preflight reports of pods. Only a pod in the node's network sees the node's devices.
func (e Evidence) podFacts() []result.Fact {
	list := []result.Fact{
		{Name: "cpu-model", Value: e.reported("cpu-model")},
		{Name: result.ConfidentialVM, Value: e.confidential()},
		{Name: "pod-mtu", Value: mtuOf(e.Pod)},
		{Name: "node-mtu", Value: mtuOf(e.Node)},
		{Name: "pod-bandwidth", Value: e.bandwidth()},
	}
	if mtu := e.tunnelMTU(); mtu != "" {
		list = append(list, result.WithEvidence("tunnel-mtu", mtu))
	}
	for _, place := range []struct {
		name   string
		report *preflight.Report
	}{{"pod", e.Pod}, {"node", e.Node}} {
		var d machine.Device
		if place.report != nil {
			d = place.report.Device
		}
		for _, f := range []result.Fact{{Name: "device", Value: d.Name}, {Name: "driver", Value: d.Driver},
			{Name: "offloads", Value: d.Offloads}, {Name: "qdisc", Value: d.Qdisc}, {Name: "speed", Value: d.Speed}} {
			list = append(list, result.Fact{Name: place.name + "-" + f.Name, Value: cmp.Or(f.Value, result.Unknown)})
		}
	}
	return append(append(list, sysctlsOf(e.Pod, "")...), sysctlsOf(e.Node, "node.")...)
}

// sysctlsOf returns the sysctls in a report. It leaves out unknown ones: a pod cannot read all sysctls of its machine.
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

// confidentialLabels lists labels of nodes that are confidential machines. Node Feature Discovery's labels for SEV are
// not among them: they mark hosts that can start confidential machines.
var confidentialLabels = []string{
	"cloud.google.com/gke-confidential-nodes=true", "kubernetes.azure.com/security-type=ConfidentialVM",
	"feature.node.kubernetes.io/cpu-security.tdx.protected=true",
}

// confidential returns the signs of confidential machines, from the pods' reports and the labels of the nodes. If there
// is no sign, it returns what the pods reported, which may be that they saw none.
func (e Evidence) confidential() string {
	var signs []string
	within := e.reported(result.ConfidentialVM)
	for _, n := range e.Nodes {
		for _, label := range confidentialLabels {
			key, value, _ := strings.Cut(label, "=")
			if sign := "label " + label; n.Labels[key] == value && !slices.Contains(signs, sign) {
				signs = append(signs, sign)
			}
		}
	}
	if within != result.Unknown && within != result.NoConfidentialSign {
		signs = append([]string{within}, signs...)
	}
	if len(signs) == 0 {
		return within
	}
	return strings.Join(signs, ", ")
}

// mtuOf returns the MTU of a report in bytes as a fact's value.
func mtuOf(r *preflight.Report) string {
	if r == nil || r.MTU == 0 {
		return result.Unknown
	}
	return strconv.Itoa(r.MTU)
}

// ProxyURLs returns the URLs at which kube-proxy may report its mode on the node with an address.
func ProxyURLs(address string) []string {
	var urls []string
	for _, host := range []string{"127.0.0.1", address} {
		u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, "10249"), Path: "/proxyMode"}
		urls = append(urls, u.String())
	}
	return urls
}
