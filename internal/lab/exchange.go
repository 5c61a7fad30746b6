//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tokenSize = 16 // bytes
	// udpTries is above one, since datagrams may be lost while a tunnel is set up. Try n waits for n times udpTimeout.
	udpTries   = 6
	udpTimeout = 100 * time.Millisecond
	tcpTimeout = 3 * time.Second
	// resetTimeout limits the wait for the client's reset, which a link may lose.
	resetTimeout = 200 * time.Millisecond
)

// An exchange sends data over UDP and TCP between two hosts and back, with a token by which its packets are recognised.
type exchange struct {
	ends        Ends
	proxied     bool // proxies carry the path's TCP, and no UDP
	maxDatagram int  // payload of the largest datagram that the path must carry unfragmented, bytes
	token       []byte
	pathMTU     int // of the path, as the client's kernel reports it, bytes
	congestion  string
	peer        netip.Addr // the client's address as the server sees it
}

func newExchange(ends Ends, mtu int, proxied bool) *exchange {
	t := &exchange{ends: ends, proxied: proxied, token: make([]byte, tokenSize)}
	_, _ = rand.Read(t.token) // never fails
	t.maxDatagram = mtu - 20 - 8
	if ends.Client.Addr.Is6() {
		t.maxDatagram = mtu - 40 - 8
	}
	return t
}

// run exchanges data over both protocols, or over TCP alone if proxies carry the path.
func (t *exchange) run(n *namespaces) error {
	server, err := t.listen(n)
	if err != nil {
		return err
	}
	defer server.close()
	return n.spaces[t.ends.Client.Name].ns.Do(func() error {
		dialer := net.Dialer{Timeout: tcpTimeout, Control: n.control()}
		if !t.proxied {
			if err := t.udp(dialer); err != nil {
				return fmt.Errorf("%s does not reach %s at %s over UDP: %w",
					t.ends.Client.Name, t.ends.Server.Name, t.ends.Dial, err)
			}
		}
		if err := t.tcp(dialer); err != nil {
			return fmt.Errorf("%s does not reach %s at %s over TCP: %w",
				t.ends.Client.Name, t.ends.Server.Name, t.ends.Dial, err)
		}
		t.peer = <-server.peer
		return nil
	})
}

// An echoServer echoes what it receives over both protocols.
type echoServer struct {
	udp   *net.UDPConn
	tcp   *net.TCPListener
	peer  chan netip.Addr // of the only connection
	ended chan struct{}   // closed when it has ended
}

func (t *exchange) listen(n *namespaces) (*echoServer, error) {
	e := echoServer{peer: make(chan netip.Addr, 1), ended: make(chan struct{})}
	err := n.spaces[t.ends.Server.Name].ns.Do(func() (err error) {
		if e.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(t.ends.Listen)); err != nil {
			return err
		}
		if e.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(t.ends.Listen)); err != nil {
			return errors.Join(err, e.udp.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ends.Server.Name, err)
	}
	go e.serveUDP()
	go e.serveTCP()
	return &e, nil
}

// close closes the sockets and waits for the client's reset, the last packet of the exchange, so that no packet is on
// its way when the next exchange begins.
func (e *echoServer) close() {
	_ = e.udp.Close()
	_ = e.tcp.Close()
	select {
	case <-e.ended:
	case <-time.After(resetTimeout):
	}
}

func (e *echoServer) serveUDP() {
	buf := make([]byte, MaxMTU)
	for {
		n, from, err := e.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		_, _ = e.udp.WriteToUDPAddrPort(buf[:n], from)
	}
}

func (e *echoServer) serveTCP() {
	defer close(e.ended)
	conn, err := e.tcp.AcceptTCP()
	if err != nil {
		return
	}
	defer conn.Close()
	e.peer <- conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	_ = conn.SetLinger(0)
	_ = conn.SetDeadline(time.Now().Add(tcpTimeout))
	_, _ = io.CopyN(conn, conn, tokenSize)
	// The client closes the connection, so that none lingers on either side.
	_, _ = conn.Read(make([]byte, 1))
}

// udp sends the token alone, then in the largest datagram, which must not be fragmented.
func (t *exchange) udp(dialer net.Dialer) error {
	conn, err := dialer.DialUDP(context.Background(), "udp", netip.AddrPort{}, t.ends.Dial)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := t.doNotFragment(conn); err != nil {
		return err
	}
	if err := t.roundTrip(conn, t.token); err != nil {
		return err
	}
	large := append(bytes.Clone(t.token), make([]byte, t.maxDatagram-tokenSize)...)
	if err := t.roundTrip(conn, large); err != nil {
		return fmt.Errorf("a datagram of %d bytes, which the path should carry whole: %w", t.maxDatagram, err)
	}
	return t.readPathMTU(conn)
}

// readPathMTU sets pathMTU to what the kernel knows of a connection.
func (t *exchange) readPathMTU(conn syscall.Conn) error {
	return t.socketOption(conn, func(fd int) (err error) {
		if t.ends.Client.Addr.Is6() {
			t.pathMTU, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
		} else {
			t.pathMTU, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
		}
		return err
	})
}

func (t *exchange) doNotFragment(conn *net.UDPConn) error {
	return t.socketOption(conn, func(fd int) error {
		if t.ends.Client.Addr.Is6() {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	})
}

// socketOption calls f with the descriptor of a connection.
func (t *exchange) socketOption(conn syscall.Conn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// roundTrip sends a datagram, at most udpTries times, until it comes back unchanged.
func (t *exchange) roundTrip(conn *net.UDPConn, data []byte) error {
	buf := make([]byte, MaxMTU)
	var last error
	for try := range udpTries {
		if _, last = conn.Write(data); last != nil {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Duration(try+1) * udpTimeout))
		var n int
		if n, last = conn.Read(buf); last == nil && bytes.Equal(buf[:n], data) {
			return nil
		}
	}
	if last == nil {
		last = errors.New("it came back changed")
	}
	return last
}

// tcp sends the token and reads it back.
func (t *exchange) tcp(dialer net.Dialer) error {
	conn, err := dialer.DialTCP(context.Background(), "tcp", netip.AddrPort{}, t.ends.Dial)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := errors.Join(conn.SetLinger(0), conn.SetDeadline(time.Now().Add(tcpTimeout))); err != nil {
		return err
	}
	if _, err := conn.Write(t.token); err != nil {
		return err
	}
	back := make([]byte, tokenSize)
	if _, err := io.ReadFull(conn, back); err != nil {
		return err
	}
	if !bytes.Equal(back, t.token) {
		return errors.New("it came back changed")
	}
	if t.proxied {
		if err := t.readPathMTU(conn); err != nil {
			return err
		}
	}
	return t.socketOption(conn, func(fd int) (err error) {
		t.congestion, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
}
