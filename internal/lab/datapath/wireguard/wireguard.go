//go:build linux

// Package wireguard is WireGuard between the nodes: on native routing, for the packets of pods, or on VXLAN, whose outer
// packets it carries. It is the kernel's, or wireguard-go where the kernel has none.
package wireguard

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/vxlan"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
)

const (
	device = "wg0"
	// shared is the name under which the ops of a site share its devices and keys.
	shared = "wireguard"
)

// Native returns the datapath native+wireguard.
func Native() lab.Datapath {
	return datapath.Routed{Label: "native+wireguard", Users: "Cilium, Calico WireGuard", Tunnels: []lab.Tunnel{Tunnel{}}}
}

// VXLAN returns the datapath vxlan+wireguard.
func VXLAN() lab.Datapath {
	return datapath.Routed{Label: "vxlan+wireguard", Users: "Cilium VXLAN with WireGuard", Tunnels: []lab.Tunnel{Tunnel{}, vxlan.Tunnel{}}}
}

// A Tunnel is a WireGuard device in each node with all others as peers.
type Tunnel struct{}

// addr is the address of a node's device, for tunnels on top.
func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 246, 0, byte(n)}) }

// Over adds the devices, and only when all of them can be reached, their addresses.
func (Tunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	mtu := below.MTU - wireguard.Overhead
	for n := 1; n <= t.Nodes; n++ {
		p.Add(lab.Node(n), Add{Node: n, MTU: mtu})
	}
	for n := 1; n <= t.Nodes; n++ {
		p.Add(lab.Node(n), peers(t, n, below))
	}
	for n := 1; n <= t.Nodes; n++ {
		p.Add(lab.Node(n), lab.Addr{Dev: device, Prefix: netip.PrefixFrom(addr(n), 24)}, lab.Up{device})
	}
	return lab.Layer{
		Device: device, MTU: mtu, Via: func(int) lab.Dual { return lab.Dual{} }, Outer: addr,
		Wire: lab.Wire{
			Layers: append(append([]string{}, below.Wire.Layers...), "ipv4", fmt.Sprintf("udp:%d", wireguard.Port), "wireguard"),
			Sealed: true, Device: device,
		},
	}, nil
}

// An Add makes a node's device, or starts the process that does.
type Add struct{ Node, MTU int }

func (o Add) String() string {
	return fmt.Sprintf("link add %s mtu %d type wireguard", device, o.MTU)
}

// A site's devices, which its ops share.
type site struct {
	keys    map[int]wireguard.Key // by node, made as they are asked for
	devices map[int]*wireguard.Device
}

func siteOf(e *lab.Env) (*site, error) {
	v, err := e.Share(shared, func() (any, error) {
		return &site{map[int]wireguard.Key{}, map[int]*wireguard.Device{}}, nil
	})
	if err != nil {
		return nil, err
	}
	s, ok := v.(*site)
	if !ok {
		return nil, fmt.Errorf("%s is shared by something else", shared)
	}
	return s, nil
}

func (s *site) key(node int) (wireguard.Key, error) {
	if k, ok := s.keys[node]; ok {
		return k, nil
	}
	k, err := wireguard.NewKey()
	s.keys[node] = k
	return k, err
}

// Apply makes the device.
func (o Add) Apply(e *lab.Env) error {
	s, err := siteOf(e)
	if err != nil {
		return err
	}
	d, err := wireguard.Add(e.Netlink(), device, o.MTU)
	if err != nil {
		return err
	}
	s.devices[o.Node] = d
	e.OnClose(d.Close)
	e.Fact("wireguard", d.Implementation())
	return nil
}

// Feature is wireguard.
func (o Add) Feature() string { return "wireguard" }

// Probe looks whether there is one of the two implementations.
func (o Add) Probe(e *lab.Env) error { return wireguard.Probe(e.Netlink()) }

// A Set gives a node's device its key and its peers.
type Set struct {
	Node  int
	Peers []Peer
}

// A Peer is another node: where it is, and what is sent to it and taken from it.
type Peer struct {
	Node     int
	Endpoint netip.AddrPort
	Allowed  []netip.Prefix
}

// peers allows every other node's pods, its own addresses towards pods, and its device's, which tunnels on top use.
func peers(t lab.Topology, n int, below lab.Layer) Set {
	s := Set{Node: n}
	for k := 1; k <= t.Nodes; k++ {
		if k == n {
			continue
		}
		allowed := lab.PodNet(k).All()
		allowed = append(allowed, lab.NodeAddr(k).Prefix(32, 128).All()...)
		allowed = append(allowed, netip.PrefixFrom(addr(k), 32))
		s.Peers = append(s.Peers, Peer{k, netip.AddrPortFrom(below.Outer(k), wireguard.Port), allowed})
	}
	return s
}

func (o Set) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wireguard set %s listen-port %d", device, wireguard.Port)
	for _, p := range o.Peers {
		texts := make([]string, len(p.Allowed))
		for i, a := range p.Allowed {
			texts[i] = a.String()
		}
		fmt.Fprintf(&b, " peer %s endpoint %s allowed-ips %s", lab.Node(p.Node), p.Endpoint, strings.Join(texts, ","))
	}
	return b.String()
}

// Apply configures the device with the site's keys.
func (o Set) Apply(e *lab.Env) error {
	s, err := siteOf(e)
	if err != nil {
		return err
	}
	d, ok := s.devices[o.Node]
	if !ok {
		return fmt.Errorf("there is no %s", device)
	}
	own, err := s.key(o.Node)
	if err != nil {
		return err
	}
	c := wireguard.Config{Private: own, Port: wireguard.Port}
	for _, p := range o.Peers {
		k, err := s.key(p.Node)
		if err != nil {
			return err
		}
		c.Peers = append(c.Peers, wireguard.Peer{Public: k.Public(), Endpoint: p.Endpoint, Allowed: p.Allowed})
	}
	return d.Configure(c)
}
