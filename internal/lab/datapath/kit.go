//go:build linux

package datapath

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// A title has the name of a datapath, and the products that use it.
type title struct{ name, users string }

func (t title) Name() string  { return t.name }
func (t title) About() string { return t.users }

// Kit has everything that labs are built from. A new datapath needs a line here.
var Kit = lab.Kit{
	Datapaths: []lab.Datapath{
		host{title{"host", "no pod network: the node-to-node reference"}},
		routed{title: title{"native", "Cilium native routing, Calico underlay (BGP), flannel host-gw"}},
		routed{title: title{"vxlan", "Cilium, Calico, flannel VXLAN"}, tunnels: []lab.Tunnel{vxlan{}}},
		ipip{routed{title: title{"ipip", "Calico IPIP"}, tunnels: []lab.Tunnel{ipipTunnel{}}}},
		routed{title: title{"bridge", "bridge CNI, flannel's pod side"}, bridge: true},
		direct{title: title{"macvlan", "Macvlan standalone"}, macvlan: true},
		direct{title: title{"host-device", "the nearest to SR-IOV without the hardware"}},
		routed{title: title{"native+wireguard", "Cilium, Calico WireGuard"}, tunnels: []lab.Tunnel{wireguardTunnel{}}},
		routed{title: title{"vxlan+wireguard", "Cilium VXLAN with WireGuard"},
			tunnels: []lab.Tunnel{wireguardTunnel{}, vxlan{}}},
		routed{title: title{"native+ipsec", "Cilium IPsec"}, tunnels: []lab.Tunnel{espTunnel{}}},
		routed{title: title{"vxlan+ipsec", "Cilium VXLAN with IPsec"},
			tunnels: []lab.Tunnel{espTransport{lab.VXLANPort}, vxlan{}}},
		meshed{routed{title: title{"native+hbone", "stand-in for Istio ambient and Cilium with ztunnel: not the product"}}},
		meshed{routed{title: title{"vxlan+hbone", "the same over VXLAN: a stand-in, not the product"},
			tunnels: []lab.Tunnel{vxlan{}}}},
	},
	Services: []lab.Services{{Name: "nftables", Extend: nft.Extend}, {Name: "ebpf", Extend: bpf.Extend}},
	Features: features,
}
