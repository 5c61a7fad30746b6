//go:build linux

package datapath

import (
	"fmt"
	"net/netip"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// table is the routing table for packets from pods to the addresses of other nodes, which a tunnel carries too: else
// pod-node/other would measure the underlay alone.
const table = 100

// minPodMTU is IPv6's least.
const minPodMTU = lab.MinPodMTU

// A routed is a datapath in which each node routes between its pods and the other nodes' pods.
type routed struct {
	title
	// bridge: pods are ports of a bridge in their node, else each has a veth of its own to route to.
	bridge bool
	// tunnels between the nodes, the lowest first; none is native routing.
	tunnels []lab.Tunnel
}

// Carries: a routed datapath carries every path.
func (d routed) Carries(lab.Topology, targets.Path) error { return nil }

// Wire is the tunnels' outer headers where a pod is one of the ends and the other end is on another node.
func (d routed) Wire(path targets.Path) lab.Wire {
	switch {
	case path == targets.NodeNode:
		return lab.Wire{}
	case !path.Other():
		return lab.Wire{Quiet: true}
	}
	t := lab.Default()
	p := underlay(t)
	layer, err := d.layers(&p, t)
	if err != nil {
		return lab.Wire{Layers: []string{"nothing, because " + err.Error()}}
	}
	return layer.Wire
}

// Plan builds the underlay, the tunnels, the pods, and the routes.
func (d routed) Plan(t lab.Topology) (lab.Plan, error) {
	p := underlay(t)
	layer, err := d.layers(&p, t)
	if err != nil {
		return lab.Plan{}, err
	}
	if layer.MTU < minPodMTU {
		return lab.Plan{}, fmt.Errorf("mtu=%d leaves pods %d bytes; IPv6 needs %d", t.MTU, layer.MTU, minPodMTU)
	}
	p.PodMTU = layer.MTU
	if layer.Device != lab.Uplink {
		p.Tunnel = layer.Device
	}
	for n := range t.EachNode() {
		d.pods(&p, t, n)
		join(&p, t, n, layer)
	}
	return p, nil
}

// layers stacks the tunnels on the underlay.
func (d routed) layers(p *lab.Plan, t lab.Topology) (lab.Layer, error) {
	layer := lab.Layer{
		Device: lab.Uplink, MTU: t.MTU, Via: lab.NodeAddr,
		Outer: func(n int) netip.Addr { return lab.NodeAddr(n).V4 },
	}
	for _, tunnel := range d.tunnels {
		var err error
		if layer, err = tunnel.Over(p, t, layer); err != nil {
			return lab.Layer{}, err
		}
	}
	return layer, nil
}

func (d routed) pods(p *lab.Plan, t lab.Topology, n int) {
	if d.bridge {
		podBridge(p, t, n)
	}
	for m := 1; m <= lab.PodsPerNode; m++ {
		pod, port := lab.Pod(n, m), fmt.Sprintf("pod%d", m)
		p.Namespace(pod)
		quiet(p, pod)
		p.Add(pod, lab.Veth{Name: lab.Uplink, MTU: p.PodMTU, MAC: lab.PodMAC(n, m), Peer: port, PeerNS: lab.Node(n)},
			lab.Up("lo", lab.Uplink))
		if d.bridge {
			p.Add(lab.Node(n), lab.Port(port, podsBridge))
			addresses(p, pod, lab.Uplink, 10+m, lab.PodAddr(n, m).Prefix(24, 64))
		} else {
			nodeSide(p, n, m, port)
			addresses(p, pod, lab.Uplink, 10+m, hostRoutes(lab.PodAddr(n, m)))
		}
		for i, gateway := range lab.Gateway(n).All() {
			p.Add(pod, lab.Route{Dst: everything()[i], Dev: lab.Uplink, Via: gateway})
		}
	}
}

// nodeSide is the node's end of a pod's veth: the gateway's address, the same on every veth, and the route to the pod.
// A node speaks to its pods with its own address, as to all pods.
func nodeSide(p *lab.Plan, n, m int, port string) {
	node := lab.Node(n)
	p.Add(node, lab.Up(port))
	addresses(p, node, port, 1, hostRoutes(lab.Gateway(n)))
	for i, dst := range hostRoutes(lab.PodAddr(n, m)).All() {
		p.Add(node, lab.Route{Dst: dst, Dev: port, Src: lab.NodeAddr(n).All()[i]})
	}
}

// join routes to the pods of the other nodes through a layer, and, if that is a tunnel, from pods to the other nodes.
func join(p *lab.Plan, t lab.Topology, n int, layer lab.Layer) {
	node := lab.Node(n)
	for k := range t.Others(n) {
		via := layer.Via(k)
		for i, dst := range lab.PodNet(k).All() {
			p.Add(node, lab.Route{Dst: dst, Dev: layer.Device, Via: via.Of(i == 1), Src: lab.NodeAddr(n).Of(i == 1)})
		}
		if layer.Device == lab.Uplink {
			continue
		}
		for i, dst := range hostRoutes(lab.NodeAddr(k)).All() {
			p.Add(node, lab.Route{Dst: dst, Dev: layer.Device, Via: via.Of(i == 1), Table: table})
		}
	}
	if layer.Device == lab.Uplink {
		return
	}
	for i, from := range lab.PodNet(n).All() {
		p.Add(node, lab.Rule(from, lab.NodeNet().All()[i], table))
	}
}

func everything() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}
