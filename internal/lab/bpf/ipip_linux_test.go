package bpf

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// skipUnsupported skips the test if the kernel or the user lacks a feature, and fails it for other errors.
func skipUnsupported(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// connectNS connects two namespaces by a veth pair with an address at each end.
func connectNS(t testing.TB, a, b *netns.NS, nameA, nameB, addrA, addrB string, mtu int) {
	t.Helper()
	labtest.In(t, a, func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: nameA, MTU: mtu},
			PeerName:  nameB, PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(b.Fd()),
		})
	})
	labtest.In(t, a, func() error { return labtest.Address(nameA, addrA) })
	labtest.In(t, b, func() error { return labtest.Address(nameB, addrB) })
}

func route(to, via string) error {
	dst, err := netlink.ParseIPNet(to)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: net.ParseIP(via)})
}

// A site is two connected nodes with a pod each, and IP-in-IP between the nodes.
type site struct {
	node, pod [2]*netns.NS
	tunnel    [2]*Attachment
}

func newSite(t testing.TB) *site { return newSiteShaped(t, false) }

func newSiteShaped(t testing.TB, shaped bool) *site {
	t.Helper()
	s := &site{}
	for i := range 2 {
		s.node[i], s.pod[i] = labtest.NewNS(t), labtest.NewNS(t)
	}
	connectNS(t, s.node[0], s.node[1], "eth0", "eth0", "10.0.0.1/24", "10.0.0.2/24", 1500)
	for i := range 2 {
		n, other := i+1, 2-i
		connectNS(t, s.node[i], s.pod[i], "pod", "eth0",
			fmt.Sprintf("10.244.%d.1/24", n), fmt.Sprintf("10.244.%d.11/24", n), 1480)
		labtest.In(t, s.pod[i], func() error { return route("0.0.0.0/0", fmt.Sprintf("10.244.%d.1", n)) })
		labtest.In(t, s.node[i], func() error {
			return errors.Join(netns.WriteSysctl("net.ipv4.ip_forward", "1"),
				route(fmt.Sprintf("10.244.%d.0/24", other), fmt.Sprintf("10.0.0.%d", other)))
		})
		labtest.In(t, s.node[i], func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			s.tunnel[i], err = AttachTunnel(Tunnel{
				Shaped: shaped,
				Node:   netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", n)),
				Pods:   netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", n)),
				Peers: []Peer{{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", other)),
					netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", other))}},
			}, l.Attrs().Index)
			skipUnsupported(t, err)
			return nil
		})
		t.Cleanup(func() { s.tunnel[i].Close() })
	}
	return s
}

func TestTunnelCarriesTCP(t *testing.T) {
	s := newSite(t)
	const size = 32 << 20
	for _, c := range []struct {
		name     string
		from, to *netns.NS
		addr     string
	}{
		{"pod to pod", s.pod[0], s.pod[1], "10.244.2.11:5201"},
		{"and back", s.pod[1], s.pod[0], "10.244.1.11:5201"},
		{"pod to node", s.pod[0], s.node[1], "10.0.0.2:5201"},
		{"node to pod", s.node[0], s.pod[1], "10.244.2.11:5202"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := counters(t, s)
			capture := labtest.NewTap(t, s.node[0], "eth0")
			labtest.Transfer(t, c.from, c.to, c.addr, size)
			after := counters(t, s)
			for i := range 2 {
				if after[i].Errors != 0 {
					t.Errorf("node %d: %d errors", i+1, after[i].Errors)
				}
				if after[i].EncapPackets == before[i].EncapPackets || after[i].DecapPackets == before[i].DecapPackets {
					t.Errorf("node %d: the traffic did not take the tunnel: %+v, then %+v", i+1, before[i], after[i])
				}
			}
			large := outerHeaders(t, capture.Packets())
			if large == 0 {
				t.Errorf("no packet was larger than the MTU: the tunnel undoes segmentation offload")
			}
		})
	}
}

