package native

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// lossy returns a pair whose client reaches the server through a relay that drops one response in every, and a function
// that returns how many it has dropped.
func lossy(t *testing.T, every int) (host.Pair, func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	in, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); in.Close() })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := free.Addr().(*net.TCPAddr).AddrPort()
	free.Close()
	go relayTCP(l, server)
	r := &relay{in: in, server: net.UDPAddrFromAddrPort(server), every: every}
	go r.carry()
	p := pair(t, "127.0.0.1")
	p.Listen, p.Dial = server, at
	return p, func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.dropped }
}

// relayTCP forwards connections.
func relayTCP(l net.Listener, server netip.AddrPort) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := net.Dial("tcp", server.String())
			if err != nil {
				return
			}
			defer far.Close()
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			_, _ = io.Copy(near, far)
		}()
	}
}

// A relay forwards the datagrams of one client.
type relay struct {
	in     *net.UDPConn
	server *net.UDPAddr
	every  int

	mu      sync.Mutex
	dropped int
}

// carry forwards requests.
func (r *relay) carry() {
	var out *net.UDPConn
	b := make([]byte, 1<<16)
	for {
		n, client, err := r.in.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if out == nil {
			if out, err = net.DialUDP("udp", nil, r.server); err != nil {
				return
			}
			defer out.Close()
			go r.back(out, client)
		}
		_, _ = out.Write(b[:n])
	}
}

// back forwards answers, except for those that it drops.
func (r *relay) back(out *net.UDPConn, client netip.AddrPort) {
	b := make([]byte, 1<<16)
	for answers := 0; ; {
		n, err := out.Read(b)
		if err != nil {
			return
		}
		if n == 1 { // a response; openings of flows are longer
			answers++
		}
		if n == 1 && answers%r.every == 0 {
			r.mu.Lock()
			r.dropped++
			r.mu.Unlock()
			continue
		}
		_, _ = r.in.WriteToUDPAddrPort(b[:n], client)
	}
}

// TestLostRequests checks that lost datagrams show in the latency, and that too many make the run invalid.
func TestLostRequests(t *testing.T) {
	w := netload.Spec{Kind: netload.UDPRR, Duration: 2 * time.Second}
	for every, valid := range map[int]bool{3: false, 200: true} {
		p, dropped := lossy(t, every)
		w, err := w.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		m, err := do(t.Context(), New(), p, w)
		if err != nil {
			t.Fatal(err)
		}
		invalid, warnings := strings.Join(result.Texts(m.Invalid), "; "), strings.Join(result.Texts(m.Warnings), "; ")
		const said = "requests failed ("
		if strings.Contains(invalid, said) == valid || strings.Contains(warnings, said) != valid {
			t.Errorf("one in %d: invalid for %q, warned of %q", every, invalid, warnings)
		}
		if longest := number(t, m, "max"); longest < netload.DefaultUDPTimeout.Seconds() || dropped() == 0 {
			t.Errorf("one in %d: the longest of %d lost requests took %g s", every, dropped(), longest)
		}
		if p90 := quantileOf(t, m, 0.9); (p90 < 0.1) != valid {
			t.Errorf("one in %d: p90 is %g s", every, p90)
		}
		if loss := number(t, m, "loss"); loss < 0.5/float64(every) || loss > 2/float64(every) {
			t.Errorf("one in %d: the loss is %g", every, loss)
		}
	}
}
