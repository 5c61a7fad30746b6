//go:build linux

package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
)

const (
	wireguardDevice = "wg0"
	// sharedWireguard is the name under which the ops of a site share its devices and keys.
	sharedWireguard = "wireguard"
)

// A wireguardTunnel is a device in each node with all others as peers: the kernel's, or else wireguard-go's.
type wireguardTunnel struct{}

// wireguardAddr is the address of a node's device, for tunnels on top.
func wireguardAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 246, 0, byte(n)}) }

// Over adds the devices, and only when all of them can be reached, their addresses.
func (wireguardTunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	mtu := below.MTU - wireguard.Overhead
	for n := range t.EachNode() {
		p.Add(lab.Node(n), addWireguard{n, mtu})
	}
	for n := range t.EachNode() {
		p.Add(lab.Node(n), wireguardPeers(t, n, below))
	}
	for n := range t.EachNode() {
		prefix := netip.PrefixFrom(wireguardAddr(n), 24)
		p.Add(lab.Node(n), lab.Addr(wireguardDevice, prefix), lab.Up(wireguardDevice))
	}
	own := []string{"ipv4", fmt.Sprintf("udp:%d", lab.WireGuardPort), "wireguard"}
	return lab.Layer{
		Device: wireguardDevice, MTU: mtu, Via: func(int) lab.Dual { return lab.Dual{} }, Outer: wireguardAddr,
		Wire: lab.Wire{Layers: slices.Concat(below.Wire.Layers, own), Sealed: true, Device: wireguardDevice},
	}, nil
}

// An addWireguard makes a node's device, or starts the process that does.
type addWireguard struct{ node, mtu int }

func (o addWireguard) String() string {
	return fmt.Sprintf("link add %s mtu %d type wireguard", wireguardDevice, o.mtu)
}

// A wireguardSite has a site's devices, which its ops share.
type wireguardSite struct {
	keys    map[int]wireguard.Key // by node, made as they are asked for
	devices map[int]*wireguard.Device
}

func wireguardSiteOf(e *lab.Env) (*wireguardSite, error) {
	return lab.Shared(e, sharedWireguard, func() (*wireguardSite, error) {
		return &wireguardSite{map[int]wireguard.Key{}, map[int]*wireguard.Device{}}, nil
	})
}

func (s *wireguardSite) key(node int) (wireguard.Key, error) {
	if k, ok := s.keys[node]; ok {
		return k, nil
	}
	k, err := wireguard.NewKey()
	s.keys[node] = k
	return k, err
}

func (o addWireguard) Apply(e *lab.Env) error {
	s, err := wireguardSiteOf(e)
	if err != nil {
		return err
	}
	d, err := wireguard.Add(e.Netlink(), wireguardDevice, o.mtu)
	if err != nil {
		return err
	}
	s.devices[o.node] = d
	e.OnClose(d.Close)
	e.Fact("wireguard", d.Implementation())
	return nil
}

func (o addWireguard) Feature() string { return "wireguard" }

// Probe looks whether there is one of the two implementations.
func (o addWireguard) Probe(e *lab.Env) error { return wireguard.Probe(e.Netlink()) }

// A setWireguard gives a node's device its key and its peers.
type setWireguard struct {
	node  int
	peers []wireguardPeer
}

// A wireguardPeer is another node: where it is, and what is sent to it and taken from it.
type wireguardPeer struct {
	node     int
	endpoint netip.AddrPort
	allowed  []netip.Prefix
}

// wireguardPeers allows every other node's pods, its own addresses towards pods, and its device's, for tunnels on top.
func wireguardPeers(t lab.Topology, n int, below lab.Layer) setWireguard {
	s := setWireguard{node: n}
	for k := range t.Others(n) {
		allowed := lab.PodNet(k).All()
		allowed = append(allowed, lab.NodeAddr(k).Prefix(32, 128).All()...)
		allowed = append(allowed, netip.PrefixFrom(wireguardAddr(k), 32))
		s.peers = append(s.peers, wireguardPeer{k, netip.AddrPortFrom(below.Outer(k), lab.WireGuardPort), allowed})
	}
	return s
}

func (o setWireguard) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wireguard set %s listen-port %d", wireguardDevice, lab.WireGuardPort)
	for _, p := range o.peers {
		texts := make([]string, len(p.allowed))
		for i, a := range p.allowed {
			texts[i] = a.String()
		}
		fmt.Fprintf(&b, " peer %s endpoint %s allowed-ips %s", lab.Node(p.node), p.endpoint, strings.Join(texts, ","))
	}
	return b.String()
}

func (o setWireguard) Apply(e *lab.Env) error {
	s, err := wireguardSiteOf(e)
	if err != nil {
		return err
	}
	d, ok := s.devices[o.node]
	if !ok {
		return fmt.Errorf("there is no %s", wireguardDevice)
	}
	own, err := s.key(o.node)
	if err != nil {
		return err
	}
	c := wireguard.Config{Private: own, Port: lab.WireGuardPort}
	for _, p := range o.peers {
		k, err := s.key(p.node)
		if err != nil {
			return err
		}
		c.Peers = append(c.Peers, wireguard.Peer{Public: k.Public(), Endpoint: p.endpoint, Allowed: p.allowed})
	}
	return d.Configure(c)
}