// outerHeaders checks that all IPv4 packets are IP-in-IP between the nodes, and counts those longer than the MTU.
func outerHeaders(t testing.TB, packets [][]byte) (large int) {
	t.Helper()
	seen := 0
	for _, p := range packets {
		if binary.BigEndian.Uint16(p[12:]) != unix.ETH_P_IP {
			continue
		}
		seen++
		ip := p[14:]
		if ip[9] != unix.IPPROTO_IPIP || ip[12+3] > 2 || ip[12] != 10 || ip[13] != 0 {
			t.Fatalf("on the wire: % x", ip[:40])
		}
		if sum(ip[:20]) != 0xffff {
			t.Fatalf("checksum of the outer header: % x", ip[:20])
		}
		if int(binary.BigEndian.Uint16(ip[2:])) != len(ip) {
			t.Fatalf("length of the outer header: % x, of %d bytes", ip[:20], len(ip))
		}
		if len(ip) > 1500 {
			large++
		}
	}
	if seen == 0 {
		t.Error("nothing was on the wire")
	}
	return large
}

// sum returns the ones' complement sum of RFC 1071.
func sum(b []byte) uint32 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return s
}

func counters(t testing.TB, s *site) (c [2]Counters) {
	t.Helper()
	for i := range 2 {
		var err error
		if c[i], err = s.tunnel[i].Counters(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestTunnelCarriesDatagrams(t *testing.T) {
	s := newSite(t)
	var server net.PacketConn
	labtest.In(t, s.pod[1], func() (err error) { server, err = net.ListenPacket("udp", "10.244.2.11:5201"); return err })
	defer server.Close()
	var client net.Conn
	labtest.In(t, s.pod[0], func() (err error) { client, err = net.Dial("udp", "10.244.2.11:5201"); return err })
	defer client.Close()
	// One byte, an odd number, the most that fits the MTU of 1480, and sizes that need fragments.
	for _, size := range []int{1, 333, 1452, 1453, 8000} {
		sent, got := make([]byte, size), make([]byte, 1<<16)
		rand.Read(sent)
		if _, err := client.Write(sent); err != nil {
			t.Fatal(err)
		}
		server.SetReadDeadline(time.Now().Add(time.Minute))
		n, _, err := server.ReadFrom(got)
		if err != nil || !bytes.Equal(got[:n], sent) {
			t.Errorf("%d bytes: got %d bytes, %v", size, n, err)
		}
	}
}

// TestShapedTunnelIsCountedWhole checks that a queue that limits bytes counts the outer headers of every segment.
func TestShapedTunnelIsCountedWhole(t *testing.T) {
	s := newSiteShaped(t, true)
	labtest.In(t, s.node[0], func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		const rate = 1e9 // bytes per second
		return netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index,
				Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate: rate, Limit: 1 << 22, Buffer: 1 << 20,
		})
	})
	const size = 16 << 20
	labtest.Transfer(t, s.pod[0], s.pod[1], "10.244.2.11:5201", size)
	labtest.In(t, s.node[0], func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		qdiscs, err := netlink.QdiscList(l)
		if err != nil {
			return err
		}
		// A segment has at most a pod's MTU of 1480, and headers of Ethernet, IPv4 twice, and TCP with timestamps.
		const payload, headers = 1480 - 20 - 32, 14 + 20 + 20 + 32
		least := uint64(size + size/payload*headers)
		for _, q := range qdiscs {
			if q.Type() == "tbf" && q.Attrs().Statistics.Basic.Bytes < least {
				t.Errorf("the queue has counted %d bytes, want at least %d", q.Attrs().Statistics.Basic.Bytes, least)
			}
		}
		return nil
	})
	for i, c := range counters(t, s) {
		if c.Errors != 0 || c.EncapPackets == 0 || c.DecapPackets == 0 {
			t.Errorf("node %d: %+v", i+1, c)
		}
	}
}

func TestTunnelLeavesNodesAlone(t *testing.T) {
	s := newSite(t)
	before := counters(t, s)
	labtest.Transfer(t, s.node[0], s.node[1], "10.0.0.2:5201", 1<<20)
	if after := counters(t, s); after != before {
		t.Errorf("traffic between nodes took the tunnel: %+v, then %+v", before, after)
	}
}

