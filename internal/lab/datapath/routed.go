//go:build linux

package datapath

import (
	"fmt"
	"net/netip"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A routed is a datapath in which each node routes between its pods and the other nodes' pods.
type routed struct {
	title
	// bridge: pods are ports of a bridge in their node; false: the node routes to a veth of each pod.
	bridge bool
	// tunnels between the nodes, the lowest first; none: native routing.
	tunnels []lab.Tunnel
}

// Carries returns nil: a routed datapath carries every path.
func (d routed) Carries(lab.Topology, result.Path) error { return nil }

// Wire returns the tunnels' outer headers for paths between nodes with a pod at one end.
func (d routed) Wire(path result.Path) lab.Wire {
	switch {
	case path == result.NodeNode:
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

// Plan plans the underlay, the tunnels, the pods and the routes.
func (d routed) Plan(t lab.Topology) (lab.Plan, error) {
	p := underlay(t)
	layer, err := d.layers(&p, t)
	if err != nil {
		return lab.Plan{}, err
	}
	if layer.MTU < lab.MinPodMTU {
		return lab.Plan{}, fmt.Errorf("mtu=%d leaves pods %d bytes; IPv6 needs %d", t.MTU, layer.MTU, lab.MinPodMTU)
	}
	p.PodMTU = layer.MTU
	if layer.Device != lab.Uplink {
		p.Tunnel, p.HasTunnelAddrs = layer.Device, true
	}
	for n := range t.EachNode() {
		if p.HasTunnelAddrs {
			for _, prefix := range hostRoutes(p.NodeAddr(n)).All() {
				p.Add(lab.Node(n), lab.Addr(layer.Device, prefix))
			}
		}
		d.addPods(&p, t, n)
		addRoutes(&p, t, n, layer)
	}
	return p, nil
}

// layers adds the tunnels on top of the underlay and returns the topmost layer.
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

func (d routed) addPods(p *lab.Plan, t lab.Topology, n int) {
	if d.bridge {
		addPodBridge(p, t, n)
	}
	for m := 1; m <= lab.PodsPerNode; m++ {
		pod, port := lab.Pod(n, m), fmt.Sprintf("pod%d", m)
		p.Namespace(pod)
		quietNamespace(p, pod)
		p.Add(pod, lab.Veth(netns.Link{Name: lab.Uplink, MTU: p.PodMTU, MAC: lab.PodMAC(n, m)}, port, lab.Node(n)),
			lab.Up("lo", lab.Uplink))
		if d.bridge {
			p.Add(lab.Node(n), lab.Port(port, podsBridge))
			addAddresses(p, pod, lab.Uplink, 10+m, lab.PodAddr(n, m).Prefix(24, 64))
		} else {
			addNodeEnd(p, n, m, port)
			addAddresses(p, pod, lab.Uplink, 10+m, hostRoutes(lab.PodAddr(n, m)))
		}
		for i, gateway := range lab.Gateway(n).All() {
			p.Add(pod, lab.Route(netns.Route{Dst: defaultPrefixes()[i], Dev: lab.Uplink, Via: gateway}))
		}
	}
}

// addNodeEnd configures the node's end of a pod's veth: the gateway's address, which is the same on every veth, and the
// route to the pod. What the node itself sends to the pod has the node's address for pods as its source.
func addNodeEnd(p *lab.Plan, n, m int, port string) {
	node := lab.Node(n)
	p.Add(node, lab.Up(port))
	addAddresses(p, node, port, 1, hostRoutes(lab.Gateway(n)))
	for i, dst := range hostRoutes(lab.PodAddr(n, m)).All() {
		p.Add(node, lab.Route(netns.Route{Dst: dst, Dev: port, Src: p.NodeAddr(n).All()[i]}))
	}
}

// addRoutes adds node n's routes through a layer to the pods of other nodes, and if the layer is a tunnel, to the other
// nodes' addresses in it.
func addRoutes(p *lab.Plan, t lab.Topology, n int, layer lab.Layer) {
	node, own := lab.Node(n), p.NodeAddr(n)
	for k := range t.Others(n) {
		via := layer.Via(k)
		for i, dst := range lab.PodNet(k).All() {
			p.Add(node, lab.Route(netns.Route{Dst: dst, Dev: layer.Device, Via: via.Of(i == 1), Src: own.Of(i == 1)}))
		}
		if p.HasTunnelAddrs {
			for i, dst := range hostRoutes(p.NodeAddr(k)).All() {
				p.Add(node, lab.Route(netns.Route{Dst: dst, Dev: layer.Device, Src: own.Of(i == 1)}))
			}
		}
	}
}

func defaultPrefixes() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}
