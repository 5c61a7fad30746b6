//go:build linux

package datapath

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// bridge is the virtual switch of the underlay, in its own namespace.
const bridge = "sw0"

// leastBurst is the least depth of a token bucket in bytes. It holds the largest packet that leaves a host, 64 KiB
// before segmentation with a header for each segment.
const leastBurst = 80 << 10

// underlay starts a plan: the switch, and every node with its uplink. What a node sends is limited to the topology's
// rate; the limit is at the sender, where a local socket feels it as back-pressure and not as loss.
func underlay(t lab.Topology) lab.Plan {
	var p lab.Plan
	p.Namespace(lab.Switch)
	// The switch itself takes no part in any protocol above Ethernet, and has no packet filter: it stands for a wire.
	p.Add(lab.Switch, lab.Sysctl("net.ipv6.conf.default.disable_ipv6", "1"), bridgeNetfilter{false},
		lab.Bridge{Name: bridge, MTU: t.MTU, MAC: lab.NodeMAC(0)}, lab.Up(bridge))
	for n := range t.EachNode() {
		node(&p, t, n)
	}
	return p
}

func node(p *lab.Plan, t lab.Topology, n int) {
	name := lab.Node(n)
	p.Namespace(name)
	quiet(p, name)
	p.Add(name, lab.Sysctl("net.ipv4.ip_forward", "1"),
		lab.Sysctl("net.ipv6.conf.all.forwarding", "1"),
		lab.Sysctl("net.ipv6.conf.default.forwarding", "1"),
		// A pod's gateway is also its way to its neighbours, which is no mistake to be reported.
		lab.Sysctl("net.ipv4.conf.all.send_redirects", "0"),
		lab.Sysctl("net.ipv4.conf.default.send_redirects", "0"))
	if t.Rules > 0 {
		p.Add(name, nft.Ballast{Rules: t.Rules})
	}
	attach(p, t, name, lab.Veth{Name: lab.Uplink, MTU: t.MTU, MAC: lab.NodeMAC(n), Peer: name, PeerNS: lab.Switch})
	p.Add(lab.Switch, lab.Port(name, bridge))
	addresses(p, name, lab.Uplink, n, lab.NodeAddr(n).Prefix(24, 48))
}

// attach makes a port of the underlay's switch; the caller puts the peer into the switch.
func attach(p *lab.Plan, t lab.Topology, name string, port lab.Veth) {
	if t.Delay != nil {
		// Every packet of a round trip leaves one port or the other: each keeps it for half of the time.
		p.Add(name, lab.Delayed{Veth: port, Wait: *t.Delay / 2})
	} else {
		p.Add(name, port)
	}
	if t.Loss > 0 {
		p.Add(name, nft.Loss{Dev: port.Name, Probability: t.Loss})
	}
	if t.Rate > 0 {
		p.Add(name, shaper(t.Rate))
	}
	p.Add(name, lab.Up("lo", lab.Uplink))
}

// shaper holds the tokens of 2 ms, so that a timer that is late loses nothing of the rate. It lets 10 ms wait, but at
// least four of the largest packets, so that one TCP flow can fill the rate, and not so many that queueing hides what a
// datapath does.
func shaper(rate int64) lab.Shaper {
	burst := max(leastBurst, int(rate/8/500))
	limit := min(max(4*leastBurst, int(rate/8/100)), 4<<20)
	return lab.Shaper{Dev: lab.Uplink, TokenBucket: netns.TokenBucket{Rate: rate, Burst: burst, Limit: max(limit, burst)}}
}

// quiet keeps a namespace from sending what nobody asked for, which a run would see as noise, and from dropping what
// comes another way than it would go.
func quiet(p *lab.Plan, name string) {
	p.Add(name, lab.Sysctl("net.ipv6.conf.default.addr_gen_mode", "1"),
		lab.Sysctl("net.ipv6.conf.default.accept_ra", "0"),
		lab.Sysctl("net.ipv4.conf.all.rp_filter", "0"),
		lab.Sysctl("net.ipv4.conf.default.rp_filter", "0"))
}

// addresses gives a device its addresses, and one for its link with this number.
func addresses(p *lab.Plan, name, dev string, id int, prefixes lab.DualPrefix) {
	p.Add(name, lab.Addr(dev, lab.LinkLocal(id)))
	for _, prefix := range prefixes.All() {
		p.Add(name, lab.Addr(dev, prefix))
	}
}

func hostRoutes(d lab.Dual) lab.DualPrefix { return d.Prefix(32, 128) }
