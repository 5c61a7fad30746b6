//go:build linux

package datapath

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// Names of values that the ops of a site share.
const (
	sharedKeys   = "ipsec keys"
	sharedSocket = "ipsec socket of "
)

// espCounters is the name for the packet counters of the security associations, which have no device.
const espCounters = "esp"

// An espTunnel is ESP in tunnel mode, with new keys for every site. It carries what pods send to other nodes and their
// pods, and what nodes send to other nodes' pods: IPv4 in IPv4 and IPv6 in IPv6. Routes remain those of the layer
// below.
type espTunnel struct{}

// Over adds the security associations and policies of every node.
func (espTunnel) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	for n := range t.EachNode() {
		for k := range t.Others(n) {
			for _, ipv6 := range []bool{false, true} {
				p.Add(lab.Node(n), tunnelAssociations(n, k, ipv6)...)
			}
		}
	}
	layer, err := espLayer(p, below)
	// IPv6 has the larger outer header, and pods have one MTU.
	layer.MTU = espMTU(below.MTU-40, 0)
	layer.Wire.Layers6 = []string{"ipv6", "esp"}
	return layer, err
}

// An espTransport is ESP in transport mode for what nodes send each other over IPv4 and UDP to a tunnel's port.
type espTransport struct{ port uint16 }

// Over adds the security associations and policies of every node.
func (o espTransport) Over(p *lab.Plan, t lab.Topology, below lab.Layer) (lab.Layer, error) {
	for n := range t.EachNode() {
		for k := range t.Others(n) {
			p.Add(lab.Node(n), transportAssociations(n, k, o.port)...)
		}
	}
	layer, err := espLayer(p, below)
	layer.MTU = espMTU(below.MTU, 20)
	return layer, err
}

func espLayer(p *lab.Plan, below lab.Layer) (lab.Layer, error) {
	if below.Device != lab.Uplink {
		return lab.Layer{}, errors.New("ipsec goes over the underlay, not over another tunnel")
	}
	p.Tunnel = espCounters
	layer := below
	layer.Wire = lab.Wire{Layers: []string{"ipv4", "esp"}, Sealed: true, Device: espCounters,
		Encryption: "ipsec"}
	return layer, nil
}

// espMTU returns the largest packet that ESP with AES-GCM carries. mtu is what the network carries after a tunnel's
// outer header, and plain the size of an IP header that stays outside, both in bytes. ESP adds a header of 8 bytes, an
// initialisation vector of 8, a tag of 16, and 2 bytes after padding to a multiple of 4 (RFC 4303, RFC 4106).
// xfrm_state_mtu of the kernel computes the same.
func espMTU(mtu, plain int) int {
	return (mtu-8-8-16-plain)&^3 + plain - 2
}

// association returns the security association from node a to node b. Its SPI encodes both, and its ReqID is the number
// of the peer, which is the other node.
func association(a, b, peer int, ipv6, tunnel bool) netns.SA {
	spi := uint32(0x40000 | a<<8 | b)
	if ipv6 {
		spi = uint32(0x60000 | a<<8 | b)
	}
	return netns.SA{Src: lab.NodeAddr(a).Of(ipv6), Dst: lab.NodeAddr(b).Of(ipv6), SPI: spi, ReqID: peer, Tunnel: tunnel}
}

// tunnelAssociations returns node n's security associations and policies for the tunnel with node k.
func tunnelAssociations(n, k int, ipv6 bool) []lab.Op {
	out, in := association(n, k, k, ipv6, true), association(k, n, k, ipv6, true)
	own, other := lab.PodNet(n).Of(ipv6), lab.PodNet(k).Of(ipv6)
	here, there := hostRoutes(lab.NodeAddr(n)).Of(ipv6), hostRoutes(lab.NodeAddr(k)).Of(ipv6)
	return []lab.Op{
		securityAssociation(out, n), securityAssociation(in, n),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyOut, Src: own, Dst: other, SA: out}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyOut, Src: own, Dst: there, SA: out}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyOut, Src: here, Dst: other, SA: out}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyFwd, Src: other, Dst: own, SA: in}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyFwd, Src: there, Dst: own, SA: in}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyIn, Src: other, Dst: here, SA: in}),
	}
}

// transportAssociations returns node n's security associations and policies for UDP to port between it and node k.
func transportAssociations(n, k int, port uint16) []lab.Op {
	out, in := association(n, k, k, false, false), association(k, n, k, false, false)
	here, there := hostRoutes(lab.NodeAddr(n)).V4, hostRoutes(lab.NodeAddr(k)).V4
	return []lab.Op{
		securityAssociation(out, n), securityAssociation(in, n),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyOut, Src: here, Dst: there, UDPPort: port, SA: out}),
		securityPolicy(n, netns.Policy{Dir: netns.PolicyIn, Src: there, Dst: here, UDPPort: port, SA: in}),
	}
}

// securityAssociation returns an op that adds a security association of a node. Both of its ends have the same key,
// made for the site.
func securityAssociation(a netns.SA, node int) lab.Op {
	newKey := func() []byte {
		key := make([]byte, netns.ESPKeySize)
		_, _ = rand.Read(key) // never fails
		return key
	}
	feature := "ESP"
	if a.Dst.Is6() {
		feature = "ESP for IPv6"
	}
	return lab.Op{
		Text: fmt.Sprintf("xfrm state add %s spi %#x aead rfc4106(gcm(aes)) 128", espTemplate(a), a.SPI),
		Apply: func(e *lab.Env) error {
			x, err := xfrmSocket(e, node)
			if err != nil {
				return err
			}
			keys, err := lab.Shared(e, sharedKeys, func() (map[uint32][]byte, error) { return map[uint32][]byte{}, nil })
			if err != nil {
				return err
			}
			if keys[a.SPI] == nil {
				keys[a.SPI] = newKey()
			}
			return x.AddSA(a, keys[a.SPI])
		},
		Feature: feature,
		Probe: func(*lab.Env) error {
			x, err := netns.OpenXFRM()
			if err != nil {
				return err
			}
			return errors.Join(x.AddSA(a, newKey()), x.Close())
		},
	}
}

// espTemplate returns the text that a security association and the policies with it share.
func espTemplate(s netns.SA) string {
	mode := "transport"
	if s.Tunnel {
		mode = "tunnel"
	}
	return fmt.Sprintf("src %s dst %s proto esp mode %s reqid %d", s.Src, s.Dst, mode, s.ReqID)
}

// securityPolicy returns an op that adds a policy to a node.
func securityPolicy(node int, p netns.Policy) lab.Op {
	port := ""
	if p.UDPPort != 0 {
		port = fmt.Sprintf(" proto udp dport %d", p.UDPPort)
	}
	text := fmt.Sprintf("xfrm policy add src %s dst %s%s dir %s tmpl %s", p.Src, p.Dst, port, p.Dir, espTemplate(p.SA))
	return lab.Op{Text: text, Apply: func(e *lab.Env) error {
		x, err := xfrmSocket(e, node)
		if err != nil {
			return err
		}
		return x.AddPolicy(p)
	}}
}

// xfrmSocket returns the node's socket, which the ops share. It also counts the node's packets until the site is
// closed.
func xfrmSocket(e *lab.Env, node int) (*netns.XFRM, error) {
	return lab.Shared(e, sharedSocket+e.Namespace(), func() (*netns.XFRM, error) {
		x, err := netns.OpenXFRM()
		if err != nil {
			return nil, err
		}
		e.OnClose(x.Close)
		e.RegisterCounter(func() (rx, tx uint64, err error) { return x.Packets(lab.NodeAddr(node).All()) })
		return x, nil
	})
}
