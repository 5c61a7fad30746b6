package product

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/result"
)

// The config map of Cilium, which some installations have in the namespace cilium, and its API.
const (
	ciliumMap      = "kube-system/cilium-config"
	ciliumOtherMap = "cilium/cilium-config"
	ciliumVersion  = "cilium.io/v2"
)

// ciliumSettings are the settings of Cilium that change measurements.
var ciliumSettings = []string{
	"auto-direct-node-routes", "bpf-lb-acceleration", "bpf-lb-mode", "bpf-lb-sock", "datapath-mode",
	"enable-bandwidth-manager", "enable-bbr", "enable-bpf-masquerade", "enable-encryption-strict-mode",
	"enable-endpoint-routes", "enable-host-firewall", "enable-host-legacy-routing", "enable-hubble",
	"enable-ipv4-big-tcp", "enable-ipv4-masquerade", "enable-ipv6-big-tcp", "enable-l7-proxy", "enable-policy",
	"enable-xdp-prefilter", "encrypt-node", "install-no-conntrack-iptables-rules", "ipam", "kube-proxy-replacement",
	"mtu", "node-encryption-opt-out-labels",
}

// cilium is the CNI plugin with its mesh, whose ztunnels add nothing to pods.
func cilium() Product {
	return Product{
		Name: "cilium", Images: []string{"cilium/cilium"}, PartOf: []string{"gke-dataplane-v2"},
		ConfigMaps: []string{ciliumMap, ciliumOtherMap},
		Resources:  []CustomResource{{Groups: []string{ciliumVersion, "cilium.io/v2alpha1"}, Plural: "ciliumnodeconfigs"}},
		Policies: []CustomResource{{Groups: []string{ciliumVersion}, Plural: "ciliumnetworkpolicies", Namespaced: true},
			{Groups: []string{ciliumVersion}, Plural: "ciliumclusterwidenetworkpolicies"}},
		Annotations: "network.cilium.io",
		Devices: []DeviceSign{{Prefix: "cilium_vxlan", Encapsulation: "vxlan"},
			{Prefix: "cilium_geneve", Encapsulation: "geneve"}, {Prefix: "cilium_wg", Encryption: "wireguard"},
			{Prefix: "cilium"}, {Prefix: "lxc"}},
		Settings: func(e Evidence) (list []string) {
			for _, c := range ciliumVariants(e) {
				list = append(list, plainSettings(c, ciliumSettings)...)
			}
			return list
		},
		Encapsulation: func(e Evidence) []Property { return ciliumProperties(e, ciliumEncapsulation) },
		Encryption:    func(e Evidence) []Property { return ciliumProperties(e, ciliumEncryption) },
		Services: func(e Evidence) []Property {
			return ciliumProperties(e, func(c map[string]string) (f Property) {
				if r := c["kube-proxy-replacement"]; r == "true" || r == "strict" {
					f.Value = Replaces
				}
				return f
			})
		},
		BalancesPods: func(e Evidence) bool { return ciliumConfig(e) != nil },
		// docs.cilium.io, security/network/encryption-ztunnel
		Enrolments:  []Enrolment{{Key: "io.cilium/mtls-enabled", Values: []string{"true"}, Mode: Ztunnel, OnNamespace: true}},
		ZtunnelMode: Ztunnel,
		ZtunnelOn: func(e Evidence) bool {
			return slices.ContainsFunc(ciliumVariants(e),
				func(c map[string]string) bool { return c["enable-ztunnel"] == "true" })
		},
	}
}

// ciliumConfig returns Cilium's config map; nil if there is none.
func ciliumConfig(e Evidence) map[string]string {
	if c := e.Config[ciliumMap]; c != nil {
		return c
	}
	return e.Config[ciliumOtherMap]
}

// ciliumVariants returns the distinct settings of the nodes of the experiment: CiliumNodeConfigs change those of the
// config map for some nodes.
func ciliumVariants(e Evidence) []map[string]string {
	type nodeConfig struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"nodeSelector"`
			Defaults map[string]string     `json:"defaults"`
		} `json:"spec"`
	}
	base, changes := ciliumConfig(e), custom[nodeConfig](e, "ciliumnodeconfigs")
	if base == nil || len(changes) == 0 || len(e.Nodes) == 0 {
		return slices.DeleteFunc([]map[string]string{base}, func(m map[string]string) bool { return m == nil })
	}
	var list []map[string]string
	for _, n := range e.Nodes {
		variant := maps.Clone(base)
		for _, c := range changes {
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

// ciliumProperties returns what settings mean on the nodes; a variant without a meaning is unknown next to others. The
// source is the config map where meaning gives none.
func ciliumProperties(e Evidence, meaning func(map[string]string) Property) []Property {
	var list []Property
	found := false
	for _, c := range ciliumVariants(e) {
		f := meaning(c)
		switch {
		case f.Value == "":
			f.Value = result.Unknown
		case f.Source == "":
			f.Source = inConfigMap(ciliumMap)
			fallthrough
		default:
			found = true
		}
		list = append(list, f)
	}
	if !found {
		return nil
	}
	return list
}

// ciliumChained reports whether Cilium only adds features to another plugin that carries the packets.
func ciliumChained(c map[string]string) bool {
	return !slices.Contains([]string{"", "none", "portmap"}, c["cni-chaining-mode"])
}

func ciliumEncapsulation(c map[string]string) Property {
	mode, protocol := c["routing-mode"], c["tunnel-protocol"]
	tunnels := []string{"vxlan", "geneve"}
	switch {
	case ciliumChained(c):
		return Property{}
	case mode == "native" || c["tunnel"] == "disabled":
		return Property{Value: result.None}
	case slices.Contains(tunnels, protocol):
		return Property{Value: protocol}
	case slices.Contains(tunnels, c["tunnel"]): // of old versions
		return Property{Value: c["tunnel"]}
	case mode == "tunnel" && protocol == "":
		return Property{Value: "vxlan", Source: byDefault("Cilium", ciliumMap)}
	}
	return Property{}
}

func ciliumEncryption(c map[string]string) Property {
	switch {
	case c["enable-wireguard"] == "true":
		return Property{Value: "wireguard", Nodes: c["encrypt-node"] == "true"}
	case c["enable-ipsec"] == "true":
		return Property{Value: "ipsec"}
	case c["enable-ztunnel"] == "true": // encrypts enrolled namespaces only, which the config map does not name
		return Property{}
	case ciliumChained(c):
		return Property{}
	}
	return Property{Value: result.None}
}
