package product

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	calicoMap  = "kube-system/calico-config"
	felixTitle = "FelixConfiguration of Calico"
)

// calicoGroups are the API groups of Calico's CRDs, and of its own API server or of CRDs where it needs none.
var calicoGroups = []string{"crd.projectcalico.org/v1", "projectcalico.org/v3"}

func calico() Product {
	return Product{
		Name: "calico", Images: []string{"calico/node", "calico-node", "hardened-calico"}, PartOf: []string{"canal"},
		ConfigMaps: []string{calicoMap},
		Resources: []CustomResource{{Groups: calicoGroups, Plural: "ippools"},
			{Groups: calicoGroups, Plural: "felixconfigurations", Name: "default"}}, // of the whole cluster
		Annotations: "projectcalico.org",
		Devices: []DeviceSign{{Prefix: "vxlan.calico", Encapsulation: "vxlan" + maybeCrossSubnet},
			{Prefix: "vxlan-v6.calico", Encapsulation: "vxlan" + maybeCrossSubnet},
			// Some kernels have an unused tunl0.
			{Prefix: "tunl0", Encapsulation: "ipip" + maybeCrossSubnet, NeedsAddress: true},
			{Prefix: "wireguard.cali", Encryption: "wireguard"}, {Prefix: "cali"}},
		Settings:      calicoSettings,
		Encapsulation: calicoEncapsulation,
		Encryption: func(e Evidence) []Property {
			felixes := felixes(e)
			if len(felixes) == 0 {
				return nil
			}
			switch spec := felixes[0].Spec; {
			case ptr.Deref(spec.WireGuard, false), ptr.Deref(spec.WireGuardV6, false):
				return one("wireguard", felixTitle)
			case spec.IPsecMode != "": // Calico Enterprise's
				return one("ipsec", felixTitle)
			}
			return one(result.None, felixTitle) // missing fields mean off
		},
		Services: func(e Evidence) []Property {
			for _, f := range felixes(e) {
				if ptr.Deref(f.Spec.BPF, false) {
					return one("eBPF", felixTitle)
				}
			}
			return nil
		},
	}
}

// A felix is a FelixConfiguration.
type felix struct {
	Spec struct {
		WireGuard   *bool  `json:"wireguardEnabled"`
		WireGuardV6 *bool  `json:"wireguardEnabledV6"`
		IPsecMode   string `json:"ipsecMode"`
		BPF         *bool  `json:"bpfEnabled"`
	} `json:"spec"`
}

func felixes(e Evidence) []felix { return custom[felix](e, "felixconfigurations") }

// An ipPool is a pool of addresses.
type ipPool struct {
	Spec struct {
		IPIPMode    string   `json:"ipipMode"`
		VXLANMode   string   `json:"vxlanMode"`
		NATOutgoing bool     `json:"natOutgoing"`
		Disabled    bool     `json:"disabled"`
		AllowedUses []string `json:"allowedUses"` // purposes of addresses; empty: all, including pods
	} `json:"spec"`
}

// ipPools returns the pools that are in use for pods.
func ipPools(e Evidence) []ipPool {
	return slices.DeleteFunc(custom[ipPool](e, "ippools"), func(p ipPool) bool {
		return p.Spec.Disabled || len(p.Spec.AllowedUses) > 0 && !slices.Contains(p.Spec.AllowedUses, "Workload")
	})
}

// poolMode returns when a pool uses a tunnel; the default is Never.
func poolMode(mode string) string {
	if slices.Contains([]string{"Always", "CrossSubnet"}, mode) {
		return mode
	}
	return "Never"
}

func calicoSettings(e Evidence) []string {
	list := plainSettings(e.Config[calicoMap], []string{"calico_backend", "typha_service_name", "veth_mtu"})
	for _, p := range ipPools(e) {
		list = append(list, fmt.Sprintf("pool(ipipMode=%s,vxlanMode=%s,natOutgoing=%v)", poolMode(p.Spec.IPIPMode),
			poolMode(p.Spec.VXLANMode), p.Spec.NATOutgoing))
	}
	return list
}

// calicoEncapsulation returns the tunnels of the pools, of annotations of the nodes, or of the config map. It ignores
// the pools if another plugin carries the packets, because a Calico that only enforces policies has pools too.
func calicoEncapsulation(e Evidence) []Property {
	if pools := ipPools(e); len(pools) > 0 && !e.anotherCarries() {
		return poolTunnels(pools, oneSubnet(e))
	}
	for _, n := range e.Nodes {
		switch {
		case n.Annotations["projectcalico.org/IPv4IPIPTunnelAddr"] != "":
			return []Property{{Value: "ipip" + maybeCrossSubnet, Source: onNodes, Strength: Annotated}}
		case n.Annotations["projectcalico.org/IPv4VXLANTunnelAddr"] != "":
			return []Property{{Value: "vxlan" + maybeCrossSubnet, Source: onNodes, Strength: Annotated}}
		}
	}
	if e.Config[calicoMap]["calico_backend"] == "vxlan" {
		return []Property{{Value: "vxlan" + maybeCrossSubnet, Source: inConfigMap(calicoMap), Strength: Annotated}}
	}
	return nil
}

// poolTunnels returns the tunnel of each pool. A tunnel between subnets is none if all nodes are in one.
func poolTunnels(pools []ipPool, oneSubnet bool) (list []Property) {
	source := "IPPools of Calico"
	for _, p := range pools {
		mode := result.None
		for name, when := range map[string]string{"ipip": p.Spec.IPIPMode, "vxlan": p.Spec.VXLANMode} {
			switch when = poolMode(when); {
			case when == "Always":
				mode = name
			case when == "CrossSubnet" && oneSubnet:
				source = "IPPools of Calico with tunnels between subnets; the nodes' annotations name one"
			case when == "CrossSubnet":
				mode = name + crossSubnet
			}
		}
		list = append(list, Property{Value: mode})
	}
	for i := range list {
		list[i].Source = source
	}
	return list
}

// oneSubnet reports whether the addresses with which Calico annotates the nodes are in one subnet per address family.
func oneSubnet(e Evidence) bool {
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
