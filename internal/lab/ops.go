//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Names of links that probes make in a scratch namespace.
const (
	scratch       = "probe0"
	scratchParent = "parent0"
)

// unsupported turns the kernel's error for an unknown kind of device or queue into a NotSupported error.
func unsupported(err error, feature, config string) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return result.NotSupported(fmt.Sprintf("this kernel has no %s (%s)", feature, config))
	}
	return err
}

// A Veth is a pair of devices: Name in the op's namespace, Peer in another one, with the same MTU.
type Veth struct {
	Name   string
	MTU    int
	MAC    net.HardwareAddr
	Peer   string
	PeerNS string
}

func (o Veth) String() string {
	return fmt.Sprintf("link add %s%s mtu %d type veth peer %s in %s", o.Name, address(o.MAC), o.MTU, o.Peer, o.PeerNS)
}

// Apply makes both devices.
func (o Veth) Apply(e *Env) error {
	fd, err := e.fd(o.PeerNS)
	if err != nil {
		return err
	}
	return o.add(e, netns.Link{Name: o.Peer, NS: fd})
}

func (o Veth) add(e *Env, peer netns.Link) error {
	return unsupported(e.Netlink().AddVeth(netns.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}, peer), "veth", "CONFIG_VETH")
}

// Feature returns the name of the feature that Probe tries.
func (o Veth) Feature() string { return "veth" }

// Probe makes a pair within one namespace.
func (o Veth) Probe(e *Env) error { return Veth{Name: scratch}.add(e, netns.Link{Name: scratch + "p"}) }

func address(mac net.HardwareAddr) string {
	if mac == nil {
		return ""
	}
	return " address " + mac.String()
}

// A Bridge is a virtual switch.
type Bridge struct {
	Name string
	MTU  int
	MAC  net.HardwareAddr
}

func (o Bridge) String() string {
	return fmt.Sprintf("link add %s%s mtu %d type bridge mcast_snooping 0", o.Name, address(o.MAC), o.MTU)
}

// Apply makes the bridge.
func (o Bridge) Apply(e *Env) error {
	return unsupported(e.Netlink().AddBridge(netns.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}), "bridge", "CONFIG_BRIDGE")
}

// Feature returns the name of the feature that Probe tries.
func (o Bridge) Feature() string { return "bridge" }

// Probe makes an unused bridge.
func (o Bridge) Probe(e *Env) error { return Bridge{Name: scratch}.Apply(e) }

// A Vxlan is a VXLAN device with static forwarding entries and without learning.
type Vxlan struct {
	Name  string
	ID    int
	Local netip.Addr
	Port  int
	MTU   int
	MAC   net.HardwareAddr
}

func (o Vxlan) String() string {
	return fmt.Sprintf("link add %s%s mtu %d type vxlan id %d local %s dstport %d nolearning",
		o.Name, address(o.MAC), o.MTU, o.ID, o.Local, o.Port)
}

// Apply makes the device.
func (o Vxlan) Apply(e *Env) error {
	err := e.Netlink().AddVxlan(netns.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}, o.ID, o.Port, o.Local)
	return unsupported(err, "vxlan", "CONFIG_VXLAN")
}

// Feature returns the name of the feature that Probe tries.
func (o Vxlan) Feature() string { return "vxlan" }

// Probe makes an unused VXLAN device.
func (o Vxlan) Probe(e *Env) error {
	return Vxlan{Name: scratch, ID: 1, Port: 8472, Local: netip.AddrFrom4([4]byte{127, 0, 0, 1})}.Apply(e)
}

// A Macvlan is a macvlan device (mode bridge) on top of a parent in the op's namespace, made in another namespace.
type Macvlan struct {
	Name   string
	NS     string
	Parent string
	MTU    int
	MAC    net.HardwareAddr
}

func (o Macvlan) String() string {
	return fmt.Sprintf("link add %s in %s%s mtu %d link %s type macvlan mode bridge",
		o.Name, o.NS, address(o.MAC), o.MTU, o.Parent)
}

// Apply makes the device in its namespace.
func (o Macvlan) Apply(e *Env) error {
	fd, err := e.fd(o.NS)
	if err != nil {
		return err
	}
	return o.add(e, fd)
}

func (o Macvlan) add(e *Env, fd int) error {
	err := e.Netlink().AddMacvlan(netns.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC, NS: fd}, o.Parent)
	return unsupported(err, "macvlan", "CONFIG_MACVLAN")
}

// Feature returns the name of the feature that Probe tries.
func (o Macvlan) Feature() string { return "macvlan" }

// Probe makes such a device on top of a bridge, which every kernel that can run a lab has.
func (o Macvlan) Probe(e *Env) error {
	if err := e.Netlink().AddBridge(netns.Link{Name: scratchParent}); err != nil {
		return err
	}
	defer func() { _ = e.Netlink().Delete(scratchParent) }()
	return Macvlan{Name: scratch, Parent: scratchParent}.add(e, 0)
}

// A Shaper limits the rate at which a device sends.
type Shaper struct {
	Dev string
	netns.TokenBucket
}

func (o Shaper) String() string {
	return fmt.Sprintf("qdisc add dev %s root tbf rate %sbit burst %d limit %d",
		o.Dev, strconv.FormatInt(o.Rate, 10), o.Burst, o.Limit)
}

