package mesh

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/userspace"
)

// Command is the hidden subcommand that runs [Serve].
const Command = "lab-hbone"

// dialTimeout is how long a proxy tries to reach a pod, or another proxy with the handshakes.
const dialTimeout = 5 * time.Second

// settings are what the holder writes to the standard input of an HBONE proxy.
type settings struct {
	Node                   Node
	Root, Certificate, Key []byte
}

// settingsText returns the settings of a node's proxy as text, with the key.
func settingsText(n Node, i Identity) (string, error) {
	text, err := json.Marshal(settings{n, i.root, i.certificate, i.key})
	return string(text), err
}

// Serve runs an HBONE proxy in the process's network namespace; it is the program of the child. It reads its settings
// from stdin, writes a line to stdout, ready or the error, and runs until stdin ends, at the latest with the parent.
func Serve(stdin io.Reader, stdout io.Writer) error {
	// Tools that list processes, and samples of the CPU's time, show this name.
	_ = os.WriteFile("/proc/self/comm", []byte("hbone-stand-in"), 0)
	var s settings
	err := json.NewDecoder(stdin).Decode(&s)
	if err == nil {
		err = start(s)
	}
	return userspace.Serve(err, stdin, stdout)
}

// A proxy carries the connections of a node's pods.
type proxy struct {
	node   Node
	server *tls.Config
	pools  []*pool // of the peers, in their order
}

// start listens for the node's pods and for other proxies.
func start(s settings) error {
	client, server, err := Identity{s.Root, s.Certificate, s.Key}.tls()
	if err != nil {
		return err
	}
	p := &proxy{node: s.Node, server: server}
	for _, peer := range s.Node.Peers {
		p.pools = append(p.pools, newPool(peer, s.Node.Listen.Addr(), client))
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		config := net.ListenConfig{Control: transparent, KeepAlive: -1}
		if err := serve(config, network, fmt.Sprintf(":%d", s.Node.Redirect), p.fromPod); err != nil {
			return err
		}
	}
	return serve(net.ListenConfig{KeepAlive: -1}, "tcp", s.Node.Listen.String(), p.fromPeer)
}

// serve listens at an address and handles each connection.
func serve(config net.ListenConfig, network, address string, handle func(*net.TCPConn)) error {
	l, err := config.Listen(context.Background(), network, address)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c.(*net.TCPConn))
		}
	}()
	return nil
}

// fromPod carries a pod's connection, whose local address is where the pod wants to go.
func (p *proxy) fromPod(c *net.TCPConn) {
	destination := c.LocalAddr().(*net.TCPAddr).AddrPort()
	destination = netip.AddrPortFrom(destination.Addr().Unmap(), destination.Port())
	if contains(p.node.Serves, destination.Addr()) {
		relay(c, destination)
		return
	}
	for i, peer := range p.node.Peers {
		if !contains(peer.Serves, destination.Addr()) {
			continue
		}
		if st, err := p.pools[i].open(destination.String()); err == nil {
			st.join(c)
			return
		}
	}
	abort(c)
}

// relay carries a connection between pods of the node.
func relay(c *net.TCPConn, destination netip.AddrPort) {
	to, err := dialPod(destination)
	if err != nil {
		abort(c)
		return
	}
	var back sync.WaitGroup
	copyTo := func(to, from *net.TCPConn) {
		_, err := io.Copy(to, from)
		if err = errors.Join(err, to.CloseWrite()); err != nil {
			abort(to)
			abort(from)
		}
	}
	back.Go(func() { copyTo(c, to) })
	copyTo(to, c)
	back.Wait()
	_ = errors.Join(c.Close(), to.Close())
}

func dialPod(destination netip.AddrPort) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	return dialer.DialTCP(context.Background(), "tcp", netip.AddrPort{}, destination)
}

// fromPeer serves a connection of another proxy.
func (p *proxy) fromPeer(c *net.TCPConn) {
	raw := newBatchedConn(c)
	secured := tls.Server(raw, p.server)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	err := secured.HandshakeContext(ctx)
	cancel()
	if err == nil {
		var s *session
		if s, err = newSession(secured, raw, p.accept); err == nil {
			s.serve()
		}
	}
	_ = c.Close()
}

// accept connects a peer's stream to what this node serves, and to nothing else.
func (p *proxy) accept(st *stream, destination string) {
	to, err := netip.ParseAddrPort(destination)
	if err == nil && !contains(p.node.Serves, to.Addr()) {
		err = errors.New("this node does not serve it")
	}
	var c *net.TCPConn
	if err == nil {
		c, err = dialPod(to)
	}
	if err != nil {
		_ = st.respond(http.StatusBadGateway)
		st.close()
		return
	}
	if st.respond(http.StatusOK) != nil {
		st.close()
		abort(c)
		return
	}
	st.join(c)
}

// A pool keeps the connections to a peer.
type pool struct {
	peer   Peer
	dialer net.Dialer
	config *tls.Config

	mu       sync.Mutex
	sessions []*session
}

func newPool(peer Peer, own netip.Addr, client *tls.Config) *pool {
	config := client.Clone()
	config.ServerName = peer.Name
	from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
	return &pool{peer: peer, config: config, dialer: net.Dialer{LocalAddr: from, Timeout: dialTimeout, KeepAlive: -1}}
}

// open opens a stream to a destination in a connection that has room for it, or else in a new one.
func (p *pool) open(destination string) (*stream, error) {
	s, err := p.claim()
	if err != nil {
		return nil, err
	}
	return s.open(destination)
}

// claim claims a stream of a session. Pods that need a new one wait for each other, so that they share it.
func (p *pool) claim() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.claim() {
			return s, nil
		}
	}
	s, err := p.dial()
	if err != nil {
		return nil, err
	}
	p.sessions = append(p.sessions, s)
	s.claim()
	return s, nil
}

func (p *pool) dial() (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c, err := p.dialer.DialContext(ctx, "tcp", p.peer.Proxy.String())
	if err != nil {
		return nil, err
	}
	raw := newBatchedConn(c)
	secured := tls.Client(raw, p.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s, err := newSession(secured, raw, nil)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	go func() {
		s.serve()
		p.remove(s)
	}()
	return s, nil
}

// remove removes a session that has ended.
func (p *pool) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = slices.DeleteFunc(p.sessions, func(o *session) bool { return o == s })
}
