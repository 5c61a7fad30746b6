package netload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"golang.org/x/sys/unix"
)

func resolved(t testing.TB, w Spec) Spec {
	t.Helper()
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A fakeServer speaks the handshake and responses as a test wants.
type fakeServer struct {
	token Token
	addr  netip.AddrPort
}

// newFakeServer starts a server that passes each connection of a flow to response.
func newFakeServer(t *testing.T, response func(net.Conn)) fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f := fakeServer{token: NewToken(), addr: l.Addr().(*net.TCPAddr).AddrPort()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(conn, response)
		}
	}()
	return f
}

func (f fakeServer) serve(conn net.Conn, response func(net.Conn)) {
	defer conn.Close()
	b := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, b); err != nil {
		return
	}
	h, err := parseHello(b)
	if err != nil || !h.Token.Equal(f.token) {
		return
	}
	if h.Purpose == flowPurpose {
		conn.Write(appendAck(nil, h.Flow))
	}
	if h.Purpose != controlPurpose {
		response(conn)
		return
	}
	l := newLink(conn)
	if l.send(message{Op: opWelcome}) != nil {
		return
	}
	for {
		m, err := l.receive()
		if err != nil || l.send(m) != nil {
			return
		}
	}
}

// TestStall checks that one stall of 500 ms shows in the 99th percentile of an open loop, and not in that of a closed
// loop, which is why results of closed loops are labelled.
func TestStall(t *testing.T) {
	const stall = 500 * time.Millisecond
	run := func(rate float64) *Histogram {
		var asked atomic.Int64
		f := newFakeServer(t, func(conn net.Conn) {
			start, stalled := time.Now(), false
			b := make([]byte, 1)
			for {
				if _, err := conn.Read(b); err != nil {
					return
				}
				if !stalled && time.Since(start) > time.Second {
					stalled = true
					time.Sleep(stall)
				}
				asked.Add(1)
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		})
		w := resolved(t, Spec{Kind: TCPRR, Rate: rate,
			Duration: 2500 * time.Millisecond, Warmup: 100 * time.Millisecond})
		r, err := Run(t.Context(), Config{Role: Client, Token: f.token, Addr: f.addr, Workload: w}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if done := r.Operations.Total(); done != uint64(asked.Load()) {
			t.Errorf("%d operations, the server answered %d", done, asked.Load())
		}
		h, err := DecodeHistogram(r.Latency)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	open := run(400)
	if n := open.Count(); n != 1000 {
		t.Errorf("an open loop of 400 per second had %d operations in 2.5 s", n)
	}
	// A fifth of the requests were planned during the stall, and waited evenly up to its length.
	if p99 := open.Quantile(0.99); p99 < 0.4 {
		t.Errorf("open loop: p99 is %g s", p99)
	}
	closed := run(0)
	if p99, worst := closed.Quantile(0.99), closed.Max(); p99 > 0.25 || worst < 0.49 {
		t.Errorf("closed loop: p99 is %g s, max %g s", p99, worst)
	}
}

// histograms returns the latencies of a report's answered requests, and the waiting times of the others.
func histograms(t *testing.T, r Report) (latency, waited *Histogram) {
	t.Helper()
	latency, err1 := DecodeHistogram(r.Latency)
	waited, err2 := DecodeHistogram(r.Waited)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return latency, waited
}

// TestNeverRecovers checks that requests that were scheduled or begun and never answered count with their waiting time.
func TestNeverRecovers(t *testing.T) {
	for rate, want := range map[float64]uint64{200: 100, 0: 1} {
		f := newFakeServer(t, func(conn net.Conn) {
			b := make([]byte, 1)
			for range 100 {
				if _, err := conn.Read(b); err != nil {
					return
				}
				conn.Write(b)
			}
			conn.Read(b)
			io.Copy(io.Discard, conn) // never responses again
		})
		w := resolved(t, Spec{Kind: TCPRR, Rate: rate, Duration: time.Second})
		r, err := Run(t.Context(), Config{Role: Client, Token: f.token, Addr: f.addr, Workload: w}, nil)
		if err != nil {
			t.Fatal(err)
		}
		latency, waited := histograms(t, r)
		if latency.Count() != 100 || r.Unfinished != want || waited.Count() != int64(want) {
			t.Errorf("rate %g: %d latencies, %d unfinished, %d waits; want 100, %d, %[5]d",
				rate, latency.Count(), r.Unfinished, waited.Count(), want)
		}
		if least := overtime.Seconds(); waited.Min() < least*0.999 {
			t.Errorf("rate %g: waited for %g s and more, where %g s are the least", rate, waited.Min(), least)
		}
	}
}

// TestFailedCycles checks that a cycle reset by the server is counted as lost with its time, and has no latency.
func TestFailedCycles(t *testing.T) {
	const delay = 20 * time.Millisecond
	var asked, reset atomic.Int64
	f := newFakeServer(t, func(conn net.Conn) {
		b := make([]byte, 1)
		if _, err := conn.Read(b); err != nil {
			return
		}
		if asked.Add(1)%10 == 0 {
			reset.Add(1)
			time.Sleep(delay)
			_ = conn.(*net.TCPConn).SetLinger(0)
			return
		}
		conn.Write(b)
	})
	w := resolved(t, Spec{Kind: TCPCRR, Duration: time.Second})
	r, err := Run(t.Context(), Config{Role: Client, Token: f.token, Addr: f.addr, Workload: w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	latency, waited := histograms(t, r)
	// The client waits for a cycle that is under way when the window ends.
	if r.Lost != uint64(reset.Load()) || r.Lost == 0 || waited.Count() != int64(r.Lost) ||
		waited.Min() < delay.Seconds()*0.999 {
		t.Errorf("%d lost of %d reset, %d waits from %g s on", r.Lost, reset.Load(), waited.Count(), waited.Min())
	}
	got := uint64(latency.Count()) + r.Lost
	if got != uint64(asked.Load()) || !strings.Contains(r.Failure, "connection reset") {
		t.Errorf("%d of %d cycles are counted; %q", got, asked.Load(), r.Failure)
	}
}

// TestLostAnswers checks that lost responses, one in ten, are counted and that the run continues. On a busy machine
// responses that are not lost may be late, too; they count as lost.
func TestLostAnswers(t *testing.T) {
	f := newFakeServer(t, func(net.Conn) {})
	pc, err := net.ListenPacket("udp", f.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	var asked, dropped atomic.Int64
	served := make(chan struct{})
	go func() {
		defer close(served)
		b := make([]byte, 100)
		for {
			k, peer, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			if h, err := parseHello(b[:k]); err == nil {
				pc.WriteTo(appendAck(nil, h.Flow), peer)
				continue
			}
			if asked.Add(1)%10 == 0 {
				dropped.Add(1)
				continue
			}
			pc.WriteTo(b[:k], peer)
		}
	}()
	w := resolved(t, Spec{Kind: UDPRR, Duration: time.Second, Timeout: 50 * time.Millisecond})
	r, err := Run(t.Context(), Config{Role: Client, Token: f.token, Addr: f.addr, Workload: w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pc.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // The last request may not have been read yet.
	<-served
	latency, waited := histograms(t, r)
	if int64(r.Lost) < dropped.Load() || dropped.Load() == 0 || waited.Count() != int64(r.Lost) ||
		waited.Min() < w.Timeout.Seconds()*0.999 {
		t.Errorf("%d lost of %d dropped, %d waits from %g s on", r.Lost, dropped.Load(), waited.Count(), waited.Min())
	}
	if got := latency.Count() + int64(r.Lost); got != asked.Load() {
		t.Errorf("%d of %d requests are counted", got, asked.Load())
	}
}

// startServer starts a real server and returns its address and a channel with its result.
func startServer(t *testing.T, ctx context.Context, c Config) (netip.AddrPort, <-chan serverResult) {
	t.Helper()
	c.Role, c.Addr = Server, netip.MustParseAddrPort("127.0.0.1:0")
	at, out := make(chan netip.AddrPort, 1), make(chan serverResult, 1)
	go func() {
		r, err := Run(ctx, c, func(a netip.AddrPort) { at <- a })
		out <- serverResult{r, err}
	}()
	select {
	case a := <-at:
		return a, out
	case o := <-out:
		t.Fatalf("server: %v", o.err)
	}
	return netip.AddrPort{}, nil
}

type serverResult struct {
	report Report
	err    error
}

// TestStrangers checks that connections without the token get no byte, are counted, and do not disturb the run.
func TestStrangers(t *testing.T) {
	for _, kind := range []Kind{TCPRR, UDPRR, TCPCRR} {
		t.Run(string(kind), func(t *testing.T) {
			c := Config{Token: NewToken(), Workload: resolved(t, Spec{Kind: kind, Duration: 300 * time.Millisecond})}
			addr, out := startServer(t, t.Context(), c)
			openings := [][]byte{
				[]byte("GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"),
				hello{Purpose: controlPurpose, Token: NewToken()}.append(nil),
				hello{Purpose: flowPurpose, Token: NewToken()}.append(nil),
			}
			for _, b := range openings {
				stranger(t, addr, b)
			}
			want := uint64(len(openings))
			if kind.UDP() {
				strangerUDP(t, addr, openings[2])
				want++
			}
			c.Role, c.Addr = Client, addr
			r, err := Run(t.Context(), c, nil)
			if err != nil || r.Operations.Window == 0 {
				t.Fatalf("client: %v, %+v", err, r.Operations)
			}
			o := <-out
			if o.err != nil || o.report.Refused != want {
				t.Errorf("server: %v, refused %d, want %d", o.err, o.report.Refused, want)
			}
		})
	}
}

func stranger(t *testing.T, addr netip.AddrPort, opening []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(opening)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stranger got %d bytes, %v", n, err)
	}
}

func strangerUDP(t *testing.T, addr netip.AddrPort, opening []byte) {
	t.Helper()
	conn, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(opening)
	conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a stranger got %d bytes by UDP, %v", n, err)
	}
}

// TestScanner checks that connections that send nothing, too little, or something else disturb no run, neither before
// it nor during it, and that none of them outlives it.
func TestScanner(t *testing.T) {
	says := map[string]func(net.Conn){
		"silent":  func(net.Conn) {},
		"rubbish": func(c net.Conn) { _, _ = c.Write(make([]byte, 4*helloSize)) },
		"slow": func(c net.Conn) {
			for {
				if _, err := c.Write([]byte(helloMagic[:1])); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	}
	for _, kind := range []Kind{TCPCRR, TCPRR, TCPStream} {
		for name, say := range says {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				w := Spec{Kind: kind, Flows: 2, Duration: 500 * time.Millisecond}
				c := Config{Token: NewToken(), Workload: resolved(t, w)}
				addr, out := startServer(t, t.Context(), c)
				scanned := scan(t, addr, say, out)
				c.Role, c.Addr = Client, addr
				r, err := Run(t.Context(), c, nil)
				if err != nil || r.Operations.Window+r.Sent.Window == 0 || r.Lost+r.Unfinished > 0 {
					t.Errorf("client: %v, %+v, %d lost, %d unfinished", err, r.Operations, r.Lost, r.Unfinished)
				}
				if o := <-scanned; o.err != nil || o.report.Refused == 0 {
					t.Errorf("server: %v, refused %d", o.err, o.report.Refused)
				}
			})
		}
	}
}

// scan opens more connections than may wait, and continues until out reports that the server ended. It passes the
// server's result on once the server has closed all of the connections.
func scan(t *testing.T, addr netip.AddrPort, say func(net.Conn), out <-chan serverResult) <-chan serverResult {
	t.Helper()
	var conns []net.Conn
	open := func() bool {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			return false
		}
		go say(conn)
		conns = append(conns, conn)
		return true
	}
	for range 2 * agent.AdmissionCapacity {
		if !open() {
			t.Fatal("nobody listens")
		}
	}
	ended := make(chan serverResult, 1)
	go func() {
		var o serverResult
		for going := true; going; {
			select {
			case o = <-out:
				going = false
			case <-time.After(10 * time.Millisecond):
				open()
			}
		}
		for _, conn := range conns {
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection outlives the run")
			}
			conn.Close()
		}
		ended <- o
	}()
	return ended
}

// TestLateOpening checks that a cycle of the run is served too if it opens slowly and its request comes in pieces.
func TestLateOpening(t *testing.T) {
	w := Spec{Kind: TCPCRR, Request: 1000, Response: 3, Duration: time.Second}
	c := Config{Token: NewToken(), Workload: resolved(t, w)}
	addr, out := startServer(t, t.Context(), c)
	said := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() { said <- slowCycle(addr, c.Token) })
	c.Role, c.Addr = Client, addr
	r, err := Run(t.Context(), c, nil)
	if late := <-said; err != nil || late != nil {
		t.Fatalf("client: %v, a slow one: %v", err, late)
	}
	o := <-out
	if done := r.Operations.Total(); o.err != nil || o.report.Answered != done+1 || o.report.Refused > 0 {
		t.Errorf("server: %v, %d answered, %d refused, %d done", o.err, o.report.Answered, o.report.Refused, done)
	}
}

// slowCycle runs a cycle whose opening and request are sent in pieces.
func slowCycle(addr netip.AddrPort, token Token) error {
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	all := append(hello{Purpose: cyclePurpose, Token: token}.append(nil), make([]byte, 1000)...)
	for _, part := range [][]byte{all[:5], all[5:100], all[100:]} {
		time.Sleep(20 * time.Millisecond)
		if _, err := conn.Write(part); err != nil {
			return err
		}
	}
	if response, err := io.ReadAll(conn); err != nil || len(response) != 3 {
		return fmt.Errorf("%d bytes, %v", len(response), err)
	}
	return nil
}

// TestClientGone checks that a server ends when its client does.
func TestClientGone(t *testing.T) {
	c := Config{Token: NewToken(), Workload: resolved(t, Spec{Kind: TCPRR, Duration: time.Hour})}
	addr, out := startServer(t, t.Context(), c)
	ctx, cancel := context.WithCancel(t.Context())
	c.Role, c.Addr = Client, addr
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := Run(ctx, c, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if o := <-out; o.err == nil || !strings.Contains(o.err.Error(), "client went away") {
		t.Errorf("server: %v", o.err)
	}
}

// TestCancelled checks that both sides of every workload stop when their contexts are cancelled.
func TestCancelled(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			w := resolved(t, Spec{Kind: kind, Duration: time.Hour})
			if kind.Datagrams() {
				w.Size = 100
			}
			c := Config{Token: NewToken(), Workload: w}
			ctx, cancel := context.WithCancel(t.Context())
			ofServer, cancelServer := context.WithCancel(t.Context())
			addr, out := startServer(t, ofServer, c)
			c.Role, c.Addr = Client, addr
			// The client first: otherwise its error could be about the lost server.
			time.AfterFunc(100*time.Millisecond, func() { cancel(); cancelServer() })
			if _, err := Run(ctx, c, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("client: %v", err)
			}
			if o := <-out; o.err == nil {
				t.Error("the server has a report")
			}
		})
	}
}

// TestNotAServer checks the error for a listener that is not the run's server.
func TestNotAServer(t *testing.T) {
	f := newFakeServer(t, nil)
	w := resolved(t, Spec{Kind: TCPRR, Duration: time.Second})
	_, err := Run(t.Context(), Config{Role: Client, Token: NewToken(), Addr: f.addr, Workload: w}, nil)
	if err == nil || !strings.Contains(err.Error(), "not this run's server") ||
		!strings.Contains(err.Error(), f.addr.String()) {
		t.Errorf("error is %v", err)
	}
}

// TestProxyBeforeServer checks that a client waits for a server behind a proxy, which accepts connections before the
// server listens and then closes them.
func TestProxyBeforeServer(t *testing.T) {
	proxy, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	c := Config{Token: NewToken(), Workload: resolved(t, Spec{Kind: TCPRR, Duration: 100 * time.Millisecond})}
	server, out := startServer(t, t.Context(), c)
	go func() {
		for i := 0; ; i++ {
			conn, err := proxy.AcceptTCP()
			if err != nil {
				return
			}
			if i < 3 {
				conn.SetLinger(0)
				conn.Close()
				continue
			}
			to, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(server))
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(to, conn); to.Close() }()
			go func() { _, _ = io.Copy(conn, to); conn.Close() }()
		}
	}()
	c.Role, c.Addr = Client, proxy.Addr().(*net.TCPAddr).AddrPort()
	if _, err := Run(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
	if o := <-out; o.err != nil {
		t.Error(o.err)
	}
}

