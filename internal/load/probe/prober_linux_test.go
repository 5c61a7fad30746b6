package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// Arguments that make the test binary a responder or a prober, in a namespace of its own.
const (
	respondArgument = "response-probes"
	probeArgument   = "send-probes"
)

const (
	clientAddress, serverAddress = "10.0.0.1", "10.0.0.2"
	port                         = 7000
)

func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != respondArgument && os.Args[1] != probeArgument {
		os.Exit(m.Run())
	}
	if err := runSide(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runSide reads a Config and runs one side: the responder until it is killed, the prober for as long as c.Most.
func runSide(side string) error {
	var c Config
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return err
	}
	ctx := context.Background()
	if side == respondArgument {
		return Respond(ctx, c.To.String(), c.Token.Hash(), func(netip.AddrPort) { fmt.Println("ready") })
	}
	p, err := Start(ctx, c)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	time.Sleep(c.MaxDuration)
	return json.NewEncoder(os.Stdout).Encode(p.Stop(0))
}

// startSide starts a side in a namespace, waits until it is ready and returns it with its output.
func startSide(t *testing.T, ns *netns.NS, what string, c Config) (*exec.Cmd, io.Reader) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], what)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	labtest.In(t, ns, cmd.Start)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatalf("%s does not begin: %v", what, err)
	}
	return cmd, out
}

// pair returns two namespaces connected by a veth pair.
func pair(t *testing.T) (client, server *netns.NS) {
	t.Helper()
	client, server = labtest.NewNS(t), labtest.NewNS(t)
	labtest.In(t, client, func() error {
		return netns.With(func(c *netns.Conn) error {
			return c.AddVeth(netns.Link{Name: "wire"}, netns.Link{Name: "wire", NS: server.Fd()})
		})
	})
	for ns, address := range map[*netns.NS]string{client: clientAddress, server: serverAddress} {
		labtest.In(t, ns, func() error { return labtest.Address("wire", address+"/24") })
	}
	return client, server
}

// A run is a connection under probes from a process in the client's namespace.
type run struct {
	client, server *netns.NS
	prober         *exec.Cmd
}

// traces returns the traces of a connection that was probed for most while do changed it.
func traces(t *testing.T, most time.Duration, do func(run)) map[Kind]Trace {
	t.Helper()
	client, server := pair(t)
	c := Config{To: netip.MustParseAddrPort(fmt.Sprintf("%s:%d", serverAddress, port)), Token: NewToken(),
		Interval: time.Millisecond, MaxDuration: most}
	_, _ = startSide(t, server, respondArgument, c)
	prober, out := startSide(t, client, probeArgument, c)
	do(run{client: client, server: server, prober: prober})
	var all []Trace
	if err := json.NewDecoder(out).Decode(&all); err != nil {
		t.Fatal(err)
	}
	by := map[Kind]Trace{}
	for _, trace := range all {
		by[trace.Kind] = trace
	}
	return by
}

// TestAccuracyLinkDown checks that a link that is down for two seconds is measured as that, and that TCP's
// retransmissions count as late and not as lost. The true duration is known to within the time that it takes to set the
// link down and up: on a quiet machine a window of 2.000 s in less than 2.001 s. Delays of the machine, late probes and
// slow responses, are in the trace.
func TestAccuracyLinkDown(t *testing.T) {
	const most = 9 * time.Second // TCP retransmits about 6.2 s after the begin of an outage of more than 3 s
	var least, greatest time.Duration
	by := traces(t, most, func(r run) {
		neighbours(t, r.server, clientAddress, r.client)
		time.Sleep(time.Second)
		before := time.Now()
		withLinks(t, r.client, func(c *netns.Conn) error { return c.Down("wire") })
		after := time.Now()
		time.Sleep(2*time.Second - time.Since(before))
		least = time.Since(after)
		withLinks(t, r.client, func(c *netns.Conn) error { return c.Up("wire") })
		neighbours(t, r.client, serverAddress, r.server)
		for _, ns := range []*netns.NS{r.client, r.server} { // the kernel may take a second to notice the carrier
			withLinks(t, ns, waitCarrier)
		}
		greatest = time.Since(before)
	})
	// At begin the connection is open, and what TCP has sent until sure is answered before the end.
	const begin, sure, end = int64(time.Second / 2), int64(most - 4*time.Second), int64(most)
	udp := by[UDP].Loss(begin, sure)
	step := 2*time.Millisecond + time.Duration(by[UDP].Lateness(0, end, 1))
	slowest := time.Duration(udp.Slowest)
	t.Logf("down for %v to %v: a window of %v; latest probe %v, slowest response %v", least, greatest,
		time.Duration(udp.Window()), step, slowest)
	for _, got := range []time.Duration{time.Duration(udp.Window()), time.Duration(udp.Longest)} {
		if got < least-step || got > greatest+step+slowest {
			t.Errorf("down for %v to %v: %+v", least, greatest, udp)
		}
	}
	if l := by[TCP].Loss(begin, sure); l.Broken != 0 || l.Lost > 0 || l.Late < 1000 || l.Gap < int64(least) {
		t.Errorf("on an open connection: %+v", l)
	}
	if l := by[TCPNew].Loss(begin, sure); l.Gap < int64(least) {
		t.Errorf("of new connections: %+v", l)
	}
}

