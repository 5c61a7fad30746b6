//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	// ipipDevice is the kernel's device, or the name for the counters of the programs that replace it.
	ipipDevice   = "ipip0"
	ipipOverhead = 20 // an outer IPv4 header, bytes
	// ipipTable is the routing table for the kernel's device. It comes before the main table, whose routes to other
	// nodes' pods go through the underlay, as the programs need.
	ipipTable = 101
)

// An ipip is native routing over IP-in-IP between the nodes: with the kernel's tunnel devices if it has them, else with
// eBPF programs at the uplinks, which add the same outer header to the same packets.
type ipip struct{ routed }

// Carries returns an error for IPv6 between nodes, which IP-in-IP does not carry.
func (d ipip) Carries(t lab.Topology, path result.Path) error {
	if t.IPv6 && path.Other() && path != result.NodeNode {
		return result.NotSupported("IP-in-IP carries IPv4 only, so pods have no IPv6 between nodes")
	}
	return d.routed.Carries(t, path)
}

// An ipipTunnel connects each node with all others. Routes to other nodes' pods remain those of the layer below.
type ipipTunnel struct{}

func (ipipTunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	if below.Device != lab.Uplink {
		return lab.Layer{}, errors.New("ipip goes over the underlay, not over another tunnel")
	}
	for n := range t.EachNode() {
		tunnel := bpf.Tunnel{Node: lab.NodeAddr(n).V4, Pods: lab.PodNet(n).V4, Shaped: t.Rate > 0}
		for k := range t.Others(n) {
			tunnel.Peers = append(tunnel.Peers, bpf.Peer{Node: lab.NodeAddr(k).V4, Pods: lab.PodNet(k).V4})
		}
		p.Add(lab.Node(n), ipipEnd(tunnel, t.MTU-ipipOverhead))
	}
	p.Tunnel = ipipDevice
	layer := below
	layer.MTU -= ipipOverhead
	layer.Wire.Layers = slices.Concat(below.Wire.Layers, []string{"ipv4"})
	layer.Wire.Device, layer.Wire.Encapsulation = ipipDevice, "ipip"
	return layer, nil
}

// ipipEnd returns an op that makes a node's end of the tunnels: the kernel's device, or the programs at the uplink.
func ipipEnd(tunnel bpf.Tunnel, mtu int) lab.Op {
	text := fmt.Sprintf("ipip %s mtu %d local %s pods %s", ipipDevice, mtu, tunnel.Node, tunnel.Pods)
	for _, p := range tunnel.Peers {
		text += fmt.Sprintf(" peer %s pods %s", p.Node, p.Pods)
	}
	if tunnel.Shaped {
		text += " shaped"
	}
	return lab.Op{
		Text: text,
		Apply: func(e *lab.Env) error {
			err := e.Netlink().AddIPIP(netns.Link{Name: ipipDevice, MTU: mtu}, tunnel.Node)
			switch {
			case err == nil:
				e.Fact(result.Fact{Name: "ipip", Value: "kernel"})
				return routeIPIP(e.Netlink(), tunnel)
			case errors.Is(err, result.ErrNotSupported):
				e.Fact(result.Fact{Name: "ipip", Value: "eBPF"})
				return attachIPIP(e, tunnel)
			}
			return err
		},
		Feature: "ipip",
		Probe: func(e *lab.Env) error {
			kernel := e.Netlink().AddIPIP(netns.Link{Name: ipipDevice}, tunnel.Node)
			if kernel == nil || !errors.Is(kernel, result.ErrNotSupported) {
				return kernel
			}
			err := tryTunnel(e, tunnel)
			if errors.Is(err, result.ErrNotSupported) {
				return result.NotSupported(fmt.Sprintf("%v; and in its place: %v", kernel, err))
			}
			return err
		},
	}
}

// tryTunnel attaches the programs to the loopback device, and detaches them.
func tryTunnel(e *lab.Env, t bpf.Tunnel) error {
	lo, err := e.Netlink().Index("lo")
	if err != nil {
		return err
	}
	a, err := bpf.AttachTunnel(t, lo)
	if err != nil {
		return err
	}
	return a.Close()
}

// routeIPIP routes packets to other nodes' pods, and from the node's pods to other nodes, through the device.
func routeIPIP(c *netns.Conn, tunnel bpf.Tunnel) error {
	if err := c.Up(ipipDevice); err != nil {
		return err
	}
	for _, p := range tunnel.Peers {
		for _, dst := range []netip.Prefix{p.Pods, netip.PrefixFrom(p.Node, 32)} {
			err := c.AddRoute(netns.Route{Dst: dst, Dev: ipipDevice, Via: p.Node, Src: tunnel.Node, Table: ipipTable})
			if err != nil {
				return err
			}
		}
	}
	anywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if err := c.AddRule(anywhere, lab.PodsNet().V4, ipipTable); err != nil {
		return err
	}
	return c.AddRule(tunnel.Pods, lab.NodeNet().V4, ipipTable)
}

func attachIPIP(e *lab.Env, tunnel bpf.Tunnel) error {
	uplink, err := e.Netlink().Index(lab.Uplink)
	if err != nil {
		return err
	}
	a, err := bpf.AttachTunnel(tunnel, uplink)
	if err != nil {
		return err
	}
	e.OnClose(a.Close)
	e.RegisterCounter(func() (rx, tx uint64, err error) {
		c, err := a.Counters()
		return c.DecapPackets, c.EncapPackets, err
	})
	return nil
}