// newTestWorker returns a worker without a run, whose methods a test calls one by one.
func newTestWorker(t *testing.T, w Spec, f flow, role Role) *worker {
	c := Config{Role: role, Token: NewToken(), Workload: resolved(t, w)}
	s := newShared(c)
	s.clock.base = time.Now()
	worker := newWorker(s, f, c)
	if worker.late == nil {
		worker.late = NewHistogram()
	}
	return worker
}

// streamPair returns the two ends of a connection.
func streamPair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

// TestNoAllocations checks that the functions of the hot loops allocate nothing.
func TestNoAllocations(t *testing.T) {
	none := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
	long := Spec{Kind: TCPRR, Duration: time.Hour}
	rr := newTestWorker(t, long, flow{Work: workRequest}, Client)
	buf := rr.buffers()
	here, there := streamPair(t)
	rr.fd = here
	none("one exchange", func() {
		unix.Write(there, buf.request)
		now := rr.clock.now()
		if rr.exchangeTCP(buf) != done {
			t.Fatal("no response")
		}
		rr.record(done, now, now+1000)
		rr.tick(now)
		_, _ = receive(there, buf.scratch)
	})
	none("waiting", func() { now := rr.clock.now(); rr.waitUntil(now+1000, now) })
	none("lateness", func() { rr.late.Record(5) })
	meter := NewMeter(rr.timeline)
	none("the meter", func() { meter.Add(1, 1) })
	s := newSequence(rr.timeline)
	n := uint64(0)
	none("the sequence", func() { s.Observe(n, int64(n), int64(n)); n += 3 })
	p := NewPacer(1000, 1, 3)
	none("the pacer", func() { p.Due(int64(n), n) })
	allocationsOfCycles(t)
	for _, offload := range []bool{false, true} {
		allocationsOfPackets(t, none, offload)
	}
}

