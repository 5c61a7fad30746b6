package inspection

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
)

// What network plugins say of themselves: each function reads one plugin's own settings, and answers with what they
// mean and where that was found, or with nothing. Of settings only those named here are ever looked at, and only values
// that look like settings are shown: nothing else of what a cluster has in the same place gets into a fact.

// Of Calico's and Cilium's own resources only what is used is read.
type (
	IPPool struct {
		Spec struct {
			IPIPMode    string `json:"ipipMode"`
			VXLANMode   string `json:"vxlanMode"`
			NATOutgoing bool   `json:"natOutgoing"`
			Disabled    bool   `json:"disabled"`
			// AllowedUses is what addresses are for; empty: of pods too.
			AllowedUses []string `json:"allowedUses"`
		} `json:"spec"`
	}
	Felix struct {
		Spec struct {
			WireGuard   *bool  `json:"wireguardEnabled"`
			WireGuardV6 *bool  `json:"wireguardEnabledV6"`
			IPsecMode   string `json:"ipsecMode"`
			BPF         *bool  `json:"bpfEnabled"`
		} `json:"spec"`
	}
	CiliumNodeConfig struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"nodeSelector"`
			Defaults map[string]string     `json:"defaults"`
		} `json:"spec"`
	}
)

// CalicoDefault is the name of the FelixConfiguration of a whole cluster.
const CalicoDefault = "default"

// settings are the facts of a plugin's own settings that change what is measured, by their own names.
var settings = map[string][]string{
	CiliumMap: {
		"auto-direct-node-routes", "bpf-lb-acceleration", "bpf-lb-mode", "bpf-lb-sock", "datapath-mode",
		"enable-bandwidth-manager", "enable-bbr", "enable-bpf-masquerade", "enable-encryption-strict-mode",
		"enable-endpoint-routes", "enable-host-firewall", "enable-host-legacy-routing", "enable-hubble",
		"enable-ipv4-big-tcp", "enable-ipv4-masquerade", "enable-ipv6-big-tcp", "enable-l7-proxy", "enable-policy",
		"enable-xdp-prefilter", "encrypt-node", "install-no-conntrack-iptables-rules", "ipam", "kube-proxy-replacement",
		"mtu", "node-encryption-opt-out-labels",
	},
	"kube-system/calico-config": {"calico_backend", "typha_service_name", "veth_mtu"},
}

const CiliumMap = "kube-system/cilium-config"

// plain matches what a setting's value looks like. Keys and passwords are longer, or are never under the names above.
var plain = regexp.MustCompile(`^[A-Za-z0-9.,:/_-]{1,40}$`)

// chosenSettings are those settings of the cluster's plugin that are given.
func (e Evidence) chosenSettings() string {
	var list []string
	for _, place := range slices.Sorted(maps.Keys(settings)) {
		for _, c := range e.configs(place) {
			for _, key := range settings[place] {
				if v := c[key]; plain.MatchString(v) && !slices.Contains(list, key+"="+v) {
					list = append(list, key+"="+v)
				}
			}
		}
	}
	for _, p := range e.pools() {
		list = append(list, fmt.Sprintf("pool(ipipMode=%s,vxlanMode=%s,natOutgoing=%v)", orNever(p.Spec.IPIPMode),
			orNever(p.Spec.VXLANMode), p.Spec.NATOutgoing))
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(slices.Compact(list), " "), result.Unknown)
}

// configs are a config map as the nodes that take part have it, each way once: CiliumNodeConfigs change it for some of
// them.
func (e Evidence) configs(name string) []map[string]string {
	base := e.Config[name]
	if base == nil {
		return nil
	}
	if name != CiliumMap || len(e.NodeConfigs) == 0 || len(e.Nodes) == 0 {
		return []map[string]string{base}
	}
	var list []map[string]string
	for _, n := range e.Nodes {
		own := maps.Clone(base)
		for _, c := range e.NodeConfigs {
			selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(n.Labels)) {
				maps.Copy(own, c.Spec.Defaults)
			}
		}
		if !slices.ContainsFunc(list, func(m map[string]string) bool { return maps.Equal(m, own) }) {
			list = append(list, own)
		}
	}
	return list
}

// each is what a config map means on the nodes that take part; values that differ between them are all given. Empty if
// it says nothing on any of them.
func (e Evidence) each(name string, means func(map[string]string) string) string {
	var list []string
	says := false
	for _, c := range e.configs(name) {
		v := means(c)
		says = says || v != ""
		if v = cmp.Or(v, result.Unknown); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	if !says {
		return ""
	}
	slices.Sort(list)
	return strings.Join(list, " | ")
}

// encapsulation is how pods' packets cross the network of the nodes: as the plugin is configured, else by what it has
// written on the nodes, else by its design, else by its devices. All that is evidence of the default network alone.
func (e Evidence) encapsulation() string {
	if e.elsewhere() {
		return result.Unknown
	}
	calico := ""
	if e.Config["kube-system/calico-config"]["calico_backend"] == "vxlan" {
		calico = "vxlan" + perhapsBetween + " (config map calico-config)"
	}
	return cmp.Or(e.each(CiliumMap, ciliumTunnel), e.poolTunnel(), e.flannelBackend(), e.antreaTunnel(), e.routerTunnel(),
		e.annotated(), calico, e.byDesign(), e.byDevice(tunnels), result.Unknown)
}

// elsewhere reports whether the pods' traffic takes another network than the cluster's.
func (e Evidence) elsewhere() bool { return e.Network != "" || e.DefaultNetwork != "" }

// perhapsBetween follows tunnels of Calico where its pools may not be seen, which say when it uses them.
const perhapsBetween = ", always or between subnets"

// tunnels are how devices of tunnels are called. Some kernels have a tunl0 that nobody uses, and that has no address.
// Weave has the bridge weave whether it uses VXLAN or not, and vxlan-6784 if it does.
var tunnels = map[string]string{
	"flannel.": "vxlan", "cilium_vxlan": "vxlan", "cilium_geneve": "geneve", "vxlan.calico": "vxlan" + perhapsBetween,
	"vxlan-v6.calico": "vxlan" + perhapsBetween, "genev_sys": "geneve", "vxlan_sys": "vxlan", "vxlan-6784": "vxlan",
	"antrea-tun": "tunnel", "tunl0": "ipip" + perhapsBetween,
}

// chained says that Cilium only adds to what another plugin carries.
func chained(cilium map[string]string) bool {
	return !slices.Contains([]string{"", "none", "portmap"}, cilium["cni-chaining-mode"])
}

func ciliumTunnel(c map[string]string) string {
	const from = " (config map cilium-config)"
	mode, protocol := c["routing-mode"], c["tunnel-protocol"]
	switch {
	case chained(c):
		return ""
	case mode == "native" || c["tunnel"] == "disabled":
		return "none, native routing" + from
	case slices.Contains([]string{"vxlan", "geneve"}, protocol):
		return protocol + from
	case slices.Contains([]string{"vxlan", "geneve"}, c["tunnel"]):
		return c["tunnel"] + from
	case mode == "tunnel" && protocol == "":
		return "vxlan (Cilium's default, config map cilium-config names no other)"
	}
	return ""
}

// pools are Calico's address pools that are in use for pods.
func (e Evidence) pools() []IPPool {
	return slices.DeleteFunc(slices.Clone(e.Pools), func(p IPPool) bool {
		return p.Spec.Disabled || len(p.Spec.AllowedUses) > 0 && !slices.Contains(p.Spec.AllowedUses, "Workload")
	})
}

func orNever(mode string) string {
	if slices.Contains([]string{"Always", "CrossSubnet"}, mode) {
		return mode
	}
	return "Never"
}

// carriers are plugins that carry packets, and leave policies alone to a Calico beside them.
var carriers = []string{"flannel", "canal", "amazon-vpc", "azure", "kindnet"}

// poolTunnel is what Calico's address pools say; different ones are all given. Where Calico has policies alone, it has
// pools all the same.
func (e Evidence) poolTunnel() string {
	names, _ := e.Plugins()
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(carriers, name) }) {
		return ""
	}
	var list []string
	for _, p := range e.pools() {
		mode := "none, routes"
		for name, when := range map[string]string{"ipip": p.Spec.IPIPMode, "vxlan": p.Spec.VXLANMode} {
			switch orNever(when) {
			case "Always":
				mode = name
			case "CrossSubnet":
				mode = name + " between subnets, routes within one"
			}
		}
		if !slices.Contains(list, mode) {
			list = append(list, mode)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return strings.Join(list, " | ") + " (IPPools of Calico)"
}

// antrea is the agent's configuration as far as it is used here. What is left out has its default.
type antrea struct {
	Encap      string `json:"trafficEncapMode"`
	Tunnel     string `json:"tunnelType"`
	Encryption string `json:"trafficEncryptionMode"`
	IPsec      bool   `json:"enableIPSecTunnel"` // of versions without trafficEncryptionMode
	Proxy      struct {
		All bool `json:"proxyAll"`
	} `json:"antreaProxy"`
}

func (e Evidence) antrea() (c antrea, ok bool) {
	text, ok := e.Config["kube-system/antrea-config"]["antrea-agent.conf"]
	if !ok || yaml.Unmarshal([]byte(text), &c) != nil {
		return antrea{}, false
	}
	return c, true
}

func (e Evidence) antreaTunnel() string {
	from := " (config map antrea-config)"
	c, ok := e.antrea()
	tunnel := c.Tunnel
	switch {
	case strings.EqualFold(c.Encryption, "wireGuard"):
		tunnel = "wireguard" // instead of the type that is configured
	case tunnel == "":
		tunnel, from = "geneve", " (Antrea's default, config map antrea-config names no other)"
	}
	switch encap := strings.ToLower(c.Encap); {
	case !ok || !plain.MatchString(tunnel):
		return ""
	case encap == "noencap":
		return "none, routes (config map antrea-config)"
	case encap == "hybrid":
		return tunnel + " between subnets, routes within one" + from
	case encap == "" || encap == "encap":
		return tunnel + from
	}
	return "" // with networkPolicyOnly another plugin carries the packets
}

// routerArgument is an argument of kube-router's daemon set. One that is no switch may have its value in the next
// argument; a switch without a value is true.
func (e Evidence) routerArgument(name, byDefault string) (value string, ok bool) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(c.Image, "kube-router") {
				continue
			}
			arguments := slices.Concat(c.Command, c.Args)
			for i, argument := range arguments {
				key, v, given := strings.Cut(strings.TrimLeft(argument, "-"), "=")
				if key != name {
					continue
				}
				switch {
				case given:
				case byDefault == "true" || byDefault == "false":
					v = "true"
				case i+1 < len(arguments):
					v = arguments[i+1]
				}
				return v, plain.MatchString(v)
			}
			return byDefault, true
		}
	}
	return "", false
}

// routes reports whether kube-router carries packets, and is no firewall, nor one who advertises routes, beside another
// plugin.
func (e Evidence) routes() bool {
	runs, _ := e.routerArgument("run-router", "true")
	connects, _ := e.routerArgument("enable-cni", "true")
	return runs == "true" && connects == "true"
}

func (e Evidence) routerTunnel() string {
	const from = " (arguments of kube-router)"
	overlay, _ := e.routerArgument("enable-overlay", "true")
	kind, _ := e.routerArgument("overlay-type", "subnet")
	how, _ := e.routerArgument("overlay-encap", "ipip")
	switch {
	case !e.routes():
		return ""
	case overlay != "true":
		return "none, routes" + from
	case !slices.Contains([]string{"ipip", "fou"}, how):
		return ""
	case kind == "full":
		return how + from
	case kind == "subnet":
		return how + " between subnets, routes within one" + from
	}
	return ""
}

// annotated is what plugins write on the nodes.
func (e Evidence) annotated() string {
	const from = " (annotation of the nodes)"
	if backends, _ := e.flannelWritten(); len(backends) > 0 {
		return "flannel " + strings.Join(backends, " | ") + from
	}
	for _, n := range e.Nodes {
		switch {
		case n.Annotations["projectcalico.org/IPv4IPIPTunnelAddr"] != "":
			return "ipip" + perhapsBetween + from
		case n.Annotations["projectcalico.org/IPv4VXLANTunnelAddr"] != "":
			return "vxlan" + perhapsBetween + from
		}
	}
	return ""
}

// onlyWays are those of plugins that have one.
var onlyWays = [][2]string{
	{"kindnet", "none, routes (kindnet has nothing else)"},
	{"amazon-vpc", "none, addresses of the VPC (amazon-vpc has nothing else)"},
}

// byDesign is of plugins that have one way only.
func (e Evidence) byDesign() string {
	names, _ := e.Plugins()
	for _, p := range onlyWays {
		if slices.Contains(names, p[0]) {
			return p[1]
		}
	}
	return ""
}

// byDevice names what the devices of a node, by how their names begin, are signs of; different ones are all given.
// Empty if there is no sign.
func (e Evidence) byDevice(signs map[string]string) string {
	if e.Node == nil {
		return ""
	}
	var list []string
	seen := map[string]bool{}
	for _, i := range e.Node.Interfaces {
		for _, prefix := range slices.Sorted(maps.Keys(signs)) {
			if strings.HasPrefix(i.Name, prefix) && (i.Name != "tunl0" || len(i.Addresses) > 0) && !seen[signs[prefix]] {
				seen[signs[prefix]] = true
				list = append(list, signs[prefix]+" (device "+i.Name+" of the node)")
			}
		}
	}
	return strings.Join(list, " | ")
}

// wireguards are how devices of WireGuard are called.
var wireguards = map[string]string{
	"cilium_wg": "wireguard", "wireguard.cali": "wireguard", "flannel-wg": "wireguard", "antrea-wg": "wireguard",
	"wg-": "wireguard",
}

func (e Evidence) encryption() string {
	if e.elsewhere() {
		return result.Unknown
	}
	flannel, encrypts := e.flannelEncryption()
	if encrypts { // whatever a plugin beside it does
		return flannel
	}
	return cmp.Or(e.each(CiliumMap, ciliumEncryption), e.felixEncryption(), e.antreaEncryption(), e.weaveEncryption(),
		e.byDevice(wireguards), flannel, e.routerEncryption(), result.Unknown)
}

// routerEncryption is of kube-router, which has none, where it is what carries packets.
func (e Evidence) routerEncryption() string {
	if names, _ := e.Plugins(); e.routes() && len(names) == 1 {
		return "none (kube-router has no encryption)"
	}
	return ""
}

func ciliumEncryption(c map[string]string) string {
	const from = " (config map cilium-config)"
	scope := ""
	if c["encrypt-node"] == "true" {
		scope = ", between nodes too"
	}
	switch {
	case c["enable-wireguard"] == "true":
		return "wireguard" + scope + from
	case c["enable-ipsec"] == "true":
		return "ipsec" + from
	case c["enable-ztunnel"] == "true":
		return "" // of the namespaces that are enrolled, which the config map does not name
	case chained(c):
		return ""
	}
	return "none" + from
}

// felixEncryption is Calico's, for the whole cluster. What it does not say is off.
func (e Evidence) felixEncryption() string {
	const from = " (FelixConfiguration of Calico)"
	switch {
	case e.Felix == nil:
		return ""
	case ptr.Deref(e.Felix.Spec.WireGuard, false), ptr.Deref(e.Felix.Spec.WireGuardV6, false):
		return "wireguard" + from
	case e.Felix.Spec.IPsecMode != "": // Calico Enterprise's
		return "ipsec" + from
	}
	return "none" + from
}

func (e Evidence) antreaEncryption() string {
	const from = " (config map antrea-config)"
	c, ok := e.antrea()
	switch {
	case !ok:
		return ""
	case strings.EqualFold(c.Encryption, "wireGuard"):
		return "wireguard" + from
	case strings.EqualFold(c.Encryption, "ipsec"), c.IPsec:
		return "ipsec" + from
	case strings.EqualFold(c.Encap, "networkPolicyOnly"):
		return "" // another plugin carries the packets
	}
	return "none" + from
}

// weaveEncryption is on where Weave has a password. That there is one is all that is looked at.
func (e Evidence) weaveEncryption() string {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(c.Image, "weave-kube") {
				continue
			}
			if len(c.EnvFrom) > 0 {
				return result.Unknown // the password may be in what that names
			}
			if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "WEAVE_PASSWORD" }) {
				return "on (weave has a password)"
			}
			return "none (weave has no password)"
		}
	}
	return ""
}

// kubeProxy is how Services become endpoints: what replaces kube-proxy, else what that itself says on its node, else
// what it is configured for.
func (e Evidence) kubeProxy() string {
	answer, replaced := e.proxyAnswer(), cmp.Or(e.each(CiliumMap, ciliumProxy), e.otherProxy())
	switch {
	case replaced != "" && answer != "":
		return replaced + "; kube-proxy runs too: " + answer
	case replaced != "":
		return replaced
	}
	return cmp.Or(e.besideCilium(cmp.Or(answer, e.proxyConfigured())), e.byDevice(ipvs), result.Unknown)
}

// proxyConfigured is what kube-proxy's config map says, which may be left of one that is gone.
func (e Evidence) proxyConfigured() string {
	runs := func(d appsv1.DaemonSet) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.Containers,
			func(c corev1.Container) bool { return strings.Contains(imageName(c.Image), "kube-proxy") })
	}
	if len(e.DaemonSets) > 0 && !slices.ContainsFunc(e.DaemonSets, runs) {
		return ""
	}
	return proxyMode(e.Config["kube-system/kube-proxy"])
}

// besideCilium is what kube-proxy does where Cilium does not replace it: Cilium balances connections of pods all the
// same, and kube-proxy those of nodes.
func (e Evidence) besideCilium(proxy string) string {
	if proxy == "" || e.Config[CiliumMap] == nil {
		return proxy
	}
	return proxy + "; cilium for connections of pods (it balances those itself)"
}

// ipvs is how the device of kube-proxy's mode of that name is called.
var ipvs = map[string]string{"kube-ipvs0": "ipvs"}

func (e Evidence) proxyAnswer() string {
	if e.Node == nil {
		return ""
	}
	for _, u := range slices.Sorted(maps.Keys(e.Node.Answers)) {
		if mode := strings.TrimSpace(e.Node.Answers[u]); slices.Contains(proxyModes, mode) {
			return mode + " (kube-proxy says so)"
		}
	}
	return ""
}

var proxyModes = []string{"iptables", "ipvs", "nftables", "userspace"}

func ciliumProxy(c map[string]string) string {
	if r := c["kube-proxy-replacement"]; r == "true" || r == "strict" {
		return "replaced by cilium (config map cilium-config)"
	}
	return ""
}

func (e Evidence) otherProxy() string {
	service, router := e.routerArgument("run-service-proxy", "true")
	names, _ := e.Plugins()
	c, _ := e.antrea()
	switch {
	case e.Felix != nil && ptr.Deref(e.Felix.Spec.BPF, false):
		return "replaced by calico, eBPF (FelixConfiguration of Calico)"
	case c.Proxy.All:
		return "replaced by antrea (config map antrea-config)"
	case router && service == "true":
		return "replaced by kube-router, ipvs (arguments of kube-router)"
	case slices.Contains(names, "ovn-kubernetes"):
		return "replaced by ovn-kubernetes (it does Services itself)"
	}
	return ""
}

// proxyMode reads kube-proxy's configuration; empty if it cannot be read. An empty mode is its default.
func proxyMode(data map[string]string) string {
	for _, key := range []string{"config.conf", "config", "kube-proxy-config.yaml"} {
		text, ok := data[key]
		if !ok {
			continue
		}
		var conf struct {
			Mode string `json:"mode"`
		}
		switch err := yaml.Unmarshal([]byte(text), &conf); {
		case err == nil && conf.Mode == "":
			return "iptables (kube-proxy's default, config map kube-proxy names no other)"
		case err == nil && slices.Contains(proxyModes, conf.Mode):
			return conf.Mode + " (config map kube-proxy)"
		}
		return ""
	}
	return ""
}

// bandwidth is what the pods' annotations limit them to. Which plugin follows them is not in the annotations: the
// bandwidth plugin of CNI in a chain does, and Cilium with its bandwidth manager.
func (e Evidence) bandwidth() string {
	var list []string
	for _, way := range []string{"egress", "ingress"} {
		value := e.Annotations["kubernetes.io/"+way+"-bandwidth"]
		switch {
		case plain.MatchString(value):
			list = append(list, way+" "+value)
		case value != "":
			list = append(list, way+" (no plain setting)")
		}
	}
	if e.Pod == nil {
		return result.Unknown
	}
	return cmp.Or(strings.Join(list, ", "), noneGiven) + " (annotations of the pods)"
}

// overheads are what tunnels add to a packet over IPv4: the outer IP header (20), and UDP (8), VXLAN (8, RFC 7348) or
// Geneve without options (8, RFC 8926), and the inner Ethernet header (14) of those two.
var overheads = map[string]int{"vxlan": 50, "geneve": 50, "ipip": 20}

// wireGuardOverhead is what WireGuard adds over IPv4: IP (20), UDP (8), its header (16) and its tag (16).
const wireGuardOverhead = 60

// longerHeader is what the header of IPv6 (40) has more than that of IPv4.
const longerHeader = 20

// tunnelRoom says whether full packets of pods fit into those of nodes, with what every one of them is packed in. Empty
// if that is not known, or nothing is.
func (e Evidence) tunnelRoom() string {
	encapsulation, encryption := e.encapsulation(), e.encryption()
	if strings.Contains(encapsulation+encryption, " | ") {
		return "" // nodes differ
	}
	tunnel, _, _ := strings.Cut(encapsulation, " (")
	tunnel = strings.TrimPrefix(tunnel, "flannel ")
	overhead, packed := overheads[tunnel], tunnel
	encryption, _, _ = strings.Cut(encryption, " (")
	switch encryption, _, _ = strings.Cut(encryption, ","); encryption {
	case "none":
	case "wireguard":
		packed = "wireguard"
		if overhead > 0 {
			packed = tunnel + " in wireguard"
		}
		overhead += wireGuardOverhead
	default:
		return "" // what it adds is not known
	}
	link := e.nodeLink()
	if overhead == 0 || e.Pod == nil || e.Pod.MTU == 0 || link.MTU == 0 {
		return ""
	}
	if len(link.Addresses) > 0 && !slices.ContainsFunc(link.Addresses, netip.Addr.Is4) {
		overhead += longerHeader
	}
	verdict := "fits"
	if e.Pod.MTU+overhead > link.MTU {
		verdict = "does not fit"
	}
	return fmt.Sprintf("%s: pods %d, %s %d, nodes %d", verdict, e.Pod.MTU, packed, overhead, link.MTU)
}

// nodeLink is the device that has the address of a node that others know; without an MTU if that is not known. The
// route from there to pods may lead through a tunnel, which has a smaller one.
func (e Evidence) nodeLink() (link preflight.Interface) {
	if e.Node == nil {
		return link
	}
	for _, i := range e.Node.Interfaces {
		if i.Name == e.Node.Device.Name {
			return i
		}
	}
	return link
}
