package wireguard

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Serve(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A pair is two connected nodes with a WireGuard tunnel between them.
type pair struct {
	ns  [2]*netns.NS
	dev [2]*Device
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{ns: [2]*netns.NS{labtest.NewNS(t), labtest.NewNS(t)}}
	labtest.In(t, p.ns[0], func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.ns[1].Fd()),
		})
	})
	var keys [2]Key
	for i, ns := range p.ns {
		var err error
		if keys[i], err = NewKey(); err != nil {
			t.Fatal(err)
		}
		labtest.In(t, ns, func() error {
			if err := labtest.Address("eth0", fmt.Sprintf("10.0.0.%d/24", i+1)); err != nil {
				return err
			}
			c, err := netns.OpenConn()
			if err != nil {
				return err
			}
			defer c.Close()
			p.dev[i], err = Add(c, "wg0", 1500-Overhead)
			return err
		})
		t.Cleanup(func() { p.dev[i].Close() })
	}
	for i, ns := range p.ns {
		other := 1 - i
		labtest.In(t, ns, func() error {
			err := p.dev[i].Configure(Config{Private: keys[i], Port: lab.WireGuardPort, Peers: []Peer{{
				Public:   keys[other].Public(),
				Endpoint: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(other + 1)}), lab.WireGuardPort),
				Allowed: []netip.Prefix{
					netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(other + 1)}), 32),
					netip.MustParsePrefix(fmt.Sprintf("fd01::%d/128", other+1)),
				},
			}}})
			if errors.Is(err, result.ErrNotSupported) {
				t.Skip(err)
			}
			return err
		})
	}
	for i, ns := range p.ns {
		labtest.In(t, ns, func() error {
			return errors.Join(labtest.Address("wg0", fmt.Sprintf("10.1.0.%d/24", i+1)),
				labtest.Address("wg0", fmt.Sprintf("fd01::%d/64", i+1)))
		})
	}
	return p
}

func TestTunnelCarriesTCP(t *testing.T) {
	p := newPair(t)
	tap := labtest.NewTap(t, p.ns[0], "eth0")
	for _, c := range []struct {
		from, to int
		addr     string
	}{
		{0, 1, "10.1.0.2:5201"}, {1, 0, "10.1.0.1:5201"}, {0, 1, "[fd01::2]:5201"},
	} {
		before := packets(t, p.ns[0])
		labtest.Transfer(t, p.ns[c.from], p.ns[c.to], c.addr, 16<<20)
		if after := packets(t, p.ns[0]); after == before {
			t.Errorf("%s: wg0 carried nothing", c.addr)
		}
	}
	checkWire(t, tap.Packets())
}

func packets(t *testing.T, ns *netns.NS) (n uint64) {
	t.Helper()
	labtest.In(t, ns, func() error {
		l, err := netlink.LinkByName("wg0")
		if err == nil {
			n = l.Attrs().Statistics.TxPackets
		}
		return err
	})
	return n
}

// checkWire checks that all IPv4 packets on the wire are WireGuard, among them a handshake and data.
func checkWire(t *testing.T, packets [][]byte) {
	t.Helper()
	var types [5]int
	for _, p := range packets {
		if binary.BigEndian.Uint16(p[12:]) != unix.ETH_P_IP {
			continue
		}
		udp := p[14+20:]
		if p[14+9] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(udp[2:]) != lab.WireGuardPort || udp[8] < 1 || udp[8] > 4 {
			t.Fatalf("on the wire: % x", p[:min(60, len(p))])
		}
		types[udp[8]]++
	}
	if types[1] == 0 || types[2] == 0 || types[4] == 0 {
		t.Errorf("on the wire: %d initiations, %d responses, %d packets of data; want some of each",
			types[1], types[2], types[4])
	}
}