// TestAccuracyPace checks that at 1 kHz of three kinds at once every probe is sent and answered, and that a stopped
// prober reports how late it was.
func TestAccuracyPace(t *testing.T) {
	const most, stopped = 4 * time.Second, 300 * time.Millisecond
	by := traces(t, most, func(r run) {
		time.Sleep(most / 2)
		if err := r.prober.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stopped)
		if err := r.prober.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	})
	for kind, trace := range by {
		const begin, before, end = int64(most / 8), int64(most / 4), int64(most)
		l := trace.Loss(begin, before)
		t.Logf("%s: %+v, lateness p50 %v, p99 %v", kind, l, time.Duration(trace.Lateness(begin, before, 0.5)),
			time.Duration(trace.Lateness(begin, before, 0.99)))
		if l.Sent == 0 || l.Lost != 0 || l.Broken != 0 || slices.Contains(trace.Sent[:len(trace.Sent)/2], 0) {
			t.Errorf("%s: %+v", kind, l)
		}
		if late := time.Duration(trace.Lateness(0, end, 1)); late < stopped*9/10 {
			t.Errorf("%s: a prober that was stopped for %v was late by %v", kind, stopped, late)
		}
	}
}

// withLinks calls do for the links of a namespace.
func withLinks(t *testing.T, ns *netns.NS, do func(c *netns.Conn) error) {
	t.Helper()
	labtest.In(t, ns, func() error { return netns.With(do) })
}

// waitCarrier waits until the links of a namespace have a carrier.
func waitCarrier(c *netns.Conn) error {
	for {
		if is, err := c.Ready(); is || err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// neighbours adds the other namespace's address to the neighbour table, so that no resolution is needed.
func neighbours(t *testing.T, ns *netns.NS, address string, other *netns.NS) {
	t.Helper()
	var mac net.HardwareAddr
	withLinks(t, other, func(c *netns.Conn) error {
		device, err := c.Device("wire")
		mac = device.MAC
		return err
	})
	withLinks(t, ns, func(c *netns.Conn) error { return c.AddNeighbour("wire", netip.MustParseAddr(address), mac) })
}

// TestStranger checks that a client without the token gets no response, and that a responder ends with its context.
func TestStranger(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan netip.AddrPort, 1)
	token := NewToken()
	go func() {
		ended <- Respond(ctx, "127.0.0.1:0", token.Hash(), func(at netip.AddrPort) { ready <- at })
	}()
	at := <-ready
	for _, network := range []string{"udp", "tcp"} {
		for text, wants := range map[string]int{string(token.datagram(nil, 1)): numberSize,
			string(NewToken().datagram(nil, 1)): 0} {
			conn, err := net.Dial(network, at.String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = conn.Write([]byte(text))
			timeout := 200 * time.Millisecond
			if wants > 0 {
				timeout = time.Minute
			}
			_ = conn.SetReadDeadline(time.Now().Add(timeout))
			n, _ := conn.Read(make([]byte, 100))
			if network == "udp" && wants > 0 {
				wants = datagramSize
			}
			if n != wants {
				t.Errorf("%s: %d bytes came back, not %d", network, n, wants)
			}
			conn.Close()
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestEnd checks that End ends a responder only with the right token.
func TestEnd(t *testing.T) {
	token := NewToken()
	ended, ready := make(chan error, 1), make(chan netip.AddrPort, 1)
	go func() {
		ended <- Respond(t.Context(), "127.0.0.1:0", token.Hash(),
			func(at netip.AddrPort) { ready <- at })
	}()
	at := <-ready
	if err := End(t.Context(), at, NewToken()); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Fatal("it ended for another token")
	case <-time.After(100 * time.Millisecond):
	}
	if err := End(t.Context(), at, token); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAnnounce checks that announcements are recorded, once if they are answered and repeatedly if not.
func TestAnnounce(t *testing.T) {
	hash := NewToken().Hash()
	for _, silent := range []bool{false, true} {
		l, err := Listen(t.Context(), netip.MustParseAddr("127.0.0.1"), hash, silent)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := Announce(ctx, l.Addr(), NewToken().Hash()); err != nil || len(l.Heard()) > 0 {
			t.Errorf("of another run: %v, %v", l.Heard(), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		if silent {
			go func() {
				for len(l.Heard()) < 2 {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		if err := Announce(ctx, l.Addr(), hash); err != nil || !silent && len(l.Heard()) != 1 {
			t.Errorf("silent %v: heard %d, %v", silent, len(l.Heard()), err)
		}
	}
}
