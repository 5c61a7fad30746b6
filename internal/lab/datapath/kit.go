//go:build linux

package datapath

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// Kit is what labs are built from: to add a datapath is to write it, and to add a line here.
var Kit = lab.Kit{
	Datapaths: []lab.Datapath{
		host{},
		routed{label: "native", users: "Cilium native routing, Calico underlay (BGP), flannel host-gw"},
		routed{label: "vxlan", users: "Cilium, Calico, flannel VXLAN", tunnels: []lab.Tunnel{vxlan{}}},
		ipip{routed{label: "ipip", users: "Calico IPIP", tunnels: []lab.Tunnel{ipipTunnel{}}}},
		routed{label: "bridge", users: "bridge CNI, flannel's pod side", bridge: true},
		direct{label: "macvlan", users: "Macvlan standalone", kind: "macvlan"},
		direct{label: "ipvlan", users: "ipvlan, Cilium's former mode", kind: "ipvlan"},
		direct{label: "host-device", users: "the nearest to SR-IOV without the hardware"},
		routed{label: "native+wireguard", users: "Cilium, Calico WireGuard", tunnels: []lab.Tunnel{wireguardTunnel{}}},
		routed{label: "vxlan+wireguard", users: "Cilium VXLAN with WireGuard",
			tunnels: []lab.Tunnel{wireguardTunnel{}, vxlan{}}},
		routed{label: "native+ipsec", users: "Cilium IPsec", tunnels: []lab.Tunnel{espTunnel{}}},
		routed{label: "vxlan+ipsec", users: "Cilium VXLAN with IPsec",
			tunnels: []lab.Tunnel{espTransport{lab.VXLANPort}, vxlan{}}},
	},
	Services: []lab.Services{nft.Services{}, bpf.Connect{}},
	Features: features,
}
