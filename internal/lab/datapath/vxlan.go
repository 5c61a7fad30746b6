//go:build linux

package datapath

import (
	"fmt"
	"net"
	"slices"

	"github.com/knotmeter/knotmeter/internal/lab"
)

const (
	vxlanDevice = "vxlan0"
	vxlanID     = 1
	// vxlanOverhead is the sum of outer IPv4 20, UDP 8, VXLAN 8 and inner Ethernet 14 bytes.
	vxlanOverhead = 50
)

// A vxlan connects all nodes, with static forwarding entries, as in overlays with a control plane.
type vxlan struct{}

// Over adds every node's device and its entries for the other nodes.
func (vxlan) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	mtu := below.MTU - vxlanOverhead
	for n := range t.EachNode() {
		node := lab.Node(n)
		p.Add(node, lab.Vxlan{Name: vxlanDevice, ID: vxlanID, Local: below.Outer(n), Port: lab.VXLANPort, MTU: mtu,
			MAC: tunnelMAC(n)})
		p.Add(node, lab.Up(vxlanDevice))
		for k := range t.Others(n) {
			addVxlanPeer(p, node, k, below)
		}
	}
	wire := vxlanWire(below.Wire)
	return lab.Layer{Device: vxlanDevice, MTU: mtu, Via: lab.TunnelAddr, Outer: below.Outer, Wire: wire}, nil
}

func addVxlanPeer(p *lab.Plan, node string, k int, below lab.Layer) {
	for _, ip := range lab.TunnelAddr(k).All() {
		p.Add(node, lab.Neighbour(vxlanDevice, ip, tunnelMAC(k)))
	}
	p.Add(node, lab.FDB(vxlanDevice, tunnelMAC(k), below.Outer(k)))
}

// vxlanWire returns VXLAN within the wire below. Within a sealed layer it is not visible.
func vxlanWire(below lab.Wire) lab.Wire {
	w := below
	w.Device, w.Encapsulation = vxlanDevice, "vxlan"
	if !w.Sealed {
		own := []string{"ipv4", fmt.Sprintf("udp:%d", lab.VXLANPort), fmt.Sprintf("vxlan:%d", vxlanID), "ethernet"}
		w.Layers = slices.Concat(below.Layers, own)
	}
	return w
}

func tunnelMAC(n int) net.HardwareAddr { return net.HardwareAddr{2, 0, 10, 245, 0, byte(n)} }