// Apply adds a token bucket filter to the device.
func (o Shaper) Apply(e *Env) error {
	return unsupported(e.Netlink().AddTokenBucket(o.Dev, o.TokenBucket), "tbf", "CONFIG_NET_SCH_TBF")
}

// Feature returns the name of the feature that Probe tries.
func (o Shaper) Feature() string { return "tbf" }

// Probe limits an unused bridge.
func (o Shaper) Probe(e *Env) error {
	if err := e.Netlink().AddBridge(netns.Link{Name: scratch}); err != nil {
		return err
	}
	return Shaper{scratch, o.TokenBucket}.Apply(e)
}

// A Route is an op that adds a route of the kernel.
type Route netns.Route

func (o Route) String() string {
	var b strings.Builder
	b.WriteString("route add ")
	if o.Local {
		b.WriteString("local ")
	}
	fmt.Fprintf(&b, "%s dev %s", o.Dst, o.Dev)
	if o.Via.IsValid() {
		fmt.Fprintf(&b, " via %s onlink", o.Via)
	}
	if o.Src.IsValid() {
		fmt.Fprintf(&b, " src %s", o.Src)
	}
	if o.Table != 0 {
		fmt.Fprintf(&b, " table %d", o.Table)
	}
	return b.String()
}

// Apply adds the route.
func (o Route) Apply(e *Env) error { return e.Netlink().AddRoute(netns.Route(o)) }

// An op implements Op with a text and a function.
type op struct {
	text  string
	apply func(e *Env) error
}

func (o op) String() string     { return o.text }
func (o op) Apply(e *Env) error { return o.apply(e) }

// NewOp returns an op with this text and effect. It is for ops that every kernel that can run a lab supports.
func NewOp(text string, apply func(e *Env) error) Op { return op{text, apply} }

// Port returns an op that makes a device a port of a bridge and sets it up.
func Port(dev, bridge string) Op {
	return NewOp(fmt.Sprintf("link set %s master %s up", dev, bridge), func(e *Env) error {
		if err := e.Netlink().Enslave(dev, bridge); err != nil {
			return err
		}
		return e.Netlink().Up(dev)
	})
}

// Up returns an op that sets devices up.
func Up(devs ...string) Op {
	return NewOp("link set "+strings.Join(devs, " ")+" up", func(e *Env) error {
		for _, dev := range devs {
			if err := e.Netlink().Up(dev); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rename returns an op that gives a device, which is down, another name.
func Rename(dev, name string) Op {
	return NewOp(fmt.Sprintf("link set %s name %s", dev, name), func(e *Env) error {
		return e.Netlink().Rename(dev, name)
	})
}

func setMTU(dev string, mtu int) Op {
	return NewOp(fmt.Sprintf("link set %s mtu %d", dev, mtu), func(e *Env) error { return e.Netlink().Set(dev, mtu, nil) })
}

// congestionControl returns an op that sets TCP's congestion control. A namespace may only use those that the machine
// allows.
func congestionControl(name string) Op {
	const setting = "net.ipv4.tcp_congestion_control"
	return NewOp("sysctl "+setting+"="+name, func(*Env) error {
		err := netns.WriteSysctl(setting, name)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT) {
			const allowed = "net.ipv4.tcp_allowed_congestion_control"
			list, _ := netns.ReadSysctl(allowed)
			return result.NotSupported(fmt.Sprintf("a lab cannot have the congestion control %q: this machine lets namespaces "+
				"have %s (%s)", name, list, allowed))
		}
		return err
	})
}

func withoutOffloads(dev string) Op {
	return NewOp("ethtool -K "+dev+" tx off tso off gso off gro off", func(*Env) error { return netns.SwitchOff(dev) })
}

// Addr returns an op that adds an address to a device.
func Addr(dev string, prefix netip.Prefix) Op {
	return NewOp(fmt.Sprintf("addr add %s dev %s", prefix, dev),
		func(e *Env) error { return e.Netlink().AddAddr(dev, prefix) })
}

// MarkRule returns an op that makes packets of one IP version with a mark use a routing table.
func MarkRule(mark uint32, ipv6 bool, table int) Op {
	version := 4
	if ipv6 {
		version = 6
	}
	return NewOp(fmt.Sprintf("ip -%d rule add fwmark %#x lookup %d", version, mark, table),
		func(e *Env) error { return e.Netlink().AddMarkRule(mark, ipv6, table) })
}

// Neighbour returns an op that adds a permanent neighbour entry.
func Neighbour(dev string, ip netip.Addr, mac net.HardwareAddr) Op {
	return NewOp(fmt.Sprintf("neigh add %s lladdr %s dev %s", ip, mac, dev),
		func(e *Env) error { return e.Netlink().AddNeighbour(dev, ip, mac) })
}

// FDB returns an op that makes a VXLAN device send frames for a hardware address to an outer address.
func FDB(dev string, mac net.HardwareAddr, outer netip.Addr) Op {
	return NewOp(fmt.Sprintf("fdb add %s dev %s dst %s", mac, dev, outer),
		func(e *Env) error { return e.Netlink().AddFDB(dev, mac, outer) })
}

// Sysctl returns an op that writes a setting of the namespace.
func Sysctl(name, value string) Op {
	return NewOp("sysctl "+name+"="+value, func(*Env) error { return netns.WriteSysctl(name, value) })
}
