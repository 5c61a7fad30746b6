//go:build linux

package netns_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// withTwo runs f in a new namespace, with a second one in which it can make devices.
func withTwo(t *testing.T, f func(conn, other *netns.Conn, fd int) error) {
	t.Helper()
	err := netns.WithSwitcher(func(s *netns.Switcher) error {
		second, err := s.New()
		if err != nil {
			return err
		}
		defer func() { _ = second.Close() }()
		other, err := netns.OpenConn()
		if err != nil {
			return err
		}
		defer other.Close()
		first, err := s.New()
		if err != nil {
			return err
		}
		defer func() { _ = first.Close() }()
		conn, err := netns.OpenConn()
		if err != nil {
			return err
		}
		defer conn.Close()
		return f(conn, other, second.Fd())
	})
	if errors.Is(err, unix.EPERM) {
		t.Skip("making network namespaces needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVethSpansNamespaces(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	withTwo(t, func(conn, other *netns.Conn, fd int) error {
		if err := conn.AddVeth(netns.Link{Name: "here", MTU: 9000, MAC: mac}, netns.Link{Name: "there", NS: fd}); err != nil {
			return err
		}
		here, err := conn.Device("here")
		if err != nil {
			return err
		}
		there, err := other.Device("there")
		if err != nil {
			return err
		}
		if here.MTU != 9000 || there.MTU != 9000 || here.MAC.String() != mac.String() || here.Kind != "veth" {
			t.Errorf("got %+v and %+v", here, there)
		}
		// Deleting one end deletes the other.
		if err := conn.Delete("here"); err != nil {
			return err
		}
		if still, err := other.Exists("there"); err != nil || still {
			t.Errorf("the peer of a deleted veth is there: %t, %v", still, err)
		}
		return nil
	})
}

func TestErrorsNameTheDevice(t *testing.T) {
	withTwo(t, func(conn, _ *netns.Conn, _ int) error {
		for what, err := range map[string]error{
			"up":      conn.Up("eth7"),
			"address": conn.AddAddr("eth7", netip.MustParsePrefix("192.0.2.1/24")),
			"route":   conn.AddRoute(netns.Route{Dst: netip.MustParsePrefix("192.0.2.0/24"), Dev: "eth7"}),
			"port":    conn.Enslave("eth7", "br0"),
			"macvlan": conn.AddMacvlan(netns.Link{Name: "m"}, "eth7"),
			"bucket":  conn.AddTokenBucket("eth7", netns.TokenBucket{Rate: 1e6, Burst: 1500, Limit: 3000}),
		} {
			if err == nil || err.Error() != "device eth7: Link not found" {
				t.Errorf("%s: got %v", what, err)
			}
		}
		if err := netns.SwitchOff("eth7"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("offloads: got %v, want ENODEV", err)
		}
		return nil
	})
}

// TestAddressesRoutesAndRules checks that addresses, routes and rules determine the path of packets.
func TestAddressesRoutesAndRules(t *testing.T) {
	withTwo(t, func(conn, other *netns.Conn, fd int) error {
		v4, v6 := netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")
		table4 := netns.Route{Dst: netip.MustParsePrefix("198.51.100.0/24"),
			Dev: "a", Via: netip.MustParseAddr("192.0.2.9"), Table: 100}
		table6 := netns.Route{Dst: netip.MustParsePrefix("2001:db8:1::/64"),
			Dev: "a", Via: netip.MustParseAddr("2001:db8::9"), Table: 100}
		steps := []error{
			conn.AddVeth(netns.Link{Name: "a"}, netns.Link{Name: "b", NS: fd}), conn.Up("a"), other.Up("b"),
			conn.AddAddr("a", v4), conn.AddAddr("a", v6),
			conn.AddRoute(netns.Route{Dst: netip.MustParsePrefix("203.0.113.0/24"), Dev: "a", Src: v4.Addr()}),
			conn.AddRoute(table4), conn.AddRoute(table6),
			conn.AddRule(v4, table4.Dst, 100), conn.AddRule(v6, table6.Dst, 100),
			conn.AddNeighbour("a", netip.MustParseAddr("192.0.2.9"), net.HardwareAddr{2, 0, 0, 0, 0, 9}),
		}
		if err := errors.Join(steps...); err != nil {
			return err
		}
		// An address without duplicate address detection can be bound to at once.
		for _, to := range []string{"203.0.113.7:9", "198.51.100.7:9", "[2001:db8:1::7]:9"} {
			from := &net.UDPAddr{IP: v4.Addr().AsSlice()}
			if to[0] == '[' {
				from.IP = v6.Addr().AsSlice()
			}
			conn, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
			if err != nil {
				t.Errorf("no route to %s: %v", to, err)
				continue
			}
			_ = conn.Close()
		}
		if _, err := net.Dial("udp", "198.18.0.1:9"); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("without a route: %v", err)
		}
		return nil
	})
}

func TestBridgePortsAndVxlan(t *testing.T) {
	withTwo(t, func(conn, _ *netns.Conn, fd int) error {
		mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
		steps := []error{
			conn.AddBridge(netns.Link{Name: "br0", MTU: 1500}), conn.Up("br0"),
			conn.AddVeth(netns.Link{Name: "a"}, netns.Link{Name: "b", NS: fd}), conn.Enslave("a", "br0"), conn.Up("a"),
		}
		if err := errors.Join(steps...); err != nil {
			return err
		}
		err := conn.AddVxlan(netns.Link{Name: "vxlan0", MTU: 1450}, 1, 8472, netip.MustParseAddr("192.0.2.1"))
		if errors.Is(err, unix.EOPNOTSUPP) {
			t.Skip("this kernel has no vxlan (CONFIG_VXLAN)")
		}
		steps = []error{err, conn.Up("vxlan0"), conn.AddFDB("vxlan0", mac, netip.MustParseAddr("192.0.2.2"))}
		if err := errors.Join(steps...); err != nil {
			return err
		}
		d, err := conn.Device("vxlan0")
		if err != nil || d.MTU != 1450 || d.Kind != "vxlan" {
			t.Errorf("got %+v, %v", d, err)
		}
		return nil
	})
}

func TestTokenBucketAndOffloads(t *testing.T) {
	withTwo(t, func(conn, _ *netns.Conn, fd int) error {
		if err := conn.AddVeth(netns.Link{Name: "a"}, netns.Link{Name: "b", NS: fd}); err != nil {
			return err
		}
		for _, rate := range []int64{1e6, 1e9, 100e9} {
			err := conn.AddTokenBucket("a", netns.TokenBucket{Rate: rate, Burst: 80 << 10, Limit: 1 << 20})
			if errors.Is(err, result.ErrNotSupported) {
				t.Skip("this kernel has no tbf (CONFIG_NET_SCH_TBF)")
			}
			if err != nil {
				t.Errorf("rate %d: %v", rate, err)
			}
			err = errors.Join(conn.Delete("a"), conn.AddVeth(netns.Link{Name: "a"}, netns.Link{Name: "b", NS: fd}))
			if err != nil {
				return err
			}
		}
		before := machine.InspectDevice("a").Offloads
		if err := netns.SwitchOff("a"); err != nil {
			return err
		}
		after := machine.InspectDevice("a").Offloads
		if before != "rx-checksum tx-checksum tso gso" || after != "rx-checksum" {
			t.Errorf("the offloads are %q, and after SwitchOff %q", before, after)
		}
		return nil
	})
}
