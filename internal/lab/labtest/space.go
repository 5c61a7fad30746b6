//go:build linux

package labtest

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// NewNS returns a network namespace that is closed at the end of the test. Without root the test is skipped.
func NewNS(t testing.TB) *netns.NS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces outside of a user namespace need root")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// In runs f in a namespace. An error fails the test.
func In(t testing.TB, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

// Address adds an address with a prefix length to a device of the calling thread's namespace, and sets the device up.
func Address(device, address string) error {
	prefix, err := netip.ParsePrefix(address)
	if err != nil {
		return err
	}
	return netns.With(func(c *netns.Conn) error { return errors.Join(c.AddAddr(device, prefix), c.Up(device)) })
}

// Transfer sends n bytes over TCP from one namespace to an address in another, and compares what arrives.
func Transfer(t testing.TB, from, to *netns.NS, address string, n int) {
	t.Helper()
	var l net.Listener
	In(t, to, func() (err error) { l, err = net.Listen("tcp", address); return err })
	defer l.Close()
	sent := make([]byte, n)
	rand.Read(sent)
	received := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			received <- nil
			return
		}
		defer conn.Close()
		got, _ := io.ReadAll(conn)
		received <- got
	}()
	var conn net.Conn
	In(t, from, func() (err error) { conn, err = net.DialTimeout("tcp", address, 5*time.Second); return err })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Write(sent); err != nil {
		t.Error(err)
	}
	conn.Close()
	if !bytes.Equal(<-received, sent) {
		t.Errorf("to %s: what arrived is not what was sent", address)
	}
}

// A Tap captures all packets that a device sends and receives.
type Tap struct{ fd int }

// tapBuffer holds the packets between two calls of Packets, in bytes.
const tapBuffer = 64 << 20

// NewTap captures on a device of a namespace until the end of the test.
func NewTap(t testing.TB, ns *netns.NS, device string) *Tap {
	t.Helper()
	tap := &Tap{}
	In(t, ns, func() error {
		l, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
		if tap.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(tap.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
			unix.Bind(tap.fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: l.Index}))
	})
	t.Cleanup(func() { unix.Close(tap.fd) })
	return tap
}

// Packets returns the packets since the last call, each from its Ethernet header on.
func (tap *Tap) Packets() [][]byte {
	var all [][]byte
	buf := make([]byte, 1<<17)
	for {
		n, _, err := unix.Recvfrom(tap.fd, buf, unix.MSG_DONTWAIT)
		if err != nil {
			return all
		}
		all = append(all, bytes.Clone(buf[:n]))
	}
}
