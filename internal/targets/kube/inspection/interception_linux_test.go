package inspection

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// proxyMark is the mark of packets that a proxy sends, which are not redirected: ztunnel's.
const proxyMark = 0x539

// redirect redirects the TCP connections of a hook of the thread's network namespace to a port, without those of
// proxies and those to port 15008, as meshes do it in pods.
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
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.BigEndian.PutUint16(hbonePort)},
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

// proxy accepts connections at a port of a namespace until the test ends, and passes each on to an address, scrambled
// by a key, by a connection from the same namespace.
func proxy(t *testing.T, ns *netns.NS, port uint16, to string, key byte) {
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
			out, err = (&net.Dialer{Control: mark, Timeout: 5 * time.Second}).Dial("tcp4", to)
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

// TestInterceptInKernel makes two pods of network namespaces, redirects their connections in the kernel as meshes do,
// and checks the conclusion from what the agents of both pods report.
func TestInterceptInKernel(t *testing.T) {
	const server, tunnel = "10.0.0.2:5201", "10.0.0.2:15008"
	for name, test := range map[string]struct {
		mode               manifest.MeshMode
		onClient, onServer bool   // the namespace redirects to a proxy
		next               string // where the client's proxy connects to
		key                byte   // of what the proxies exchange; 0: plain text
		capture            bool
		want               Answer
		says               string
	}{
		"HBONE": {manifest.Ztunnel, true, true, tunnel, 0, false, Yes, "port 15008 is between them"},
		"HBONE, captured": {manifest.Ztunnel, true, true, tunnel, 0x55, true, Yes,
			"port 15008 is between them; nothing of it is readable in the "},
		"a tunnel without a cipher": {manifest.Ztunnel, true, true, tunnel, 0, true, No,
			"port 15008 is between them; but a capture in the client's pod has the traffic in plain text"},
		"plain text": {manifest.Ztunnel, true, true, server, 0, false, No, "in plain text"},
		"sidecars": {manifest.Sidecar, true, true, server, 0, false, Yes,
			"port 15001 of the client's and 15006 of the server's"},
		"sidecars, captured": {manifest.Sidecar, true, true, server, 0x55, true, Yes, "nothing of it is readable in the "},
		"sidecars without a cipher": {manifest.Sidecar, true, true, server, 0, true, No,
			"a capture in the client's pod has the traffic in plain text"},
		"client alone":    {manifest.Ambient, true, false, server, 0, false, No, "from no proxy in its pod"},
		"server alone":    {manifest.Ambient, false, true, server, 0, false, No, "no proxy in the client's pod"},
		"neither of them": {manifest.Ambient, false, false, server, 0, true, No, "the client's own end, and no proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := [2]*netns.NS{labtest.NewNS(t), labtest.NewNS(t)}
			labtest.In(t, pods[0], func() error {
				return netns.With(func(c *netns.Conn) error {
					return c.AddVeth(netns.Link{Name: "eth0"}, netns.Link{Name: "eth0", NS: pods[1].Fd()})
				})
			})
			for i, ns := range pods {
				labtest.In(t, ns, func() error {
					return errors.Join(labtest.Address("eth0", fmt.Sprintf("10.0.0.%d/24", i+1)),
						netns.With(func(c *netns.Conn) error { return c.Up("lo") }))
				})
			}
			if test.onClient {
				labtest.In(t, pods[0], func() error { return redirect(nftables.ChainHookOutput, 15001) })
				proxy(t, pods[0], 15001, test.next, test.key)
			}
			if test.onServer {
				labtest.In(t, pods[1], func() error { return redirect(nftables.ChainHookPrerouting, plaintextPort) })
				proxy(t, pods[1], plaintextPort, server, test.key)
				proxy(t, pods[1], hbonePort, server, test.key)
			}
			reports := connect(t, pods, netip.MustParseAddrPort(server), test.capture)
			got := Intercept(test.mode, reports[0], reports[1])
			if got.Intercepted != test.want || !strings.Contains(got.Evidence, test.says) {
				t.Errorf("%s; want %s, %q\nclient %+v\nserver %+v", got, test.want, test.says, reports[0], reports[1])
			}
			if mtu := min(reports[0].MTU, reports[1].MTU); mtu != 1500 {
				t.Errorf("the MTU is %d, that of the way to a proxy", mtu)
			}
		})
	}
}

// connect makes the agents of two pods connect, and returns the reports of the client and the server.
func connect(t *testing.T, pods [2]*netns.NS, server netip.AddrPort, capture bool) (reports [2]preflight.Report) {
	t.Helper()
	spec := preflight.Spec{Role: preflight.Client, Token: preflight.NewToken(), Address: server, Sockets: true,
		Capture: capture, Timeout: 20 * time.Second}
	specs := [2]preflight.Spec{spec, spec}
	specs[1].Role = preflight.Server
	var both sync.WaitGroup
	var errs [2]error
	for i := range pods {
		both.Go(func() {
			errs[i] = pods[i].Do(func() (err error) {
				reports[i], err = preflight.Run(t.Context(), specs[i], "test")
				return err
			})
		})
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil || reports[0].Error+reports[1].Error != "" {
		t.Fatalf("%v; client %s; server %s", err, reports[0].Error, reports[1].Error)
	}
	return reports
}
