//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
		p.Add(lab.Node(n), newIPIPEnd(t, n))
	}
	p.Tunnel = ipipDevice
	layer := below
	layer.MTU -= ipipOverhead
	layer.Wire.Layers = slices.Concat(below.Wire.Layers, []string{"ipv4"})
	layer.Wire.Device, layer.Wire.Encapsulation = ipipDevice, "ipip"
	return layer, nil
}

// An ipipEnd is a node's end of the tunnels.
type ipipEnd struct {
	MTU    int // bytes
	Tunnel bpf.Tunnel
}

func newIPIPEnd(t lab.Topology, n int) ipipEnd {
	tunnel := bpf.Tunnel{Node: lab.NodeAddr(n).V4, Pods: lab.PodNet(n).V4, Shaped: t.Rate > 0}
	for k := range t.Others(n) {
		tunnel.Peers = append(tunnel.Peers, bpf.Peer{Node: lab.NodeAddr(k).V4, Pods: lab.PodNet(k).V4})
	}
	return ipipEnd{t.MTU - ipipOverhead, tunnel}
}

func (o ipipEnd) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ipip %s mtu %d local %s pods %s", ipipDevice, o.MTU, o.Tunnel.Node, o.Tunnel.Pods)
	for _, p := range o.Tunnel.Peers {
		fmt.Fprintf(&b, " peer %s pods %s", p.Node, p.Pods)
	}
	if o.Tunnel.Shaped {
		b.WriteString(" shaped")
	}
	return b.String()
}

// Apply makes the kernel's device, or attaches the programs to the uplink.
func (o ipipEnd) Apply(e *lab.Env) error {
	err := e.Netlink().AddIPIP(netns.Link{Name: ipipDevice, MTU: o.MTU}, o.Tunnel.Node)
	switch {
	case err == nil:
		e.Fact(result.Fact{Name: "ipip", Value: "kernel"})
		return o.route(e.Netlink())
	case errors.Is(err, result.ErrNotSupported):
		e.Fact(result.Fact{Name: "ipip", Value: "eBPF"})
		return o.attach(e)
	}
	return err
}

func (o ipipEnd) Feature() string { return "ipip" }

// Probe makes a device, or attaches the programs to the loopback device.
func (o ipipEnd) Probe(e *lab.Env) error {
	kernel := e.Netlink().AddIPIP(netns.Link{Name: ipipDevice}, o.Tunnel.Node)
	if kernel == nil || !errors.Is(kernel, result.ErrNotSupported) {
		return kernel
	}
	err := tryTunnel(e, o.Tunnel)
	if errors.Is(err, result.ErrNotSupported) {
		return result.NotSupported(fmt.Sprintf("%v; and in its place: %v", kernel, err))
	}
	return err
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

// route routes packets to other nodes' pods, and from the node's pods to other nodes, through the device.
func (o ipipEnd) route(c *netns.Conn) error {
	if err := c.Up(ipipDevice); err != nil {
		return err
	}
	for _, p := range o.Tunnel.Peers {
		for _, dst := range []netip.Prefix{p.Pods, netip.PrefixFrom(p.Node, 32)} {
			err := c.AddRoute(netns.Route{Dst: dst, Dev: ipipDevice, Via: p.Node, Src: o.Tunnel.Node, Table: ipipTable})
			if err != nil {
				return err
			}
		}
	}
	anywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if err := c.AddRule(anywhere, lab.PodsNet().V4, ipipTable); err != nil {
		return err
	}
	return c.AddRule(o.Tunnel.Pods, lab.NodeNet().V4, ipipTable)
}

func (o ipipEnd) attach(e *lab.Env) error {
	uplink, err := e.Netlink().Index(lab.Uplink)
	if err != nil {
		return err
	}
	a, err := bpf.AttachTunnel(o.Tunnel, uplink)
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
