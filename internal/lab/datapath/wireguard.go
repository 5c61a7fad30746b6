//go:build linux

package datapath

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	wireguardDevice = "wg0"
	// sharedWireguard is the name under which the ops of a site share its devices and keys.
	sharedWireguard = "wireguard"
)

// A wireguardTunnel is a device in each node with all others as peers: the kernel's device, or else wireguard-go's.
type wireguardTunnel struct{}

// wireguardAddr returns the address of a node's device, for tunnels on top of it.
func wireguardAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 246, 0, byte(n)}) }

// Over adds the devices of all nodes, then configures them. It adds addresses last, when all devices are reachable.
func (wireguardTunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	mtu := below.MTU - wireguard.Overhead
	for n := range t.EachNode() {
		p.Add(lab.Node(n), addWireguard(n, mtu))
	}
	for n := range t.EachNode() {
		p.Add(lab.Node(n), setWireguard(t, n, below))
	}
	for n := range t.EachNode() {
		prefix := netip.PrefixFrom(wireguardAddr(n), 24)
		p.Add(lab.Node(n), lab.Addr(wireguardDevice, prefix), lab.Up(wireguardDevice))
	}
	own := []string{"ipv4", fmt.Sprintf("udp:%d", lab.WireGuardPort), "wireguard"}
	return lab.Layer{
		Device: wireguardDevice, MTU: mtu, Via: func(int) lab.Dual { return lab.Dual{} }, Outer: wireguardAddr,
		Wire: lab.Wire{Layers: slices.Concat(below.Wire.Layers, own), Sealed: true, Device: wireguardDevice,
			Encapsulation: below.Wire.Encapsulation, Encryption: "wireguard"},
	}, nil
}

// A wireguardSite has the keys and devices of a site, which its ops share.
type wireguardSite struct {
	keys    map[int]wireguard.Key // by node, made at their first use
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

// addWireguard returns an op that makes a node's device, or starts the process that makes it.
func addWireguard(node, mtu int) lab.Op {
	return lab.Op{
		Text: fmt.Sprintf("link add %s mtu %d type wireguard", wireguardDevice, mtu),
		Apply: func(e *lab.Env) error {
			s, err := wireguardSiteOf(e)
			if err != nil {
				return err
			}
			d, err := wireguard.Add(e.Netlink(), wireguardDevice, mtu)
			if err != nil {
				return err
			}
			s.devices[node] = d
			e.OnClose(d.Close)
			e.Fact(result.Fact{Name: "wireguard", Value: d.Implementation()})
			return nil
		},
		Feature: "wireguard",
		Probe:   func(e *lab.Env) error { return wireguard.Probe(e.Netlink()) },
	}
}

// setWireguard returns an op that gives node n's device its key and its peers. The allowed addresses of a peer are
// those of its pods, that of its node for pods, and that of its device for tunnels on top of it.
func setWireguard(t lab.Topology, n int, below lab.Layer) lab.Op {
	text := fmt.Sprintf("wireguard set %s listen-port %d", wireguardDevice, lab.WireGuardPort)
	peers := map[int]wireguard.Peer{}
	for k := range t.Others(n) {
		allowed := slices.Concat(lab.PodNet(k).All(), hostRoutes(lab.TunnelAddr(k)).All(),
			[]netip.Prefix{netip.PrefixFrom(wireguardAddr(k), 32)})
		var texts []string
		for _, a := range allowed {
			texts = append(texts, a.String())
		}
		p := wireguard.Peer{Endpoint: netip.AddrPortFrom(below.Outer(k), lab.WireGuardPort), Allowed: allowed}
		text += fmt.Sprintf(" peer %s endpoint %s allowed-ips %s", lab.Node(k), p.Endpoint, strings.Join(texts, ","))
		peers[k] = p
	}
	return lab.Op{Text: text, Apply: func(e *lab.Env) error {
		s, err := wireguardSiteOf(e)
		if err != nil {
			return err
		}
		return s.configure(n, peers)
	}}
}

// configure gives a node's device its own key and the peers, by node, with their keys.
func (s *wireguardSite) configure(node int, peers map[int]wireguard.Peer) error {
	own, err := s.key(node)
	if err != nil {
		return err
	}
	c := wireguard.Config{Private: own, Port: lab.WireGuardPort}
	for _, k := range slices.Sorted(maps.Keys(peers)) {
		theirs, err := s.key(k)
		if err != nil {
			return err
		}
		p := peers[k]
		p.Public = theirs.Public()
		c.Peers = append(c.Peers, p)
	}
	return s.devices[node].Configure(c)
}
