package netload

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// An echo holds the state of a flow's pings: ICMP echo requests, to which the server's kernel responds.
type echo struct {
	raw      bool   // raw socket: receives the responses of all programs, in IPv4 with the IP header
	ipv6     bool   // ICMPv6
	request  []byte // header and payload
	response []byte
}

// Types of ICMP messages, lengths of headers in bytes, and offsets in an echo message.
const (
	echoRequest, echoReply     = 8, 0
	echoRequest6, echoReply6   = 128, 129
	icmpHeader, longestIPv4    = 8, 60
	echoChecksum, echoIdentity = 2, 4
	echoNumber                 = 6
)

// openEcho opens a socket for pings to a. It needs no privilege if net.ipv4.ping_group_range has the caller's group;
// otherwise it tries a raw socket.
func openEcho(a netip.Addr, size int) (fd int, e *echo, err error) {
	e = &echo{ipv6: family(a) == unix.AF_INET6}
	protocol, kind := unix.IPPROTO_ICMP, byte(echoRequest)
	if e.ipv6 {
		protocol, kind = unix.IPPROTO_ICMPV6, echoRequest6
	}
	fd, err = unix.Socket(family(a), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		e.raw = true
		fd, err = unix.Socket(family(a), unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	}
	if err != nil {
		return -1, nil, fmt.Errorf("this host lets the agent send no pings: its group is not in net.ipv4.ping_group_range, "+
			"and it has no CAP_NET_RAW: %w", err)
	}
	e.request, e.response = make([]byte, icmpHeader+size), make([]byte, longestIPv4+icmpHeader+size)
	e.request[0] = kind
	binary.BigEndian.PutUint16(e.request[echoIdentity:], uint16(fd)^uint16(unix.Getpid()))
	return fd, e, unix.Connect(fd, sockaddr(netip.AddrPortFrom(a, 0)))
}

// next increments the request's number and updates the checksum if the kernel does not.
func (e *echo) next() {
	binary.BigEndian.PutUint16(e.request[echoNumber:], binary.BigEndian.Uint16(e.request[echoNumber:])+1)
	if !e.raw || e.ipv6 {
		return
	}
	binary.BigEndian.PutUint16(e.request[echoChecksum:], 0)
	binary.BigEndian.PutUint16(e.request[echoChecksum:], checksum(e.request))
}

// checksum returns the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// isResponse reports whether b is the response to the last request.
func (e *echo) isResponse(b []byte) bool {
	if e.raw && !e.ipv6 && len(b) > 0 {
		b = b[min(int(b[0]&0xf)*4, len(b)):]
	}
	kind := byte(echoReply)
	if e.ipv6 {
		kind = echoReply6
	}
	same := func(from, to int) bool { return string(b[from:to]) == string(e.request[from:to]) }
	if len(b) != len(e.request) || b[0] != kind || !same(echoNumber, icmpHeader) {
		return false
	}
	// For other sockets the kernel sets the identifier and delivers only the responses to it.
	return !e.raw || same(echoIdentity, echoNumber)
}

// pings sends a request at each scheduled time, as ping -i does. Latency counts from the sending, and requests that are
// due while another one is unanswered are skipped.
func (w *worker) pings() {
	end := w.clock.now()
	for n := uint64(0); ; n = max(n+1, w.pacer.Until(end)) {
		planned := w.pacer.Planned(n)
		if planned >= w.timeline.End {
			return
		}
		begin := w.waitUntil(planned, end)
		if w.stop.Load() {
			return
		}
		o := w.exchangeEcho()
		if end = w.clock.now(); o == fatal {
			w.recordUnfinished(begin, end)
			return
		}
		w.record(o, begin, end)
		w.tick(end)
	}
}

// exchangeEcho sends one request and waits for its response. Errors that the kernel reports for an earlier request,
// such as an unreachable host, do not end the wait.
func (w *worker) exchangeEcho() outcome {
	w.echo.next()
	begin := w.clock.now()
	if _, e := send(w.fd, w.echo.request); e == syscall.EBADF || e == syscall.EPIPE {
		w.fail("send", e)
		return fatal
	}
	for {
		n, e := receive(w.fd, w.echo.response)
		switch {
		case e == 0 && w.echo.isResponse(w.echo.response[:n]):
			return done
		case e == 0 && n == 0, w.stop.Load(): // shut down
			return fatal
		}
		if w.clock.now()-begin >= int64(w.spec.Timeout) {
			return lost
		}
	}
}
