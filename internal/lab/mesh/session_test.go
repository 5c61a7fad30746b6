package mesh

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must come. It is generous, since speed is not tested.
const patience = time.Minute

// listen returns a listener of this machine that ends with the test, and its address.
func listen(t testing.TB) (*net.TCPListener, netip.AddrPort) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).AddrPort()
}

// A tunnel is two proxies, and a server behind the second.
type tunnel struct {
	pool   *pool
	server *net.TCPListener
	to     netip.AddrPort
}

func newTunnel(t testing.TB) *tunnel {
	t.Helper()
	one, two := identities(t)
	client, _, err := one.tls()
	if err != nil {
		t.Fatal(err)
	}
	_, serverTLS, err := two.tls()
	if err != nil {
		t.Fatal(err)
	}
	server, to := listen(t)
	peers, at := listen(t)
	p := &proxy{node: Node{Serves: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, server: serverTLS}
	go func() {
		for {
			c, err := peers.AcceptTCP()
			if err != nil {
				return
			}
			go p.fromPeer(c)
		}
	}()
	pool := newPool(Peer{Name: "node2", Proxy: at}, netip.MustParseAddr("127.0.0.1"), client)
	t.Cleanup(func() {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		for _, s := range pool.sessions {
			go s.fail(errors.New("the test has ended"))
		}
	})
	return &tunnel{pool, server, to}
}

// connect returns both ends of a connection that goes through the tunnel: the client's, and the server's.
func (tn *tunnel) connect(t testing.TB) (client, server *net.TCPConn) {
	t.Helper()
	pods, at := listen(t)
	client, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	pod, err := pods.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	st, err := tn.pool.open(tn.to.String())
	if err != nil {
		t.Fatal(err)
	}
	go st.join(pod)
	if server, err = tn.server.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*net.TCPConn{client, server} {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	return client, server
}

// idle waits until no stream is open any more.
func (tn *tunnel) idle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		open := 0
		tn.pool.mu.Lock()
		for _, s := range tn.pool.sessions {
			s.mu.Lock()
			open += s.claimed + len(s.streams)
			s.mu.Unlock()
		}
		tn.pool.mu.Unlock()
		if open == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d streams are still open", open)
		}
	}
}

// TestHalfClose checks that each end may end its direction while the other goes on.
func TestHalfClose(t *testing.T) {
	tn := newTunnel(t)
	for name, first := range map[string]int{"client": 0, "server": 1} {
		client, server := tn.connect(t)
		ends := []*net.TCPConn{client, server}
		early, late := ends[first], ends[1-first]
		if _, err := early.Write([]byte("early")); err != nil {
			t.Fatal(err)
		}
		if err := early.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(late); err != nil || string(got) != "early" {
			t.Errorf("%s first: %q, %v", name, got, err)
		}
		if _, err := late.Write([]byte("late")); err != nil {
			t.Fatal(err)
		}
		if err := late.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(early); err != nil || string(got) != "late" {
			t.Errorf("%s first: %q, %v", name, got, err)
		}
	}
	tn.idle(t)
}

// TestStreamsBothWays checks that much more than the windows goes both ways at once on several streams unchanged, and
// that all use one connection.
func TestStreamsBothWays(t *testing.T) {
	tn := newTunnel(t)
	data := make([]byte, 3*streamWindow)
	rand.Read(data)
	var done sync.WaitGroup
	for range 4 {
		client, server := tn.connect(t)
		for _, c := range []*net.TCPConn{client, server} {
			done.Go(func() {
				_, err := c.Write(data)
				if err := errors.Join(err, c.CloseWrite()); err != nil {
					t.Error(err)
				}
			})
			done.Go(func() {
				if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes of %d arrived, %v", len(got), len(data), err)
				}
			})
		}
	}
	done.Wait()
	tn.idle(t)
	if n := len(tn.pool.sessions); n != 1 {
		t.Errorf("%d connections, not 1", n)
	}
}

// TestResets checks that a connection that is cut at one end is cut at the other.
func TestResets(t *testing.T) {
	tn := newTunnel(t)
	for name, first := range map[string]int{"client": 0, "server": 1} {
		client, server := tn.connect(t)
		ends := []*net.TCPConn{client, server}
		abort(ends[first])
		if _, err := ends[1-first].Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("cut by the %s: %v", name, err)
		}
	}
	tn.idle(t)
}

// TestBackpressure checks that an end that does not read stops the other, and no other stream.
func TestBackpressure(t *testing.T) {
	tn := newTunnel(t)
	client, _ := tn.connect(t)
	// Sockets buffer too, at most some megabytes each.
	const most = 64 << 20
	sent, quiet := 0, 500*time.Millisecond
	for buf := make([]byte, 1<<20); sent < most; {
		_ = client.SetWriteDeadline(time.Now().Add(quiet))
		n, err := client.Write(buf)
		sent += n
		if err != nil {
			break
		}
	}
	if sent >= most {
		t.Errorf("%d bytes were taken that nothing reads", sent)
	}
	other, server := tn.connect(t)
	go func() { _, _ = io.Copy(server, server) }()
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(other, make([]byte, 1)); err != nil {
		t.Errorf("another stream is stopped too: %v", err)
	}
}

// TestRefusals checks that a proxy responds with an error where it may not or cannot connect.
func TestRefusals(t *testing.T) {
	tn := newTunnel(t)
	for _, destination := range []string{"127.0.0.1:1", "192.0.2.1:80", "nonsense", ""} {
		st, err := tn.pool.open(destination)
		if err == nil {
			st.close()
		}
		if err == nil || !strings.Contains(err.Error(), strconv.Itoa(http.StatusBadGateway)) {
			t.Errorf("%q: %v", destination, err)
		}
	}
	tn.idle(t)
}

// TestMoreStreamsThanAConnectionHas checks that further connections are made, and that a connection that has ended is
// replaced.
func TestMoreStreamsThanAConnectionHas(t *testing.T) {
	tn := newTunnel(t)
	for i := range maxStreams + 1 {
		client, server := tn.connect(t)
		message := []byte(fmt.Sprint(i))
		if _, err := client.Write(message); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, message) {
			t.Fatalf("stream %d: %q, %v", i, got, err)
		}
	}
	tn.pool.mu.Lock()
	sessions := append([]*session(nil), tn.pool.sessions...)
	tn.pool.mu.Unlock()
	if len(sessions) != 2 {
		t.Errorf("%d connections for %d streams", len(sessions), maxStreams+1)
	}
	for _, s := range sessions {
		s.fail(errors.New("cut by the test"))
	}
	tn.connect(t)
}