func allocationsOfCycles(t *testing.T) {
	f := flow{Work: workCycle}
	client := newTestWorker(t, Spec{Kind: TCPCRR, Duration: time.Hour}, f, Client)
	server := newTestWorker(t, Spec{Kind: TCPCRR, Duration: time.Hour}, f, Server)
	server.shared = client.shared // the same token
	fd, addr, err := listenTCP(netip.MustParseAddrPort("127.0.0.1:0"), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	server.fd = fd
	server.handOver = func(fd int, _ []byte) { unix.Close(fd) }
	client.cycle = newCycler(addr, hello{Purpose: cyclePurpose, Token: client.token}, 1)
	ended := make(chan struct{})
	go func() { server.serveCycles(); close(ended) }()
	buf := client.buffers()
	// Not AllocsPerRun, because both sides need a processor at once. ReadMemStats stops the world, for which the server
	// must return from the kernel now and then.
	if err := setTimeouts(fd, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const cycles = 100
	for range cycles {
		if client.exchangeCycle(buf) != done {
			t.Fatal(client.failure)
		}
	}
	runtime.ReadMemStats(&after)
	// The runtime's own threads allocate a little at any time.
	if n := after.Mallocs - before.Mallocs; n > cycles/10 {
		t.Errorf("%d cycles allocated %d times", cycles, n)
	}
	unix.Shutdown(fd, unix.SHUT_RDWR)
	<-ended
	if server.answered != cycles || server.refused != 0 {
		t.Errorf("%d answered, %d refused", server.answered, server.refused)
	}
}

func allocationsOfPackets(t *testing.T, none func(string, func()), offload bool) {
	in, err := bindUDP(netip.MustParseAddrPort("127.0.0.1:0"), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(in)
	out, err := openSocket(netip.MustParseAddr("127.0.0.1"), unix.SOCK_DGRAM)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(out)
	sa, err := unix.Getsockname(in)
	if err == nil {
		err = unix.Connect(out, sa)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Kind: UDPStream, Size: 100, Rate: 1e6, Duration: time.Hour, Offload: offload}
	f := flow{Work: workPackets, Sender: Client}
	sender, receiver := newTestWorker(t, spec, f, Client), newTestWorker(t, spec, f, Server)
	sender.fd, receiver.fd = out, in
	for _, w := range []*worker{sender, receiver} {
		if err := teamOf(w).prepare(w); err != nil {
			t.Fatal(err)
		}
	}
	none("sending and counting datagrams", func() {
		if n, e := sender.sendBatch(batch, 1); n != batch || e != 0 {
			t.Fatalf("%d sent, %v", n, e)
		}
		for had := receiver.sequence.Received; receiver.sequence.Received < had+batch; {
			r, e := receiver.receiveBatch()
			if e != 0 || !receiver.countMessages(r, 1) {
				t.Fatal(e)
			}
		}
	})
	if s := receiver.sequence; s.Received != 101*batch || s.Gaps() != 0 || s.Reordered != 0 || receiver.refused != 0 {
		t.Errorf("received %d, gaps %d, reordered %d, refused %d", s.Received, s.Gaps(), s.Reordered, receiver.refused)
	}
}

func teamOf(w *worker) *team {
	return newTeam(Config{Role: w.role, Token: w.token, Workload: w.spec})
}

// TestControlMessagesAreBounded checks that the connection of a peer that never ends its message fails.
func TestControlMessagesAreBounded(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		there.Write([]byte(`{"op":"`))
		for junk := bytes.Repeat([]byte("x"), 4096); ; {
			if _, err := there.Write(junk); err != nil {
				return
			}
		}
	}()
	if _, err := newLink(here).receive(); err == nil {
		t.Error("no error")
	}
}

// TestBuffers checks that sockets of both sides have the buffers that the workload names, and that a host that grants
// less is an error.
func TestBuffers(t *testing.T) {
	const size = 96 << 10
	w := Spec{Kind: TCPStream, Buffer: size}
	check := func(what string, fd int) {
		t.Helper()
		for _, o := range bufferOptions {
			if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.plain); err != nil || got != 2*size {
				t.Errorf("%s: the buffer under %s has %d bytes, %v; want 2 x %d", what, o.limit, got, err, size)
			}
		}
	}
	listener, addr, err := listenTCP(netip.MustParseAddrPort("127.0.0.1:0"), w)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	client, err := openSocket(addr.Addr(), unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(client)
	if err := errors.Join(tuneTCP(client, w), unix.Connect(client, sockaddr(addr))); err != nil {
		t.Fatal(err)
	}
	server, _, err := unix.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	check("client", client)
	check("server", server)

	datagrams, err := bindUDP(netip.MustParseAddrPort("127.0.0.1:0"), w)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(datagrams)
	check("datagrams", datagrams)

	w.Buffer = 1 << 30 // more than any host may grant
	if err := tuneTCP(client, w); err == nil || !strings.Contains(err.Error(), "net.core.rmem_max") {
		t.Errorf("a buffer that no host grants gives %v", err)
	}
}

// TestShutDownBeforeAnswer checks that the end of a run between a datagram and its response is no failure.
func TestShutDownBeforeAnswer(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	server := newTestWorker(t, Spec{Kind: UDPRR, Request: 1, Response: 1, Duration: time.Hour}, flow{}, Server)
	server.fd = ends[0]
	if err := errors.Join(unix.Shutdown(ends[0], unix.SHUT_WR), unix.Send(ends[1], []byte{1}, 0)); err != nil {
		t.Fatal(err)
	}
	server.serveUDP()
	if server.failure.call != "" || server.answered != 0 {
		t.Errorf("%+v, %d answered", server.failure, server.answered)
	}
}
