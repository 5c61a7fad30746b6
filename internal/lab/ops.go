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
	"github.com/knotmeter/knotmeter/internal/lab/nl"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The names of probing links, in a scratch namespace.
const (
	scratch       = "probe0"
	scratchParent = "parent0"
)

// unsupported turns the kernel's answer to a kind of device or queue that it does not know into a reason.
func unsupported(err error, feature, config string) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return result.NotSupported(fmt.Sprintf("this kernel has no %s (%s)", feature, config))
	}
	return err
}

// A Veth is a pair of devices: Name here, Peer in another namespace, with the same MTU.
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

// Apply makes the pair.
func (o Veth) Apply(e *Env) error {
	fd, err := e.fd(o.PeerNS)
	if err != nil {
		return err
	}
	return unsupported(e.Netlink().AddVeth(nl.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}, nl.Link{Name: o.Peer, NS: fd}),
		"veth", "CONFIG_VETH")
}

// Feature is veth.
func (o Veth) Feature() string { return "veth" }

// Probe makes a pair within one namespace.
func (o Veth) Probe(e *Env) error {
	return unsupported(e.Netlink().AddVeth(nl.Link{Name: scratch}, nl.Link{Name: scratch + "p"}), "veth", "CONFIG_VETH")
}

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
	return unsupported(e.Netlink().AddBridge(nl.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}), "bridge", "CONFIG_BRIDGE")
}

// Feature is bridge.
func (o Bridge) Feature() string { return "bridge" }

// Probe makes a bridge.
func (o Bridge) Probe(e *Env) error { return Bridge{Name: scratch}.Apply(e) }

// A Vxlan is a VXLAN device with fixed ways, which learns nothing.
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
	err := e.Netlink().AddVxlan(nl.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC}, o.ID, o.Port, o.Local)
	return unsupported(err, "vxlan", "CONFIG_VXLAN")
}

// Feature is vxlan.
func (o Vxlan) Feature() string { return "vxlan" }

// Probe makes a VXLAN device that nobody uses.
func (o Vxlan) Probe(e *Env) error {
	return Vxlan{Name: scratch, ID: 1, Port: 8472, Local: netip.AddrFrom4([4]byte{127, 0, 0, 1})}.Apply(e)
}

// A Slave is a device on top of a parent here, made in another namespace: macvlan (bridge) or ipvlan (layer 2).
type Slave struct {
	Kind   string // macvlan, ipvlan
	Name   string
	NS     string
	Parent string
	MTU    int
	MAC    net.HardwareAddr // not of ipvlan, which has its parent's
}

func (o Slave) String() string {
	mode := "bridge"
	if o.Kind == "ipvlan" {
		mode = "l2"
	}
	return fmt.Sprintf("link add %s in %s%s mtu %d link %s type %s mode %s",
		o.Name, o.NS, address(o.MAC), o.MTU, o.Parent, o.Kind, mode)
}

// Apply makes the device.
func (o Slave) Apply(e *Env) error {
	fd, err := e.fd(o.NS)
	if err != nil {
		return err
	}
	return o.add(e, fd)
}

func (o Slave) add(e *Env, fd int) error {
	l := nl.Link{Name: o.Name, MTU: o.MTU, MAC: o.MAC, NS: fd}
	switch o.Kind {
	case "macvlan":
		return unsupported(e.Netlink().AddMacvlan(l, o.Parent), o.Kind, "CONFIG_MACVLAN")
	case "ipvlan":
		return unsupported(e.Netlink().AddIPVlan(l, o.Parent), o.Kind, "CONFIG_IPVLAN")
	}
	return fmt.Errorf("there is no kind of device %q", o.Kind)
}

// Feature is the kind.
func (o Slave) Feature() string { return o.Kind }

// Probe makes such a device on top of a bridge, which every kernel of a lab has.
func (o Slave) Probe(e *Env) error {
	if err := e.Netlink().AddBridge(nl.Link{Name: scratchParent}); err != nil {
		return err
	}
	defer func() { _ = e.Netlink().Delete(scratchParent) }()
	return Slave{Kind: o.Kind, Name: scratch, Parent: scratchParent}.add(e, 0)
}

