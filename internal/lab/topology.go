package lab

import (
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Limits of a Topology.
const (
	MinNodes = 2
	MaxNodes = 16
	// PodsPerNode is two, so that every /same path has two ends.
	PodsPerNode = 2
	// MinMTU leaves pods IPv6's minimum MTU of 1280 bytes with every datapath.
	MinMTU = 1500
	// MaxMTU is the largest MTU that network cards commonly support. A veth supports more, but not every tunnel can add
	// its headers to packets of nearly 64 KiB.
	MaxMTU = 9216
	// MinRate and MaxRate limit the rate of the underlay, in bit/s.
	MinRate = 1_000_000
	MaxRate = 100_000_000_000
	// MaxDelay and MaxLoss are limits up to which the datapath check can succeed.
	MaxDelay = 100 * time.Millisecond
	MaxLoss  = 0.2
	// MinPodMTU is IPv6's minimum MTU, in bytes.
	MinPodMTU = 1280
	// MinBuffer holds a packet or two, MaxBuffer the window of a path with 10 Gbit/s and 50 ms. Both are in bytes.
	MinBuffer = 4 << 10
	MaxBuffer = 64 << 20
	// MaxBacklog is the default of Linux. The kernel adds MaxRules rules in about a second.
	MaxBacklog = 4096
	MaxRules   = 20_000
	// ServicePort is the port of every Service and of its only endpoint.
	ServicePort = 5201
	// Switch is the name of the underlay's namespace.
	Switch = "switch"
	// Uplink is a node's device on the underlay, and a pod's only device.
	Uplink = "eth0"
)

// A Topology describes a site apart from its datapath. Nodes and pods are numbered from 1.
type Topology struct {
	Nodes    int    `json:"nodes"`          // MinNodes to MaxNodes
	MTU      int    `json:"mtu"`            // of the underlay, bytes
	Rate     int64  `json:"rate,omitempty"` // of each node's uplink, with Ethernet headers, bit/s; 0: unlimited
	Services string `json:"services"`       // name of a Services: nftables, ebpf
	IPv6     bool   `json:"ipv6,omitempty"` // IP version of the runs; sites always have both
	// Delay is added to each round trip between two ports of the underlay; nil: none. With a Delay of 0 packets still
	// pass the forwarder, so that it is the baseline for other delays.
	Delay *time.Duration `json:"delay,omitempty"`
	// Loss is the probability that an IP packet from the underlay is dropped, independently of others.
	Loss float64 `json:"loss,omitempty"`
	// Rules is the number of packet filter rules that do not match, which each node tries on every packet it forwards.
	Rules int  `json:"rules,omitempty"`
	Pods  Pods `json:"pods,omitzero"`
}

// Pods has settings of pods that are independent of the datapath. Zero values keep the defaults of the kernel or the
// datapath.
type Pods struct {
	MTU         int    `json:"mtu,omitempty"`        // bytes; at most what the datapath leaves
	OffloadsOff bool   `json:"plain,omitempty"`      // devices without segmentation, coalescing and checksum offloads
	Congestion  string `json:"congestion,omitempty"` // TCP's congestion control
	Buffer      int64  `json:"buffer,omitempty"`     // most that a TCP socket buffers for each direction, bytes
	Backlog     int    `json:"backlog,omitempty"`    // most connections that wait to be accepted
}

// Default returns the topology of a target without options.
func Default() Topology { return Topology{Nodes: 2, MTU: 1500, Services: "nftables"} }

// Validate returns an error that names the first value out of its range.
func (t Topology) Validate() error {
	switch {
	case t.Nodes < MinNodes || t.Nodes > MaxNodes:
		return fmt.Errorf("nodes=%d is not from %d to %d", t.Nodes, MinNodes, MaxNodes)
	case t.MTU < MinMTU || t.MTU > MaxMTU:
		return fmt.Errorf("mtu=%d is not from %d to %d bytes", t.MTU, MinMTU, MaxMTU)
	case t.Rate != 0 && (t.Rate < MinRate || t.Rate > MaxRate):
		return fmt.Errorf("rate=%d is not from 1 Mbit/s to 100 Gbit/s", t.Rate)
	case t.Delay != nil && (*t.Delay < 0 || *t.Delay > MaxDelay):
		return fmt.Errorf("delay=%v is not from 0 to %v", *t.Delay, MaxDelay)
	case !(t.Loss >= 0 && t.Loss <= MaxLoss):
		return fmt.Errorf("loss=%g is not from 0 to %g", t.Loss, MaxLoss)
	case t.Rules < 0 || t.Rules > MaxRules:
		return fmt.Errorf("rules=%d is not from 0 to %d", t.Rules, MaxRules)
	}
	return t.Pods.validate()
}

func (o Pods) validate() error {
	switch {
	case o.MTU != 0 && (o.MTU < MinPodMTU || o.MTU > MaxMTU):
		return fmt.Errorf("pod-mtu=%d is not from %d to %d bytes", o.MTU, MinPodMTU, MaxMTU)
	case o.Buffer != 0 && (o.Buffer < MinBuffer || o.Buffer > MaxBuffer):
		return fmt.Errorf("buffer=%d is not from %d to %d bytes", o.Buffer, MinBuffer, MaxBuffer)
	case o.Backlog < 0 || o.Backlog > MaxBacklog:
		return fmt.Errorf("backlog=%d is not from 1 to %d", o.Backlog, MaxBacklog)
	}
	return nil
}

// EachNode returns the numbers of all nodes.
func (t Topology) EachNode() iter.Seq[int] { return t.Others(0) }

// Others returns the numbers of all nodes except n.
func (t Topology) Others(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := 1; k <= t.Nodes; k++ {
			if k != n && !yield(k) {
				return
			}
		}
	}
}