func TestDatagramsUpToTheMTU(t *testing.T) {
	p := newPair(t)
	var server net.PacketConn
	labtest.In(t, p.ns[1], func() (err error) { server, err = net.ListenPacket("udp", "10.1.0.2:5201"); return err })
	defer server.Close()
	var client net.Conn
	labtest.In(t, p.ns[0], func() (err error) { client, err = net.Dial("udp", "10.1.0.2:5201"); return err })
	defer client.Close()
	for _, size := range []int{0, 1, 333, 1420 - 28, 1420 - 27, 8000} {
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

func TestCloseLeavesNothing(t *testing.T) {
	p := newPair(t)
	if p.dev[0].Implementation() == kernel {
		t.Skip("the kernel's WireGuard goes with its namespace")
	}
	pid := p.dev[0].child.Cmd.Process.Pid
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || strings.Count(string(argv), "\x00") != 4 {
		t.Errorf("arguments of the child: %q, %v", argv, err)
	}
	if err := p.dev[0].Close(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("the child still lives: %v", err)
	}
	labtest.In(t, p.ns[0], func() error {
		if _, err := netlink.LinkByName("wg0"); !errors.As(err, &netlink.LinkNotFoundError{}) {
			t.Errorf("the device is still there: %v", err)
		}
		return nil
	})
}

func TestChildEndsWithItsParent(t *testing.T) {
	p := newPair(t)
	if p.dev[0].Implementation() == kernel {
		t.Skip("the kernel's WireGuard has no child")
	}
	c := p.dev[0].child
	c.Stdin.Close() // as the kernel does when the parent ends
	ended := make(chan error, 1)
	go func() { ended <- c.Cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the child still lives")
	}
}

func TestErrorsOfTheChild(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		stdin, want string
	}{
		"no arguments": {nil, "", "not 0 arguments"},
		"no MTU":       {[]string{"wg0", "large"}, "", `MTU "large" is not a number`},
		"long name":    {[]string{strings.Repeat("w", 16), "1420"}, "", "TUN device wwww"},
		"nonsense":     {[]string{"wg0", "1420"}, "nonsense\n\n", "failed to parse line"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := labtest.NewNS(t).Do(func() error { return Serve(c.args, strings.NewReader(c.stdin), &out) })
			if err == nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("got %v and %q, want %q", err, out.String(), c.want)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p := newPair(b)
		for i := range 2 {
			p.dev[i].Close()
			p.ns[i].Close()
		}
	}
}

func BenchmarkTCP(b *testing.B) {
	p := newPair(b)
	var l net.Listener
	labtest.In(b, p.ns[1], func() (err error) { l, err = net.Listen("tcp", "10.1.0.2:5201"); return err })
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		sink := make([]byte, 1<<20)
		for err == nil {
			_, err = conn.Read(sink)
		}
		conn.Close()
	}()
	var conn net.Conn
	labtest.In(b, p.ns[0], func() (err error) { conn, err = net.Dial("tcp", "10.1.0.2:5201"); return err })
	buf := make([]byte, 128<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := conn.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	conn.Close()
	<-done
}

// TestDeviceOfARouterIsQuiet checks that a device of a node that forwards sends no packets of its own, which the
// datapath check would count.
func TestDeviceOfARouterIsQuiet(t *testing.T) {
	ns := labtest.NewNS(t)
	labtest.In(t, ns, func() error {
		for _, name := range []string{"all.forwarding", "default.forwarding", "default.addr_gen_mode"} {
			if err := netns.WriteSysctl("net.ipv6.conf."+name, "1"); err != nil {
				return err
			}
		}
		c, err := netns.OpenConn()
		if err != nil {
			return err
		}
		defer c.Close()
		d, err := Add(c, "wg0", 1420)
		if err != nil {
			return err
		}
		t.Cleanup(func() { d.Close() })
		key, err := NewKey()
		if err := errors.Join(err, d.Configure(Config{Private: key, Port: lab.WireGuardPort})); err != nil {
			return err
		}
		if now, err := netns.ReadSysctl("net.ipv6.conf.default.forwarding"); err != nil || now != "1" {
			t.Errorf("the namespace's forwarding is %q now, %v", now, err)
		}
		return labtest.Address("wg0", "10.1.0.1/24")
	})
	time.Sleep(200 * time.Millisecond) // the kernel's first report comes at once
	if n := packets(t, ns); n != 0 {
		t.Errorf("the device has sent %d packets of its own", n)
	}
}
