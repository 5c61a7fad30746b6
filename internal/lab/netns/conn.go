//go:build linux

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Conn is an rtnetlink socket of the namespace in which it was opened; it works on any thread. It refers to links by
// name and caches their indexes. The error of adding a device or a queue Is result.ErrNotSupported if the kernel has
// none of its kind. It is not safe for concurrent use.
type Conn struct {
	handle *netlink.Handle
	index  map[string]int
}

// OpenConn opens a Conn in the namespace of the calling thread, which the caller must have locked.
func OpenConn() (*Conn, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open an rtnetlink socket: %w", err)
	}
	return &Conn{h, map[string]int{}}, nil
}

// With runs f with a Conn of the namespace of the calling thread, which the caller must have locked if that is not the
// process's namespace.
func With(f func(c *Conn) error) error {
	c, err := OpenConn()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// Close closes the socket, which otherwise holds its namespace.
func (c *Conn) Close() { c.handle.Close() }

// A Link has the attributes of any new link.
type Link struct {
	Name string
	MTU  int              // bytes; 0: the kernel's default
	MAC  net.HardwareAddr // nil: random
	// NS is the descriptor of the namespace in which the link is made; 0: the Conn's own.
	NS int
}

func (l Link) attrs() netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.HardwareAddr = l.Name, l.MTU, l.MAC
	if l.NS != 0 {
		a.Namespace = netlink.NsFd(l.NS)
	}
	return a
}

// unsupported turns the kernel's error for an unknown kind of device or queue into a NotSupported error.
func unsupported(err error, kind, config string) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return result.NotSupported(fmt.Sprintf("this kernel has no %s (%s)", kind, config))
	}
	return err
}

// AddVeth makes a pair of virtual Ethernet devices. The peer has the MTU of the first.
func (c *Conn) AddVeth(l, peer Link) error {
	v := netlink.NewVeth(l.attrs())
	v.PeerName, v.PeerHardwareAddr = peer.Name, peer.MAC
	if peer.NS != 0 {
		v.PeerNamespace = netlink.NsFd(peer.NS)
	}
	return unsupported(c.handle.LinkAdd(v), "veth", "CONFIG_VETH")
}

// AddBridge makes a bridge without spanning tree and without multicast snooping.
func (c *Conn) AddBridge(l Link) error {
	snoop := false
	err := c.handle.LinkAdd(&netlink.Bridge{LinkAttrs: l.attrs(), MulticastSnooping: &snoop})
	return unsupported(err, "bridge", "CONFIG_BRIDGE")
}

// AddVxlan makes a VXLAN device without learning. local is its outer source address.
func (c *Conn) AddVxlan(l Link, id, port int, local netip.Addr) error {
	err := c.handle.LinkAdd(&netlink.Vxlan{LinkAttrs: l.attrs(), VxlanId: id, Port: port, SrcAddr: local.AsSlice()})
	return unsupported(err, "vxlan", "CONFIG_VXLAN")
}

// AddMacvlan makes a macvlan device in bridge mode on top of parent.
func (c *Conn) AddMacvlan(l Link, parent string) error {
	i, err := c.Index(parent)
	if err != nil {
		return err
	}
	a := l.attrs()
	a.ParentIndex = i
	err = c.handle.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE})
	return unsupported(err, "macvlan", "CONFIG_MACVLAN")
}

// AddIPIP makes an IP-in-IP device with an outer source address. The outer destination is the next hop of the route.
func (c *Conn) AddIPIP(l Link, local netip.Addr) error {
	err := c.handle.LinkAdd(&netlink.Iptun{LinkAttrs: l.attrs(), Local: local.AsSlice(), Ttl: 64, PMtuDisc: 1})
	return unsupported(err, "ipip devices", "CONFIG_NET_IPIP")
}

// AddWireGuard makes a WireGuard device of the kernel.
func (c *Conn) AddWireGuard(l Link) error {
	err := c.handle.LinkAdd(&netlink.Wireguard{LinkAttrs: l.attrs()})
	return unsupported(err, "WireGuard", "CONFIG_WIREGUARD, since Linux 5.6")
}

// Delete removes a link.
func (c *Conn) Delete(name string) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	delete(c.index, name)
	return c.handle.LinkDel(link)
}

// Up sets a link up.
func (c *Conn) Up(name string) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	return c.handle.LinkSetUp(link)
}

// Down sets a link down.
func (c *Conn) Down(name string) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	return c.handle.LinkSetDown(link)
}

// Rename gives a link, which is down, another name.
func (c *Conn) Rename(name, to string) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	delete(c.index, name)
	return c.handle.LinkSetName(link, to)
}

// Enslave makes a link a port of a bridge.
func (c *Conn) Enslave(name, bridge string) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	i, err := c.Index(bridge)
	if err != nil {
		return err
	}
	return c.handle.LinkSetMasterByIndex(link, i)
}

// Index returns a link's index, which it caches.
func (c *Conn) Index(name string) (int, error) {
	if i, ok := c.index[name]; ok {
		return i, nil
	}
	link, err := c.handle.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", name, err)
	}
	c.index[name] = link.Attrs().Index
	return link.Attrs().Index, nil
}

// link returns a link with only its name and index, which is enough for most calls.
func (c *Conn) link(name string) (netlink.Link, error) {
	i, err := c.Index(name)
	if err != nil {
		return nil, err
	}
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: name, Index: i}}, nil
}

// A Device is the state of a link.
type Device struct {
	MTU    int // bytes
	MAC    net.HardwareAddr
	RX, TX uint64 // packets so far
	Kind   string // veth, bridge, vxlan
}