// A Dual is an address of each IP version.
type Dual struct{ V4, V6 netip.Addr }

// Of returns the address of one IP version.
func (d Dual) Of(ipv6 bool) netip.Addr {
	if ipv6 {
		return d.V6
	}
	return d.V4
}

// All returns both addresses.
func (d Dual) All() []netip.Addr { return []netip.Addr{d.V4, d.V6} }

// A DualPrefix is a network of each IP version.
type DualPrefix struct{ V4, V6 netip.Prefix }

// Of returns the network of one IP version.
func (d DualPrefix) Of(ipv6 bool) netip.Prefix {
	if ipv6 {
		return d.V6
	}
	return d.V4
}

// All returns both networks.
func (d DualPrefix) All() []netip.Prefix { return []netip.Prefix{d.V4, d.V6} }

// Prefix returns the networks of d with prefixes of these lengths. The host bits are kept.
func (d Dual) Prefix(bits4, bits6 int) DualPrefix {
	return DualPrefix{netip.PrefixFrom(d.V4, bits4), netip.PrefixFrom(d.V6, bits6)}
}

// Node returns the name of a node and of its namespace.
func Node(n int) string { return fmt.Sprintf("node%d", n) }

// Pod returns the name of a pod and of its namespace.
func Pod(n, m int) string { return fmt.Sprintf("node%d/pod%d", n, m) }

// NodeOf returns the name of a pod's node, or "" if the host is not a pod.
func NodeOf(host string) string {
	node, _, isPod := strings.Cut(host, "/pod")
	if !isPod {
		return ""
	}
	return node
}

// NodeAddr returns a node's address on the underlay.
func NodeAddr(n int) Dual { return dual(10, 0, 0, n, 0x10, 0, n) }

// NodeNet returns the network of the underlay.
func NodeNet() DualPrefix { return dual(10, 0, 0, 0, 0x10, 0, 0).Prefix(24, 48) }

// PodAddr returns a pod's address.
func PodAddr(n, m int) Dual { return dual(10, 244, n, 10+m, 0x244, n, 10+m) }

// PodNet returns the network of a node's pods.
func PodNet(n int) DualPrefix { return dual(10, 244, n, 0, 0x244, n, 0).Prefix(24, 64) }

// PodsNet returns the network of all pods.
func PodsNet() DualPrefix { return dual(10, 244, 0, 0, 0x244, 0, 0).Prefix(16, 48) }

// Gateway returns a node's address towards its pods.
func Gateway(n int) Dual { return dual(10, 244, n, 1, 0x244, n, 1) }

// TunnelAddr returns the address of a node's tunnel device, at which pods reach the node.
func TunnelAddr(n int) Dual { return dual(10, 245, 0, n, 0x245, 0, n) }

// ServiceAddr returns the address of the Service whose endpoint is a pod.
func ServiceAddr(n, m int) Dual {
	k := PodsPerNode*(n-1) + m
	return dual(10, 96, 0, k, 0x96, 0, k)
}

// ServiceNet returns the network of all Services.
func ServiceNet() DualPrefix { return dual(10, 96, 0, 0, 0x96, 0, 0).Prefix(24, 48) }

// dual returns a.b.c.d and fd00:<net>:0:<sub>::<id>.
func dual(a, b, c, d, net, sub, id int) Dual {
	v6 := [16]byte{0xfd, 0, byte(net >> 8), byte(net), 0, 0, byte(sub >> 8), byte(sub), 14: byte(id >> 8), 15: byte(id)}
	return Dual{netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)}), netip.AddrFrom16(v6)}
}

// LinkLocal returns an IPv6 link-local address. Neighbour discovery needs one where a node forwards.
func LinkLocal(id int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfe, 0x80, 14: byte(id >> 8), 15: byte(id)}), 64)
}

// NodeMAC returns the hardware address of a node's uplink.
func NodeMAC(n int) net.HardwareAddr { return net.HardwareAddr{2, 0, 10, 0, 0, byte(n)} }

// PodMAC returns the hardware address of a pod's device.
func PodMAC(n, m int) net.HardwareAddr { return net.HardwareAddr{2, 0, 10, 244, byte(n), byte(10 + m)} }
