package netload

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveBuffer is the buffer size that UDP sockets ask for, in bytes. The kernel may grant less; the report has that.
const receiveBuffer = 4 << 20

// sockaddr converts an address to the form of package unix.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		sa.ZoneId = zoneID(zone)
	}
	return sa
}

// zoneID returns the interface index of an IPv6 zone; 0 if there is no such interface.
func zoneID(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	return 0
}

// addrPort converts an address back from the form of package unix.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// openSocket makes a blocking socket without time-outs, which would cost a timer per call: a shutdown of the socket
// wakes a blocked call.
func openSocket(a netip.Addr, kind int) (int, error) {
	fd, err := unix.Socket(family(a), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	return fd, nil
}

// setTimeouts bounds every send and receive on the socket; 0 is no bound.
func setTimeouts(fd int, d time.Duration) error {
	if err := setTimeout(fd, unix.SO_RCVTIMEO, d); err != nil {
		return err
	}
	return setTimeout(fd, unix.SO_SNDTIMEO, d)
}

// setTimeout sets SO_RCVTIMEO or SO_SNDTIMEO. Connections accepted from a listening socket inherit it.
func setTimeout(fd, option int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &tv); err != nil {
		return fmt.Errorf("set a time-out of %v: %w", d, err)
	}
	return nil
}

// tuneTCP sets the TCP options of a workload; it must precede connect and listen.
func tuneTCP(fd int, w Spec) error {
	if w.MSS > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, w.MSS); err != nil {
			return fmt.Errorf("set the largest segment to %d bytes: %w", w.MSS, err)
		}
	}
	if err := setBuffers(fd, w); err != nil {
		return err
	}
	if w.Congestion != "" {
		err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, w.Congestion)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
			return fmt.Errorf("this host has no congestion control %q for programs like this one "+
				"(net.ipv4.tcp_allowed_congestion_control): %w", w.Congestion, err)
		}
		if err != nil {
			return fmt.Errorf("set the congestion control %q: %w", w.Congestion, err)
		}
	}
	return nil
}

// limitRate makes the kernel pace a connection to its share of the workload's max-rate.
func limitRate(fd int, w Spec) error {
	if w.MaxRate == 0 {
		return nil
	}
	bytes := uint64(w.MaxRate / 8 / float64(w.Flows))
	if w.Kind == TCPRRLoaded { // one stream in each direction
		bytes = uint64(w.MaxRate / 8)
	}
	if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, bytes); err != nil {
		return fmt.Errorf("this host cannot limit a connection to max-rate=: %w", err)
	}
	return nil
}

// listenTCP listens at a; with port 0 the kernel chooses one. Accepted connections inherit the workload's options.
func listenTCP(a netip.AddrPort, w Spec) (int, netip.AddrPort, error) {
	fd, err := openSocket(a.Addr(), unix.SOCK_STREAM)
	if err != nil {
		return -1, a, err
	}
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		// Accepted connections inherit it. It has no effect on the full segments of a stream.
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		tuneTCP(fd, w),
		unix.Bind(fd, sockaddr(a)),
		unix.Listen(fd, 4096),
	); err != nil {
		unix.Close(fd)
		return -1, a, fmt.Errorf("listen at tcp %s: %w", a, err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return -1, a, fmt.Errorf("listen at tcp %s: %w", a, err)
	}
	return fd, addrPort(sa), nil
}

// bindUDP binds a datagram socket to a. SO_REUSEPORT lets the server open a socket per flow on the same port.
func bindUDP(a netip.AddrPort, w Spec) (int, error) {
	fd, err := openSocket(a.Addr(), unix.SOCK_DGRAM)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(fd, sockaddr(a)),
	); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("bind to udp %s: %w", a, err)
	}
	if err := growBuffers(fd, w); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bufferOptions are the options for receive and send buffers, and the sysctls that limit the plain ones.
var bufferOptions = []struct {
	force, plain int
	limit        string
}{
	{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, "net.core.rmem_max"},
	{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, "net.core.wmem_max"},
}

// growBuffers sets a datagram socket's buffers to the size that the workload names; if it names none, it asks for large
// ones.
func growBuffers(fd int, w Spec) error {
	if w.Buffer == 0 {
		askBuffers(fd, receiveBuffer)
	}
	return setBuffers(fd, w)
}

// askBuffers asks for buffers of a size in bytes, beyond the limits of net.core if permitted.
func askBuffers(fd, size int) {
	for _, o := range bufferOptions {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.force, size) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.plain, size)
		}
	}
}

// setBuffers sets the buffers that the workload names. It fails if the kernel grants less, because that would be a
// different experiment.
func setBuffers(fd int, w Spec) error {
	if w.Buffer == 0 {
		return nil
	}
	askBuffers(fd, w.Buffer)
	for _, o := range bufferOptions {
		doubled, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.plain) // doubled by the kernel for its bookkeeping
		if err != nil {
			return fmt.Errorf("read the size of a socket's buffer: %w", err)
		}
		if granted := doubled / 2; granted < w.Buffer {
			return fmt.Errorf("this host grants a socket's buffer %d bytes of buffer=%d: raise %s, or ask for less",
				granted, w.Buffer, o.limit)
		}
	}
	return nil
}

// retry reports whether a call was interrupted or timed out.
func retry(e syscall.Errno) bool { return e == syscall.EINTR || e == syscall.EAGAIN }

// The system calls of the hot loops bypass the scheduler by RawSyscall, which saves two transitions per call and a
// hand-over of the processor when the call blocks. No goroutine waits for that processor: the thread is locked, and
// there are more processors than workers.

func receive(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	return int(n), e
}

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// readAll reads until b is full; it reports false if the peer closed, the socket was shut down or the run is over.
func (w *worker) readAll(fd int, b []byte) bool {
	for len(b) > 0 {
		n, e := receive(fd, b)
		if e != 0 {
			if retry(e) && !w.timeUp() {
				continue
			}
			w.fail("read", e)
			return false
		}
		if n == 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// writeAll writes all of b; it reports false on the same conditions.
func (w *worker) writeAll(fd int, b []byte) bool {
	for len(b) > 0 {
		n, e := send(fd, b)
		if e != 0 {
			if retry(e) && !w.timeUp() {
				continue
			}
			w.fail("write", e)
			return false
		}
		b = b[n:]
	}
	return true
}

// readable reports whether fd becomes readable within d.
func readable(fd int, d time.Duration) bool {
	p := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	ts := unix.NsecToTimespec(int64(d))
	n, _, e := syscall.RawSyscall6(unix.SYS_PPOLL,
		uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e == 0 && n > 0
}

// sleep blocks the thread for about ns nanoseconds.
func sleep(ns int64) {
	ts := unix.NsecToTimespec(ns)
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