// A Port makes a device a port of a bridge, and sets it up.
type Port struct{ Dev, Bridge string }

func (o Port) String() string { return fmt.Sprintf("link set %s master %s up", o.Dev, o.Bridge) }

// Apply does it.
func (o Port) Apply(e *Env) error {
	if err := e.Netlink().Enslave(o.Dev, o.Bridge); err != nil {
		return err
	}
	return e.Netlink().Up(o.Dev)
}

// An Up sets devices up.
type Up []string

func (o Up) String() string { return "link set " + strings.Join(o, " ") + " up" }

// Apply does it.
func (o Up) Apply(e *Env) error {
	for _, dev := range o {
		if err := e.Netlink().Up(dev); err != nil {
			return err
		}
	}
	return nil
}

// An Addr gives a device an address.
type Addr struct {
	Dev    string
	Prefix netip.Prefix
}

func (o Addr) String() string { return fmt.Sprintf("addr add %s dev %s", o.Prefix, o.Dev) }

// Apply does it.
func (o Addr) Apply(e *Env) error { return e.Netlink().AddAddr(o.Dev, o.Prefix) }

// A Route is a route; see nl.Route.
type Route nl.Route

func (o Route) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "route add %s dev %s", o.Dst, o.Dev)
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
func (o Route) Apply(e *Env) error { return e.Netlink().AddRoute(nl.Route(o)) }

// A Rule sends what goes from one network to another to a table.
type Rule struct {
	From, To netip.Prefix
	Table    int
}

func (o Rule) String() string {
	return fmt.Sprintf("rule add from %s to %s lookup %d", o.From, o.To, o.Table)
}

// Apply adds the rule.
func (o Rule) Apply(e *Env) error { return e.Netlink().AddRule(o.From, o.To, o.Table) }

// A Neighbour says which hardware address an address has.
type Neighbour struct {
	Dev string
	IP  netip.Addr
	MAC net.HardwareAddr
}

func (o Neighbour) String() string {
	return fmt.Sprintf("neigh add %s lladdr %s dev %s", o.IP, o.MAC, o.Dev)
}

// Apply adds the neighbour.
func (o Neighbour) Apply(e *Env) error { return e.Netlink().AddNeighbour(o.Dev, o.IP, o.MAC) }

// An FDB tells a VXLAN device behind which outer address a hardware address is.
type FDB struct {
	Dev   string
	MAC   net.HardwareAddr
	Outer netip.Addr
}

func (o FDB) String() string { return fmt.Sprintf("fdb add %s dev %s dst %s", o.MAC, o.Dev, o.Outer) }

// Apply adds the entry.
func (o FDB) Apply(e *Env) error { return e.Netlink().AddFDB(o.Dev, o.MAC, o.Outer) }

// A Sysctl writes a setting of the namespace.
type Sysctl struct{ Name, Value string }

func (o Sysctl) String() string { return "sysctl " + o.Name + "=" + o.Value }

// Apply writes it.
func (o Sysctl) Apply(*Env) error { return netns.Sysctl(o.Name, o.Value) }

// A Shaper limits what a device sends.
type Shaper struct {
	Dev string
	nl.TokenBucket
}

func (o Shaper) String() string {
	return fmt.Sprintf("qdisc add dev %s root tbf rate %sbit burst %d limit %d",
		o.Dev, strconv.FormatInt(o.Rate, 10), o.Burst, o.Limit)
}

// Apply adds the queue.
func (o Shaper) Apply(e *Env) error {
	return unsupported(e.Netlink().AddTokenBucket(o.Dev, o.TokenBucket), "tbf", "CONFIG_NET_SCH_TBF")
}

// Feature is tbf.
func (o Shaper) Feature() string { return "tbf" }

// Probe limits a bridge that nobody uses.
func (o Shaper) Probe(e *Env) error {
	if err := e.Netlink().AddBridge(nl.Link{Name: scratch}); err != nil {
		return err
	}
	return Shaper{scratch, o.TokenBucket}.Apply(e)
}
