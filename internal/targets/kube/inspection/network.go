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

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Most functions of this file read the settings of one plugin, and return what they mean with their source, or nothing.
// They read only the settings named here and show only values that look like settings, so that no other data of a
// cluster, such as secrets, gets into a fact.

// Resources of Calico and Cilium, with the fields that are used.
type (
	// IPPool is a pool of Calico's pod addresses.
	IPPool struct {
		Spec struct {
			IPIPMode    string `json:"ipipMode"`
			VXLANMode   string `json:"vxlanMode"`
			NATOutgoing bool   `json:"natOutgoing"`
			Disabled    bool   `json:"disabled"`
			// AllowedUses lists the purposes of addresses; empty: all, including pods.
			AllowedUses []string `json:"allowedUses"`
		} `json:"spec"`
	}
	// Felix is a FelixConfiguration of Calico.
	Felix struct {
		Spec struct {
			WireGuard   *bool  `json:"wireguardEnabled"`
			WireGuardV6 *bool  `json:"wireguardEnabledV6"`
			IPsecMode   string `json:"ipsecMode"`
			BPF         *bool  `json:"bpfEnabled"`
		} `json:"spec"`
	}
	// CiliumNodeConfig replaces settings of Cilium on some nodes.
	CiliumNodeConfig struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"nodeSelector"`
			Defaults map[string]string     `json:"defaults"`
		} `json:"spec"`
	}
)

// CalicoDefault is the name of the FelixConfiguration of a whole cluster.
const CalicoDefault = "default"

// shownSettings lists the settings of plugins that change measurements, by config map.
var shownSettings = map[string][]string{
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

// CiliumMap is the config map of Cilium.
const CiliumMap = "kube-system/cilium-config"

// plainSetting matches values that are safe to show. Keys and passwords are longer, or are never under the names above.
var plainSetting = regexp.MustCompile(`^[A-Za-z0-9.,:/_-]{1,40}$`)

// settingsFact returns the settings of the cluster's plugin that are set, as a fact's value.
func (e Evidence) settingsFact() string {
	var list []string
	for _, place := range slices.Sorted(maps.Keys(shownSettings)) {
		for _, c := range e.configs(place) {
			for _, key := range shownSettings[place] {
				if v := c[key]; plainSetting.MatchString(v) && !slices.Contains(list, key+"="+v) {
					list = append(list, key+"="+v)
				}
			}
		}
	}
	for _, p := range e.pools() {
		list = append(list, fmt.Sprintf("pool(ipipMode=%s,vxlanMode=%s,natOutgoing=%v)", poolMode(p.Spec.IPIPMode),
			poolMode(p.Spec.VXLANMode), p.Spec.NATOutgoing))
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(slices.Compact(list), " "), result.Unknown)
}

// configs returns the variants of a config map on the nodes of the experiment: CiliumNodeConfigs change Cilium's for
// some nodes.
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
		variant := maps.Clone(base)
		for _, c := range e.NodeConfigs {
			selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(n.Labels)) {
				maps.Copy(variant, c.Spec.Defaults)
			}
		}
		if !slices.ContainsFunc(list, func(m map[string]string) bool { return maps.Equal(m, variant) }) {
			list = append(list, variant)
		}
	}
	return list
}

// acrossNodes applies meaning to the variants of a config map on the nodes of the experiment, and joins the distinct
// results. It returns an empty string if meaning does so for all variants.
func (e Evidence) acrossNodes(name string, meaning func(map[string]string) string) string {
	var list []string
	found := false
	for _, c := range e.configs(name) {
		v := meaning(c)
		found = found || v != ""
		if v = cmp.Or(v, result.Unknown); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	if !found {
		return ""
	}
	slices.Sort(list)
	return strings.Join(list, " | ")
}

// encapsulation returns the tunnel in which pods' packets cross the network of the nodes or none, with the evidence in
// parentheses: from the configuration of the plugin, else from annotations of the nodes, else from the plugin's design,
// else from devices. All of these concern only the default network.
func (e Evidence) encapsulation() string {
	if e.usesOtherNetwork() {
		return result.Unknown
	}
	calico := ""
	if e.Config["kube-system/calico-config"]["calico_backend"] == "vxlan" {
		calico = "vxlan" + maybeCrossSubnet + " (config map calico-config)"
	}
	return cmp.Or(e.acrossNodes(CiliumMap, ciliumTunnel), e.poolTunnel(), e.flannelBackend(), e.antreaTunnel(),
		e.routerTunnel(), e.annotatedTunnel(), calico, e.fixedTunnel(), e.byDevice(tunnelDevices), result.Unknown)
}

// usesOtherNetwork reports whether the pods' traffic takes another network than the cluster's.
func (e Evidence) usesOtherNetwork() bool { return e.Network != "" || e.DefaultNetwork != "" }

// Suffixes of tunnels that packets within a subnet do not take, and of Calico's whose mode is unknown because its
// pools, which hold it, cannot be read.
const (
	crossSubnet      = "-cross-subnet"
	maybeCrossSubnet = "-maybe-cross-subnet"
)

// tunnelDevices maps prefixes of device names to tunnels. tunl0 counts only with an address, because some kernels have
// an unused one. Weave always has the bridge weave, but vxlan-6784 only if it uses VXLAN.
var tunnelDevices = map[string]string{
	"flannel.":        "vxlan",
	"cilium_vxlan":    "vxlan",
	"cilium_geneve":   "geneve",
	"vxlan.calico":    "vxlan" + maybeCrossSubnet,
	"vxlan-v6.calico": "vxlan" + maybeCrossSubnet,
	"genev_sys":       "geneve",
	"vxlan_sys":       "vxlan",
	"vxlan-6784":      "vxlan",
	"antrea-tun":      "tunnel",
	"tunl0":           "ipip" + maybeCrossSubnet,
}

// chained reports whether Cilium only adds features to another plugin that carries the packets.
func chained(cilium map[string]string) bool {
	return !slices.Contains([]string{"", "none", "portmap"}, cilium["cni-chaining-mode"])
}

// ciliumTunnel returns the encapsulation in Cilium's config map.
func ciliumTunnel(c map[string]string) string {
	const from = " (config map cilium-config)"
	mode, protocol := c["routing-mode"], c["tunnel-protocol"]
	switch {
	case chained(c):
		return ""
	case mode == "native" || c["tunnel"] == "disabled":
		return result.None + from
	case slices.Contains([]string{"vxlan", "geneve"}, protocol):
		return protocol + from
	case slices.Contains([]string{"vxlan", "geneve"}, c["tunnel"]):
		return c["tunnel"] + from
	case mode == "tunnel" && protocol == "":
		return "vxlan (Cilium's default, config map cilium-config names no other)"
	}
	return ""
}

// pools returns Calico's address pools that are in use for pods.
func (e Evidence) pools() []IPPool {
	return slices.DeleteFunc(slices.Clone(e.Pools), func(p IPPool) bool {
		return p.Spec.Disabled || len(p.Spec.AllowedUses) > 0 && !slices.Contains(p.Spec.AllowedUses, "Workload")
	})
}

// poolMode returns when a Calico pool uses a tunnel; the default is Never.
func poolMode(mode string) string {
	if slices.Contains([]string{"Always", "CrossSubnet"}, mode) {
		return mode
	}
	return "Never"
}

// carriers lists plugins that carry the packets where Calico, if present, only enforces policies.
var carriers = []string{"flannel", "canal", "amazon-vpc", "azure", "kindnet"}

// poolTunnel returns the tunnel of Calico's address pools; all tunnels if the pools differ. A tunnel between subnets is
// none if all nodes are in one. It ignores the pools if another plugin carries the packets, because a Calico that only
// enforces policies has pools too.
func (e Evidence) poolTunnel() string {
	names, _ := e.Plugins()
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(carriers, name) }) {
		return ""
	}
	var list []string
	from := "IPPools of Calico"
	for _, p := range e.pools() {
		mode := result.None
		for name, when := range map[string]string{"ipip": p.Spec.IPIPMode, "vxlan": p.Spec.VXLANMode} {
			switch when = poolMode(when); {
			case when == "Always":
				mode = name
			case when == "CrossSubnet" && e.oneSubnet():
				from = "IPPools of Calico with tunnels between subnets; the nodes' annotations name one"
			case when == "CrossSubnet":
				mode = name + crossSubnet
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
	return strings.Join(list, " | ") + " (" + from + ")"
}

// oneSubnet reports whether the addresses with which Calico annotates the nodes are in one subnet per address family.
func (e Evidence) oneSubnet() bool {
	var first [2]netip.Prefix
	for i, n := range e.Nodes {
		var subnets [2]netip.Prefix // of IPv4 and IPv6
		for family, key := range []string{"projectcalico.org/IPv4Address", "projectcalico.org/IPv6Address"} {
			address, given := n.Annotations[key]
			prefix, err := netip.ParsePrefix(address)
			if given && err != nil {
				return false
			}
			subnets[family] = prefix.Masked()
		}
		if i == 0 {
			first = subnets
		}
		if subnets != first {
			return false
		}
	}
	return first != [2]netip.Prefix{}
}

// antrea holds the used fields of the Antrea agent's configuration. Missing fields have their defaults.
type antrea struct {
	Encap      string `json:"trafficEncapMode"`
	Tunnel     string `json:"tunnelType"`
	Encryption string `json:"trafficEncryptionMode"`
	IPsec      bool   `json:"enableIPSecTunnel"` // of versions without trafficEncryptionMode
	Proxy      struct {
		All bool `json:"proxyAll"`
	} `json:"antreaProxy"`
}

// antrea returns the configuration of the Antrea agent; ok is false if there is none, or if it cannot be parsed.
func (e Evidence) antrea() (c antrea, ok bool) {
	text, ok := e.Config["kube-system/antrea-config"]["antrea-agent.conf"]
	if !ok || yaml.Unmarshal([]byte(text), &c) != nil {
		return antrea{}, false
	}
	return c, true
}

// antreaTunnel returns the encapsulation in Antrea's configuration.
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
	case !ok || !plainSetting.MatchString(tunnel):
		return ""
	case encap == "noencap":
		return "none (config map antrea-config)"
	case encap == "hybrid":
		return tunnel + crossSubnet + from
	case encap == "" || encap == "encap":
		return tunnel + from
	}
	return "" // with networkPolicyOnly another plugin carries the packets
}

// routerArgument returns the value of an argument of kube-router's daemon set, or byDefault if it is not given. A
// switch without a value is true; the value of another argument may be the next argument. ok is false if there is no
// kube-router, or if the value does not look like a setting.
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
				return v, plainSetting.MatchString(v)
			}
			return byDefault, true
		}
	}
	return "", false
}

// routerCarriesPackets reports whether kube-router carries packets, instead of only enforcing policies or advertising
// routes next to another plugin.
func (e Evidence) routerCarriesPackets() bool {
	runs, _ := e.routerArgument("run-router", "true")
	connects, _ := e.routerArgument("enable-cni", "true")
	return runs == "true" && connects == "true"
}

// routerTunnel returns the encapsulation in kube-router's arguments.
func (e Evidence) routerTunnel() string {
	const from = " (arguments of kube-router)"
	overlay, _ := e.routerArgument("enable-overlay", "true")
	kind, _ := e.routerArgument("overlay-type", "subnet")
	how, _ := e.routerArgument("overlay-encap", "ipip")
	switch {
	case !e.routerCarriesPackets():
		return ""
	case overlay != "true":
		return result.None + from
	case !slices.Contains([]string{"ipip", "fou"}, how):
		return ""
	case kind == "full":
		return how + from
	case kind == "subnet":
		return how + crossSubnet + from
	}
	return ""
}

// annotatedTunnel returns the encapsulation in flannel's or Calico's annotations of the nodes.
func (e Evidence) annotatedTunnel() string {
	const from = " (annotation of the nodes)"
	if backends, _ := e.flannelAnnotations(); len(backends) > 0 {
		var tunnels []string
		for _, b := range backends {
			tunnels = append(tunnels, backendTunnel(b, false))
		}
		slices.Sort(tunnels)
		return strings.Join(slices.Compact(tunnels), " | ") + " (backend " + strings.Join(backends, " | ") +
			" of flannel, annotation of the nodes)"
	}
	for _, n := range e.Nodes {
		switch {
		case n.Annotations["projectcalico.org/IPv4IPIPTunnelAddr"] != "":
			return "ipip" + maybeCrossSubnet + from
		case n.Annotations["projectcalico.org/IPv4VXLANTunnelAddr"] != "":
			return "vxlan" + maybeCrossSubnet + from
		}
	}
	return ""
}

// fixedTunnels lists plugins that support only one encapsulation.
var fixedTunnels = [][2]string{
	{"kindnet", "none (kindnet has nothing else)"},
	{"amazon-vpc", "none (amazon-vpc has nothing else: pods have addresses of the VPC)"},
}

// fixedTunnel returns the encapsulation of a plugin that supports only one.
func (e Evidence) fixedTunnel() string {
	names, _ := e.Plugins()
	for _, p := range fixedTunnels {
		if slices.Contains(names, p[0]) {
			return p[1]
		}
	}
	return ""
}

// byDevice returns the meanings of the devices of the node, with the devices; empty if no device has a meaning. signs
// maps prefixes of device names to meanings.
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

// wireguardDevices maps prefixes of names of WireGuard devices to the encryption.
var wireguardDevices = map[string]string{
	"cilium_wg": "wireguard", "wireguard.cali": "wireguard", "flannel-wg": "wireguard", "antrea-wg": "wireguard",
	"wg-": "wireguard",
}

// encryption returns how pods' packets between nodes are encrypted, with the evidence.
func (e Evidence) encryption() string {
	if e.usesOtherNetwork() {
		return result.Unknown
	}
	flannel, encrypts := e.flannelEncryption()
	if encrypts { // whatever another plugin does
		return flannel
	}
	return cmp.Or(e.acrossNodes(CiliumMap, ciliumEncryption), e.felixEncryption(), e.antreaEncryption(),
		e.weaveEncryption(), e.byDevice(wireguardDevices), flannel, e.routerEncryption(), result.Unknown)
}

// routerEncryption returns "none", with the evidence, if kube-router is the only plugin and carries the packets: it has
// no encryption.
func (e Evidence) routerEncryption() string {
	if names, _ := e.Plugins(); e.routerCarriesPackets() && len(names) == 1 {
		return "none (kube-router has no encryption)"
	}
	return ""
}

// ciliumEncryption returns the encryption in Cilium's config map.
func ciliumEncryption(c map[string]string) string {
	const from = " (config map cilium-config)"
	scope := ""
	if c["encrypt-node"] == "true" {
		scope = ", between nodes too"
	}
	switch {
	case c["enable-wireguard"] == "true":
		return "wireguard (config map cilium-config" + scope + ")"
	case c["enable-ipsec"] == "true":
		return "ipsec" + from
	case c["enable-ztunnel"] == "true":
		return "" // it encrypts enrolled namespaces only, which the config map does not name
	case chained(c):
		return ""
	}
	return result.None + from
}

// felixEncryption returns the encryption in Calico's cluster-wide FelixConfiguration. Missing fields mean off.
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
	return result.None + from
}

// antreaEncryption returns the encryption in Antrea's configuration.
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
	return result.None + from
}

// weaveEncryption returns the encryption of Weave: it encrypts if it has a password, whose value is not read.
func (e Evidence) weaveEncryption() string {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(c.Image, "weave-kube") {
				continue
			}
			if len(c.EnvFrom) > 0 {
				return result.Unknown // the password may be in one of these sources
			}
			if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "WEAVE_PASSWORD" }) {
				return "on (weave has a password)"
			}
			return "none (weave has no password)"
		}
	}
	return ""
}

// kubeProxy returns what implements Services, with the evidence: what replaces kube-proxy, else the mode that
// kube-proxy reports on its node, else its configuration, else its devices.
func (e Evidence) kubeProxy() string {
	answer, replaced := e.proxyAnswer(), cmp.Or(e.acrossNodes(CiliumMap, ciliumProxy), e.otherProxy())
	switch {
	case replaced != "" && answer != "":
		return replaced + "; kube-proxy runs too: " + answer
	case replaced != "":
		return replaced
	}
	return cmp.Or(e.withCilium(cmp.Or(answer, e.proxyConfigured())), e.byDevice(ipvsDevices), result.Unknown)
}

// proxyConfigured returns the mode in kube-proxy's config map; empty if daemon sets are known and none is kube-proxy,
// since the map may be a leftover.
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

// withCilium adds Cilium, if it is present, to the mode of kube-proxy. Even if Cilium does not replace kube-proxy, it
// balances connections of pods, and kube-proxy only those of nodes.
func (e Evidence) withCilium(proxy string) string {
	if proxy == "" || e.Config[CiliumMap] == nil {
		return proxy
	}
	return proxy + "; cilium for connections of pods (it balances those itself)"
}

// ipvsDevices maps the device of kube-proxy's ipvs mode to the mode.
var ipvsDevices = map[string]string{"kube-ipvs0": "ipvs"}

// proxyAnswer returns the mode that kube-proxy reported at one of ProxyURLs.
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

// ciliumProxy returns that Cilium replaces kube-proxy if its config map says so; else it returns an empty string.
func ciliumProxy(c map[string]string) string {
	if r := c["kube-proxy-replacement"]; r == "true" || r == "strict" {
		return "replaced by cilium (config map cilium-config)"
	}
	return ""
}

// otherProxy returns the plugin other than Cilium that replaces kube-proxy, with the evidence.
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

// proxyMode returns the mode in kube-proxy's config map; empty if it cannot be parsed. An empty mode is the default,
// iptables.
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

// bandwidth returns the bandwidth limits in the pods' annotations. Whether they are enforced depends on the plugin: the
// CNI bandwidth plugin in a chain enforces them, and Cilium with its bandwidth manager.
func (e Evidence) bandwidth() string {
	if e.Pod == nil || e.Admitted == nil {
		return result.Unknown
	}
	var list []string
	for _, direction := range []string{"egress", "ingress"} {
		value := e.Admitted.Annotations["kubernetes.io/"+direction+"-bandwidth"]
		switch {
		case plainSetting.MatchString(value):
			list = append(list, direction+" "+value)
		case value != "":
			list = append(list, direction+" (no plain setting)")
		}
	}
	return cmp.Or(strings.Join(list, ", "), noneGiven) + " (annotations of the pods)"
}

// overheads holds the bytes that a tunnel adds to a packet over IPv4: the outer IP header (20); for VXLAN and Geneve
// also UDP (8), VXLAN (8, RFC 7348) or Geneve without options (8, RFC 8926), and the inner Ethernet header (14).
var overheads = map[string]int{"vxlan": 50, "geneve": 50, "ipip": 20}

// wireGuardOverhead is the number of bytes that WireGuard adds to a packet over IPv4: IP (20), UDP (8), its header (16)
// and its tag (16).
const wireGuardOverhead = 60

// ipv6HeaderExtra is the number of bytes by which the IPv6 header (40) is longer than the IPv4 header (20).
const ipv6HeaderExtra = 20

// tunnelMTU returns whether full-size packets of pods fit into the node's MTU after encapsulation and encryption, with
// all sizes in bytes. It returns an empty string if that is unknown, or if packets are neither encapsulated nor
// encrypted.
func (e Evidence) tunnelMTU() string {
	encapsulation, encryption := e.encapsulation(), e.encryption()
	if strings.Contains(encapsulation+encryption, " | ") {
		return "" // nodes differ
	}
	tunnel, _, _ := strings.Cut(encapsulation, " (")
	overhead, layers := overheads[tunnel], tunnel
	encryption, _, _ = strings.Cut(encryption, " (")
	switch encryption {
	case "none":
	case "wireguard":
		layers = "wireguard"
		if overhead > 0 {
			layers = tunnel + " in wireguard"
		}
		overhead += wireGuardOverhead
	default:
		return "" // its overhead is unknown
	}
	link := e.nodeLink()
	if overhead == 0 || e.Pod == nil || e.Pod.MTU == 0 || link.MTU == 0 {
		return ""
	}
	if len(link.Addresses) > 0 && !slices.ContainsFunc(link.Addresses, netip.Addr.Is4) {
		overhead += ipv6HeaderExtra
	}
	verdict := "fits"
	if e.Pod.MTU+overhead > link.MTU {
		verdict = "does not fit"
	}
	return fmt.Sprintf("%s (pods %d, %s %d, nodes %d)", verdict, e.Pod.MTU, layers, overhead, link.MTU)
}

// nodeLink returns the device with the node's address, or a zero Interface if it is unknown. The MTU in the report
// itself is not used, because it is that of the route to a pod, which may lead through a tunnel.
func (e Evidence) nodeLink() (link machine.Interface) {
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