// Device returns the current state of a link.
func (c *Conn) Device(name string) (Device, error) {
	link, err := c.handle.LinkByName(name)
	if err != nil {
		return Device{}, fmt.Errorf("device %s: %w", name, err)
	}
	a := link.Attrs()
	d := Device{MTU: a.MTU, MAC: a.HardwareAddr, Kind: link.Type()}
	if s := a.Statistics; s != nil {
		d.RX, d.TX = s.RxPackets, s.TxPackets
	}
	return d, nil
}

// Ready reports whether every link that is set up is also active, so that it carries packets. Links without an
// operational state, such as tunnels, count as active.
func (c *Conn) Ready() (bool, error) {
	links, err := c.handle.LinkList()
	if err != nil {
		return false, fmt.Errorf("list devices: %w", err)
	}
	for _, link := range links {
		a := link.Attrs()
		if a.Flags&net.FlagUp != 0 && a.OperState != netlink.OperUp && a.OperState != netlink.OperUnknown {
			return false, nil
		}
	}
	return true, nil
}

// Exists reports whether there is a link with that name.
func (c *Conn) Exists(name string) (bool, error) {
	_, err := c.handle.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return false, nil
	}
	return err == nil, err
}

// AddAddr adds an address to a link. It is usable at once, without duplicate address detection.
func (c *Conn) AddAddr(dev string, p netip.Prefix) error {
	link, err := c.link(dev)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: ipnet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return c.handle.AddrAdd(link, a)
}

// A Route is a route. Zero values are left to the kernel.
type Route struct {
	Dst    netip.Prefix
	Dev    string
	Via    netip.Addr // next hop, reached through Dev without another route; zero: none
	Src    netip.Addr // preferred source address
	Table  int        // 0: main
	Metric int
	Local  bool // packets are delivered on this host, whatever their address
}

// AddRoute adds a route.
func (c *Conn) AddRoute(r Route) error {
	i, err := c.Index(r.Dev)
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: i, Dst: ipnet(r.Dst), Table: r.Table, Priority: r.Metric}
	if r.Via.IsValid() {
		route.Gw, route.Flags = r.Via.AsSlice(), int(netlink.FLAG_ONLINK)
	} else {
		route.Scope = netlink.SCOPE_LINK
	}
	if r.Local {
		route.Type, route.Scope = unix.RTN_LOCAL, netlink.SCOPE_HOST
	}
	if r.Src.IsValid() {
		route.Src = r.Src.AsSlice()
	}
	return c.handle.RouteAdd(route)
}

// AddRule adds a policy rule: packets from one network to another use a table.
func (c *Conn) AddRule(from, to netip.Prefix, table int) error {
	r := netlink.NewRule()
	r.Src, r.Dst, r.Table, r.Family = ipnet(from), ipnet(to), table, unix.AF_INET
	if from.Addr().Is6() {
		r.Family = unix.AF_INET6
	}
	return c.handle.RuleAdd(r)
}

// AddMarkRule adds a policy rule for one IP version: packets with a mark use a table.
func (c *Conn) AddMarkRule(mark uint32, ipv6 bool, table int) error {
	r := netlink.NewRule()
	r.Mark, r.Table, r.Family = mark, table, unix.AF_INET
	if ipv6 {
		r.Family = unix.AF_INET6
	}
	return c.handle.RuleAdd(r)
}

// AddNeighbour adds a permanent neighbour entry.
func (c *Conn) AddNeighbour(dev string, ip netip.Addr, mac net.HardwareAddr) error {
	i, err := c.Index(dev)
	if err != nil {
		return err
	}
	return c.handle.NeighSet(&netlink.Neigh{LinkIndex: i,
		State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: mac})
}

// AddFDB adds an entry to a VXLAN device: frames for a hardware address are sent to an outer address.
func (c *Conn) AddFDB(dev string, mac net.HardwareAddr, outer netip.Addr) error {
	i, err := c.Index(dev)
	if err != nil {
		return err
	}
	return c.handle.NeighSet(&netlink.Neigh{
		LinkIndex: i, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
		IP: outer.AsSlice(), HardwareAddr: mac,
	})
}

// A TokenBucket limits the rate at which a link sends.
type TokenBucket struct {
	Rate  int64 // bit/s, with Ethernet headers
	Burst int   // depth in bytes; at least the largest packet, segmented or not
	Limit int   // bytes that may wait
}

// AddTokenBucket adds a token bucket filter as the root queueing discipline of a link.
func (c *Conn) AddTokenBucket(dev string, b TokenBucket) error {
	i, err := c.Index(dev)
	if err != nil {
		return err
	}
	rate := uint64(b.Rate / 8)
	err = c.handle.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Limit: uint32(b.Limit), Buffer: ticks(uint64(b.Burst), rate),
	})
	return unsupported(err, "tbf", "CONFIG_NET_SCH_TBF")
}

// ticks returns the time that size bytes take at rate byte/s, in the packet scheduler's unit of 64 ns (PSCHED_SHIFT is
// 6 since Linux 2.6.31), rounded up so that size bytes fit.
func ticks(size, rate uint64) uint32 {
	const tick = 64
	return uint32((size*1e9/rate + tick) / tick)
}

func ipnet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Set sets a device's MTU, in bytes, and its hardware address unless that is nil.
func (c *Conn) Set(name string, mtu int, mac net.HardwareAddr) error {
	link, err := c.link(name)
	if err != nil {
		return err
	}
	if err := c.handle.LinkSetMTU(link, mtu); err != nil || mac == nil {
		return err
	}
	return c.handle.LinkSetHardwareAddr(link, mac)
}
