//go:build linux

// Package meshtest makes the kernel redirect the TCP connections of network namespaces to proxies of a test, as meshes
// do it in pods.
package meshtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// Ports and the mark of ztunnel. Packets with the mark, which proxies send, are not redirected.
const (
	outboundPort  = 15001
	plaintextPort = 15006
	// TunnelPort is where a proxy takes connections of other proxies (HBONE).
	TunnelPort = 15008
	proxyMark  = 0x539
)

// RedirectClient redirects the connections from a namespace to a proxy there, until the test ends. The proxy connects
// to next and scrambles by a key what it passes on; 0 is plain text.
func RedirectClient(t testing.TB, ns *netns.NS, next netip.AddrPort, key byte) {
	t.Helper()
	labtest.In(t, ns, func() error { return redirect(nftables.ChainHookOutput, outboundPort) })
	startProxy(t, ns, outboundPort, next, key)
}

// RedirectServer redirects the connections to a namespace to a proxy there, until the test ends, except for those to
// its TunnelPort. The proxy passes what arrives at either port to the server, and undoes the key of RedirectClient.
func RedirectServer(t testing.TB, ns *netns.NS, server netip.AddrPort, key byte) {
	t.Helper()
	labtest.In(t, ns, func() error { return redirect(nftables.ChainHookPrerouting, plaintextPort) })
	startProxy(t, ns, plaintextPort, server, key)
	startProxy(t, ns, TunnelPort, server, key)
}

// redirect redirects the TCP connections of a hook of the thread's network namespace to a port.
func redirect(hook *nftables.ChainHook, port uint16) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "mesh"})
	chain := conn.AddChain(&nftables.Chain{Name: fmt.Sprint("to-", port), Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: hook, Priority: nftables.ChainPriorityNATDest})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(proxyMark)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.BigEndian.PutUint16(TunnelPort)},
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Redir{RegisterProtoMin: 1},
	}})
	return conn.Flush()
}

// A scrambled reader changes each byte, as a cipher would; a second one with the same key restores it.
type scrambled struct {
	io.Reader
	key byte
}

func (s scrambled) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	for i := range b[:n] {
		b[i] ^= s.key
	}
	return n, err
}

// startProxy accepts connections at a port of a namespace until the test ends, and passes each on to an address, by a
// connection from the same namespace.
func startProxy(t testing.TB, ns *netns.NS, port uint16, to netip.AddrPort, key byte) {
	t.Helper()
	var l net.Listener
	labtest.In(t, ns, func() (err error) { l, err = net.Listen("tcp4", fmt.Sprint(":", port)); return err })
	t.Cleanup(func() { l.Close() })
	mark := func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, proxyMark)
		})
		return errors.Join(controlErr, err)
	}
	relay := func(in net.Conn) {
		defer in.Close()
		var out net.Conn
		err := ns.Do(func() (err error) {
			out, err = (&net.Dialer{Control: mark, Timeout: 5 * time.Second}).Dial("tcp4", to.String())
			return err
		})
		if err != nil {
			return // the client tries again
		}
		defer out.Close()
		go func() {
			_, _ = io.Copy(out, scrambled{in, key})
			_ = out.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(in, scrambled{out, key})
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go relay(in)
		}
	}()
}
