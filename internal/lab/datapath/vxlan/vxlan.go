//go:build linux

// Package vxlan is native routing over a VXLAN between the nodes, with all ways known beforehand, as overlays with a
// control plane have them.
package vxlan

import (
	"fmt"
	"net"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// Port is Linux's own, which flannel and Cilium keep; the port of RFC 7348 is 4789.
const Port = 8472

const (
	device = "vxlan0"
	id     = 1
	// overhead is outer IPv4 20, UDP 8, VXLAN 8 and inner Ethernet 14 bytes.
	overhead = 50
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Routed{Label: "vxlan", Users: "Cilium, Calico, flannel VXLAN", Tunnels: []lab.Tunnel{Tunnel{}}}
}

// A Tunnel is one VXLAN that joins all nodes.
type Tunnel struct{}

// Over adds every node's device and what it must know of the others.
func (Tunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	mtu := below.MTU - overhead
	for n := 1; n <= t.Nodes; n++ {
		node := lab.Node(n)
		p.Add(node, lab.Vxlan{Name: device, ID: id, Local: below.Outer(n), Port: Port, MTU: mtu, MAC: mac(n)})
		for _, prefix := range lab.TunnelAddr(n).Prefix(32, 128).All() {
			p.Add(node, lab.Addr{Dev: device, Prefix: prefix})
		}
		p.Add(node, lab.Up{device})
		for k := 1; k <= t.Nodes; k++ {
			if k != n {
				peer(p, node, k, below)
			}
		}
	}
	return lab.Layer{Device: device, MTU: mtu, Via: lab.TunnelAddr, Outer: below.Outer, Wire: outer(below.Wire)}, nil
}

func peer(p *lab.Plan, node string, k int, below lab.Layer) {
	for _, ip := range lab.TunnelAddr(k).All() {
		p.Add(node, lab.Neighbour{Dev: device, IP: ip, MAC: mac(k)})
	}
	p.Add(node, lab.FDB{Dev: device, MAC: mac(k), Outer: below.Outer(k)})
}

// outer is VXLAN within what is below; within a sealed layer it cannot be seen.
func outer(below lab.Wire) lab.Wire {
	w := below
	w.Device = device
	if !w.Sealed {
		w.Layers = append(append([]string{}, below.Layers...), "ipv4", fmt.Sprintf("udp:%d", Port), fmt.Sprintf("vxlan:%d", id), "ethernet")
	}
	return w
}

func mac(n int) net.HardwareAddr { return net.HardwareAddr{2, 0, 10, 245, 0, byte(n)} }
