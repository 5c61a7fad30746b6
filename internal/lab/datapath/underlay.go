//go:build linux

package datapath

import (
	"net"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// bridge is the underlay's virtual switch, in its own namespace.
const bridge = "sw0"

// leastBurst is the smallest depth of a token bucket, in bytes. It holds the largest packet that leaves a host: 64 KiB
// before segmentation, with a header for each segment.
const leastBurst = 80 << 10

// underlay returns a plan with the switch and every node with its uplink. The rate is limited at the sender, where a
// local socket notices it as back-pressure and not as loss.
func underlay(t lab.Topology) lab.Plan {
	var p lab.Plan
	p.Namespace(lab.Switch)
	// The switch represents a wire: it takes no part in protocols above Ethernet and has no packet filter.
	p.Add(lab.Switch, lab.Sysctl("net.ipv6.conf.default.disable_ipv6", "1"), bridgeNetfilter("0"),
		lab.Bridge(netns.Link{Name: bridge, MTU: t.MTU, MAC: lab.NodeMAC(0)}), lab.Up(bridge))
	for n := range t.EachNode() {
		addNode(&p, t, n)
	}
	return p
}

// addNode adds a node with its port on the switch, and the settings of a router.
func addNode(p *lab.Plan, t lab.Topology, n int) {
	name := lab.Node(n)
	p.Namespace(name)
	quietNamespace(p, name)
	p.Add(name, lab.Sysctl("net.ipv4.ip_forward", "1"),
		lab.Sysctl("net.ipv6.conf.all.forwarding", "1"),
		lab.Sysctl("net.ipv6.conf.default.forwarding", "1"),
		// A pod also reaches its neighbours through its gateway, which must not send redirects for that.
		lab.Sysctl("net.ipv4.conf.all.send_redirects", "0"),
		lab.Sysctl("net.ipv4.conf.default.send_redirects", "0"))
	if t.Rules > 0 {
		p.Add(name, nft.UnusedRules(t.Rules))
	}
	addPort(p, t, name, lab.NodeMAC(n), name)
	addAddresses(p, name, lab.Uplink, n, lab.NodeAddr(n).Prefix(24, 48))
}

// addPort connects a namespace with the underlay's switch. port is the name of the switch's end.
func addPort(p *lab.Plan, t lab.Topology, name string, mac net.HardwareAddr, port string) {
	uplink := netns.Link{Name: lab.Uplink, MTU: t.MTU, MAC: mac}
	if t.Delay != nil {
		// A round trip passes two ports, each of which adds half of the delay.
		p.Add(name, lab.Delayed(uplink, port, lab.Switch, *t.Delay/2))
	} else {
		p.Add(name, lab.Veth(uplink, port, lab.Switch))
	}
	if t.Loss > 0 {
		p.Add(name, nft.Loss(lab.Uplink, t.Loss))
	}
	if t.Rate > 0 {
		p.Add(name, shaper(t.Rate))
	}
	p.Add(name, lab.Up("lo", lab.Uplink))
	p.Add(lab.Switch, lab.Port(port, bridge))
}

// shaper returns a token bucket with the tokens of 2 ms, so that a late timer does not lower the rate. The queue holds
// 10 ms, but at least four of the largest packets so that one TCP flow can reach the rate, and at most 4 MiB so that
// queueing does not hide differences between datapaths.
func shaper(rate int64) lab.Op {
	burst := max(leastBurst, int(rate/8/500))
	limit := min(max(4*leastBurst, int(rate/8/100)), 4<<20)
	return lab.Shaper(lab.Uplink, netns.TokenBucket{Rate: rate, Burst: burst, Limit: max(limit, burst)})
}

// quietNamespace prevents packets that the namespace would send on its own, which runs would see as noise, and disables
// the reverse path filter, since packets may take asymmetric paths.
func quietNamespace(p *lab.Plan, name string) {
	p.Add(name, lab.Sysctl("net.ipv6.conf.default.addr_gen_mode", "1"),
		lab.Sysctl("net.ipv6.conf.default.accept_ra", "0"),
		lab.Sysctl("net.ipv4.conf.all.rp_filter", "0"),
		lab.Sysctl("net.ipv4.conf.default.rp_filter", "0"))
}

// addAddresses adds addresses to a device, and a link-local one with the number id.
func addAddresses(p *lab.Plan, name, dev string, id int, prefixes lab.DualPrefix) {
	p.Add(name, lab.Addr(dev, lab.LinkLocal(id)))
	for _, prefix := range prefixes.All() {
		p.Add(name, lab.Addr(dev, prefix))
	}
}

// hostRoutes returns d as networks of one address each.
func hostRoutes(d lab.Dual) lab.DualPrefix { return d.Prefix(32, 128) }
