//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
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

// linkAdd returns the beginning of the line that adds a device.
func linkAdd(l netns.Link) string {
	return fmt.Sprintf("link add %s%s mtu %d", l.Name, addressOf(l), l.MTU)
}

func addressOf(l netns.Link) string {
	if l.MAC == nil {
		return ""
	}
	return " address " + l.MAC.String()
}

// Veth returns an op that makes a pair of devices: one in the op's namespace, and peer in another one, with the same
// MTU.
func Veth(l netns.Link, peer, peerNS string) Op {
	return Op{
		Text: fmt.Sprintf("%s type veth peer %s in %s", linkAdd(l), peer, peerNS),
		Apply: func(e *Env) error {
			fd, err := e.fd(peerNS)
			if err != nil {
				return err
			}
			return e.Netlink().AddVeth(l, netns.Link{Name: peer, NS: fd})
		},
		Feature: "veth",
		Probe: func(e *Env) error {
			return e.Netlink().AddVeth(netns.Link{Name: scratch}, netns.Link{Name: scratch + "p"})
		},
	}
}

// Bridge returns an op that makes a virtual switch.
func Bridge(l netns.Link) Op {
	return Op{
		Text:    linkAdd(l) + " type bridge mcast_snooping 0",
		Apply:   func(e *Env) error { return e.Netlink().AddBridge(l) },
		Feature: "bridge",
		Probe:   func(e *Env) error { return e.Netlink().AddBridge(netns.Link{Name: scratch}) },
	}
}

// Vxlan returns an op that makes a VXLAN device with static forwarding entries and without learning. local is its outer
// source address.
func Vxlan(l netns.Link, id, port int, local netip.Addr) Op {
	add := func(e *Env, l netns.Link) error { return e.Netlink().AddVxlan(l, id, port, local) }
	return Op{
		Text:    fmt.Sprintf("%s type vxlan id %d local %s dstport %d nolearning", linkAdd(l), id, local, port),
		Apply:   func(e *Env) error { return add(e, l) },
		Feature: "vxlan",
		Probe:   func(e *Env) error { return add(e, netns.Link{Name: scratch}) },
	}
}

// Macvlan returns an op that makes a macvlan device (mode bridge) on top of a parent in the op's namespace. The device
// is in another one.
func Macvlan(l netns.Link, ns, parent string) Op {
	return Op{
		Text: fmt.Sprintf("link add %s in %s%s mtu %d link %s type macvlan mode bridge",
			l.Name, ns, addressOf(l), l.MTU, parent),
		Apply: func(e *Env) (err error) {
			in := l
			if in.NS, err = e.fd(ns); err != nil {
				return err
			}
			return e.Netlink().AddMacvlan(in, parent)
		},
		Feature: "macvlan",
		Probe: func(e *Env) error { // on top of a bridge, which every kernel that can run a lab has
			if err := e.Netlink().AddBridge(netns.Link{Name: scratchParent}); err != nil {
				return err
			}
			defer func() { _ = e.Netlink().Delete(scratchParent) }()
			return e.Netlink().AddMacvlan(netns.Link{Name: scratch}, scratchParent)
		},
	}
}

// Shaper returns an op that limits the rate at which a device sends, by a token bucket filter.
func Shaper(dev string, b netns.TokenBucket) Op {
	return Op{
		Text:    fmt.Sprintf("qdisc add dev %s root tbf rate %dbit burst %d limit %d", dev, b.Rate, b.Burst, b.Limit),
		Apply:   func(e *Env) error { return e.Netlink().AddTokenBucket(dev, b) },
		Feature: "tbf",
		Probe: func(e *Env) error {
			if err := e.Netlink().AddBridge(netns.Link{Name: scratch}); err != nil {
				return err
			}
			return e.Netlink().AddTokenBucket(scratch, b)
		},
	}
}

