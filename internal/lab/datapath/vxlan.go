//go:build linux

package datapath

import (
	"fmt"
	"net"
	"slices"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
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
		link := netns.Link{Name: vxlanDevice, MTU: mtu, MAC: tunnelMAC(n)}
		p.Add(node, lab.Vxlan(link, vxlanID, lab.VXLANPort, below.Outer(n)), lab.Up(vxlanDevice))
		for k := range t.Others(n) {
			for _, ip := range lab.TunnelAddr(k).All() {
				p.Add(node, lab.Neighbour(vxlanDevice, ip, tunnelMAC(k)))
			}
			p.Add(node, lab.FDB(vxlanDevice, tunnelMAC(k), below.Outer(k)))
		}
	}
	w := below.Wire
	w.Device, w.Encapsulation = vxlanDevice, "vxlan"
	if !w.Sealed { // within a sealed layer it is not visible
		own := []string{"ipv4", fmt.Sprintf("udp:%d", lab.VXLANPort), fmt.Sprintf("vxlan:%d", vxlanID), "ethernet"}
		w.Layers = slices.Concat(w.Layers, own)
	}
	return lab.Layer{Device: vxlanDevice, MTU: mtu, Via: lab.TunnelAddr, Outer: below.Outer, Wire: w}, nil
}

func tunnelMAC(n int) net.HardwareAddr { return net.HardwareAddr{2, 0, 10, 245, 0, byte(n)} }