func TestTunnelEndsWithClose(t *testing.T) {
	s := newSite(t)
	if err := s.tunnel[0].Close(); err != nil {
		t.Fatal(err)
	}
	capture := labtest.NewTap(t, s.node[0], "eth0")
	labtest.In(t, s.pod[0], func() error {
		c, err := net.Dial("udp", "10.244.2.11:5201")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("bare"))
		return err
	})
	for _, p := range capture.Packets() {
		ours := bytes.Equal(p[14+12:14+16], []byte{10, 0, 0, 1}) // the other node's ICMP error comes through its tunnel
		if binary.BigEndian.Uint16(p[12:]) == unix.ETH_P_IP && p[14+9] == unix.IPPROTO_IPIP && ours {
			t.Errorf("still encapsulated: % x", p)
		}
	}
}

// BenchmarkTCP measures the throughput of one connection with and without encapsulation.
func BenchmarkTCP(b *testing.B) {
	for _, c := range []struct {
		name string
		bare bool
	}{{"bare", true}, {"ipip", false}} {
		b.Run(c.name, func(b *testing.B) {
			s := newSite(b)
			if c.bare {
				for i := range 2 {
					s.tunnel[i].Close()
				}
			}
			sendBulk(b, s.pod[0], s.pod[1], "10.244.2.11:5201")
		})
	}
}

func sendBulk(b *testing.B, from, to *netns.NS, addr string) {
	var l net.Listener
	labtest.In(b, to, func() (err error) { l, err = net.Listen("tcp", addr); return err })
	defer l.Close()
	done := make(chan struct{})
	buf := make([]byte, 128<<10)
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		sink := make([]byte, 1<<20)
		for err == nil {
			_, err = conn.Read(sink)
		}
		conn.Close()
	}()
	var conn net.Conn
	labtest.In(b, from, func() (err error) { conn, err = net.Dial("tcp", addr); return err })
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := conn.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	conn.Close()
	<-done
}

// TestTunnelCarriesSegmentedDatagrams checks that datagrams that are sent at once, and segmented late, each arrive.
func TestTunnelCarriesSegmentedDatagrams(t *testing.T) {
	s := newSite(t)
	var server, client *net.UDPConn
	to := &net.UDPAddr{IP: net.IPv4(10, 244, 2, 11), Port: 5201}
	labtest.In(t, s.pod[1], func() (err error) { server, err = net.ListenUDP("udp4", to); return err })
	defer server.Close()
	labtest.In(t, s.pod[0], func() (err error) { client, err = net.DialUDP("udp4", nil, to); return err })
	defer client.Close()
	const size, many = 1000, 20
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) })
	if err := errors.Join(err, inner); err != nil {
		t.Skipf("this kernel has no UDP segmentation offload (Linux 4.18): %v", err)
	}
	sent := make([]byte, size*many)
	rand.Read(sent)
	if _, err := client.Write(sent); err != nil {
		t.Fatal(err)
	}
	var got []byte
	buf := make([]byte, 1<<16)
	for len(got) < len(sent) {
		server.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := server.Read(buf)
		if err != nil || n != size {
			t.Fatalf("after %d bytes: a datagram of %d bytes, %v; %+v", len(got), n, err, counters(t, s))
		}
		got = append(got, buf[:n]...)
	}
	if !bytes.Equal(got, sent) {
		t.Error("what arrived is not what was sent")
	}
}

func TestTunnelIsChecked(t *testing.T) {
	six := netip.MustParseAddr("fd00::1")
	for name, change := range map[string]func(*Tunnel){
		"node":      func(t *Tunnel) { t.Node = six },
		"pods":      func(t *Tunnel) { t.Pods = netip.PrefixFrom(six, 64) },
		"peer":      func(t *Tunnel) { t.Peers[1].Node = six },
		"no peers":  func(t *Tunnel) { t.Peers = nil },
		"peer pods": func(t *Tunnel) { t.Peers[1].Pods = netip.Prefix{} },
	} {
		t.Run(name, func(t *testing.T) {
			broken := tunnel()
			change(&broken)
			if _, err := AttachTunnel(broken, 1); err == nil || !strings.Contains(err.Error(), "IP-in-IP") {
				t.Errorf("got %v", err)
			}
		})
	}
}