// Route returns an op that adds a route.
func Route(r netns.Route) Op {
	text := "route add "
	if r.Local {
		text += "local "
	}
	text += fmt.Sprintf("%s dev %s", r.Dst, r.Dev)
	if r.Via.IsValid() {
		text += fmt.Sprintf(" via %s onlink", r.Via)
	}
	if r.Src.IsValid() {
		text += fmt.Sprintf(" src %s", r.Src)
	}
	if r.Table != 0 {
		text += fmt.Sprintf(" table %d", r.Table)
	}
	return Op{Text: text, Apply: func(e *Env) error { return e.Netlink().AddRoute(r) }}
}

// Port returns an op that makes a device a port of a bridge and sets it up.
func Port(dev, bridge string) Op {
	return Op{Text: fmt.Sprintf("link set %s master %s up", dev, bridge), Apply: func(e *Env) error {
		if err := e.Netlink().Enslave(dev, bridge); err != nil {
			return err
		}
		return e.Netlink().Up(dev)
	}}
}

// Up returns an op that sets devices up.
func Up(devs ...string) Op {
	return Op{Text: "link set " + strings.Join(devs, " ") + " up", Apply: func(e *Env) error {
		for _, dev := range devs {
			if err := e.Netlink().Up(dev); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Rename returns an op that gives a device, which is down, another name.
func Rename(dev, name string) Op {
	return Op{Text: fmt.Sprintf("link set %s name %s", dev, name),
		Apply: func(e *Env) error { return e.Netlink().Rename(dev, name) }}
}

// congestionControl returns an op that sets TCP's congestion control. A namespace may only use those that the machine
// allows.
func congestionControl(name string) Op {
	const setting = "net.ipv4.tcp_congestion_control"
	return Op{Text: "sysctl " + setting + "=" + name, Apply: func(*Env) error {
		err := netns.WriteSysctl(setting, name)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT) {
			const allowed = "net.ipv4.tcp_allowed_congestion_control"
			list, _ := netns.ReadSysctl(allowed)
			return result.NotSupported(fmt.Sprintf("a lab cannot have the congestion control %q: this machine lets namespaces "+
				"have %s (%s)", name, list, allowed))
		}
		return err
	}}
}

// Addr returns an op that adds an address to a device.
func Addr(dev string, prefix netip.Prefix) Op {
	return Op{Text: fmt.Sprintf("addr add %s dev %s", prefix, dev),
		Apply: func(e *Env) error { return e.Netlink().AddAddr(dev, prefix) }}
}

// MarkRule returns an op that makes packets of one IP version with a mark use a routing table.
func MarkRule(mark uint32, ipv6 bool, table int) Op {
	version := 4
	if ipv6 {
		version = 6
	}
	return Op{Text: fmt.Sprintf("ip -%d rule add fwmark %#x lookup %d", version, mark, table),
		Apply: func(e *Env) error { return e.Netlink().AddMarkRule(mark, ipv6, table) }}
}

// Neighbour returns an op that adds a permanent neighbour entry.
func Neighbour(dev string, ip netip.Addr, mac net.HardwareAddr) Op {
	return Op{Text: fmt.Sprintf("neigh add %s lladdr %s dev %s", ip, mac, dev),
		Apply: func(e *Env) error { return e.Netlink().AddNeighbour(dev, ip, mac) }}
}

// FDB returns an op that makes a VXLAN device send frames for a hardware address to an outer address.
func FDB(dev string, mac net.HardwareAddr, outer netip.Addr) Op {
	return Op{Text: fmt.Sprintf("fdb add %s dev %s dst %s", mac, dev, outer),
		Apply: func(e *Env) error { return e.Netlink().AddFDB(dev, mac, outer) }}
}

// Sysctl returns an op that writes a setting of the namespace.
func Sysctl(name, value string) Op {
	return Op{Text: "sysctl " + name + "=" + value, Apply: func(*Env) error { return netns.WriteSysctl(name, value) }}
}
