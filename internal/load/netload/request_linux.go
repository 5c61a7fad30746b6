package netload

import (
	"bytes"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An outcome is the way in which an exchange ended.
type outcome int

const (
	done  outcome = iota // the request was answered
	lost                 // no response in time, or the cycle failed; the loop continues
	fatal                // the flow is unusable, or the run is over; the loop ends
)

// An exchange performs one operation. It is a method value made before the loop, so a call costs one indirect call and
// allocates nothing.
type exchange func(buf *buffers) outcome

// chunk bounds the memory of a worker, in bytes: longer messages are read in pieces, and written from the payload that
// all workers share.
const chunk = 256 << 10

// buffers holds the memory that a loop of requests uses.
type buffers struct {
	request []byte // of a datagram
	scratch []byte // for data that is read and discarded
}

func (w *worker) buffers() *buffers {
	longest := helloSize + max(w.spec.Request, w.spec.Response)
	return &buffers{request: make([]byte, min(w.spec.Request, MaxDatagram)),
		scratch: make([]byte, min(longest, chunk))}
}

// discard reads n bytes and drops them. It reports whether all of them came.
func (w *worker) discard(fd, n int, buf *buffers) bool {
	for n > 0 {
		k := min(n, len(buf.scratch))
		if !w.readAll(fd, buf.scratch[:k]) {
			return false
		}
		n -= k
	}
	return true
}

// requestLoop runs the loop of a client that sends a request and waits for its response.
func (w *worker) requestLoop(do exchange) {
	buf := w.buffers()
	if w.spec.OpenLoop() {
		w.openLoop(do, buf)
	} else {
		w.closedLoop(do, buf)
	}
}

// closedLoop sends the next request as soon as the last one is answered. The end of one operation is the beginning of
// the next, so that no time between them goes unmeasured.
func (w *worker) closedLoop(do exchange, buf *buffers) {
	begin := w.clock.now()
	for {
		o := do(buf)
		end := w.clock.now()
		if o == fatal {
			w.recordUnfinished(begin, end)
			return
		}
		w.record(o, begin, end)
		w.tick(end)
		if end >= w.timeline.End {
			return
		}
		begin = end
	}
}

// openLoop sends requests at scheduled times. The latency of a request counts from its scheduled time, even if it had
// to wait for the response to the previous one: a stalled server then shows in every request that was due during the
// stall.
func (w *worker) openLoop(do exchange, buf *buffers) {
	free := w.clock.now()
	for n := uint64(0); ; n++ {
		planned := w.pacer.Planned(n)
		if planned >= w.timeline.End {
			return
		}
		begin := w.waitUntil(planned, free)
		o := fatal
		if begin < w.timeline.End+int64(overtime) && !w.stop.Load() {
			// Waiting for the previous response is not lateness of the generator.
			if w.timeline.In(planned) {
				w.late.Record(begin - max(planned, free))
			}
			o = do(buf)
		}
		end := w.clock.now()
		if o == fatal {
			w.recordUnsent(n, end)
			return
		}
		w.record(o, planned, end)
		w.tick(end)
		free = end
	}
}

// record records one operation that was begun, or in an open loop scheduled, at from. It counts if that is in the
// window, so that slow and lost operations at the window's end count as much as those at its beginning.
func (w *worker) record(o outcome, from, end int64) {
	if o == done {
		w.operations.Add(end, 1)
	}
	switch {
	case !w.timeline.In(from):
	case o == done:
		w.latency.Record(end - from)
	default:
		w.lost++
		w.waited.Record(end - from)
	}
}

// recordUnfinished records an operation that did not end in time; its waiting time is at least that until now.
func (w *worker) recordUnfinished(from, now int64) {
	if w.timeline.In(from) {
		w.unfinished++
		w.waited.Record(now - from)
	}
}

// recordUnsent records the operations of an open loop from n on that were scheduled but not done: without them, a
// server that never recovers would look fast.
func (w *worker) recordUnsent(n uint64, now int64) {
	for ; ; n++ {
		planned := w.pacer.Planned(n)
		if planned >= w.timeline.End || planned >= now {
			return
		}
		w.recordUnfinished(planned, now)
	}
}

// exchangeTCP sends one request on the flow's connection and reads the response.
func (w *worker) exchangeTCP(buf *buffers) outcome {
	if !w.writeAll(w.fd, w.payload[:w.spec.Request]) || !w.discard(w.fd, w.spec.Response, buf) {
		return fatal
	}
	return done
}

// serveTCP responds to requests until the client closes. It reads no clock, which would slow it down: the client
// measures.
func (w *worker) serveTCP() {
	buf := w.buffers()
	for w.discard(w.fd, w.spec.Request, buf) && w.writeAll(w.fd, w.payload[:w.spec.Response]) {
		w.answered++
	}
}

// exchangeUDP sends one datagram and waits for its response. The server returns the first byte, a request number, so
// that a late response to an earlier request is not mistaken for the response to this one.
func (w *worker) exchangeUDP(buf *buffers) outcome {
	buf.request[0]++
	begin := w.clock.now()
	for {
		_, e := send(w.fd, buf.request)
		if e == 0 {
			break
		}
		if (retry(e) || e == syscall.ENOBUFS) && !w.timeUp() {
			continue
		}
		w.fail("send", e)
		return fatal
	}
	for {
		n, e := receive(w.fd, buf.scratch)
		switch {
		case e == 0 && n > 0 && buf.scratch[0] == buf.request[0]:
			return done
		case e == 0 && n > 0:
			w.stale++
		case e == 0: // shut down
			return fatal
		case !retry(e) && e != syscall.ECONNREFUSED:
			w.fail("receive", e)
			return fatal
		}
		if w.stop.Load() {
			return fatal
		}
		if w.clock.now()-begin >= int64(w.spec.Timeout) {
			return lost
		}
	}
}

// serveUDP responds to datagrams until the socket is shut down.
func (w *worker) serveUDP() {
	request := make([]byte, w.spec.Request+1)
	response := make([]byte, max(w.spec.Response, 1))
	for !w.stop.Load() {
		n, e := receive(w.fd, request)
		if e != 0 {
			if retry(e) || e == syscall.ECONNREFUSED {
				continue
			}
			w.fail("receive", e)
			return
		}
		if n == 0 {
			return
		}
		if n != w.spec.Request { // a repeated opening, or a datagram of another program
			w.refused++
			continue
		}
		response[0] = request[0]
		_, e = send(w.fd, response)
		if e == syscall.EPIPE { // shut down since the request was received
			return
		}
		if e != 0 && !retry(e) && e != syscall.ENOBUFS && e != syscall.ECONNREFUSED {
			w.fail("send", e)
			return
		}
		w.answered++
	}
}

// A cycler holds the state for the cycles of tcp-crr.
//
// The side that closes first keeps the connection in TIME_WAIT. Here that is the server, as with HTTP/1.0: it closes
// after the response, and the client reads the end of the stream before it closes too. The packets are the same as with
// netperf's TCP_CRR, where the client closes first, but the client's ports are free at once, and a new connection from
// the same port ends the server's TIME_WAIT (RFC 6191), so that no number of cycles exhausts the ports. A reset
// (SO_LINGER 0) would save packets that real connections send.
type cycler struct {
	family  int
	addr    []byte       // raw sockaddr
	opening []byte       // hello and request in one write
	rest    int          // bytes of the request that did not fit into opening
	current atomic.Int64 // descriptor of the current connection; -1: none
	last    [1]byte      // read to find the end of the stream
}

func newCycler(a netip.AddrPort, h hello, request int) *cycler {
	c := &cycler{family: family(a.Addr()), addr: rawSockaddr(a)}
	c.current.Store(-1)
	c.opening = append(h.append(nil), make([]byte, min(request, chunk))...)
	c.rest = request - min(request, chunk)
	return c
}

// rawSockaddr returns the address in the form of connect(2), so that it is built once and not per call.
func rawSockaddr(a netip.AddrPort) []byte {
	switch sa := sockaddr(a).(type) {
	case *unix.SockaddrInet4:
		raw := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkOrder(sa.Port), Addr: sa.Addr}
		return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unix.SizeofSockaddrInet4))
	case *unix.SockaddrInet6:
		raw := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkOrder(sa.Port), Addr: sa.Addr, Scope_id: sa.ZoneId}
		return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unix.SizeofSockaddrInet6))
	}
	return nil
}

// networkOrder returns a port whose bytes in memory are in network order.
func networkOrder(port int) uint16 {
	b := [2]byte{byte(port >> 8), byte(port)}
	return *(*uint16)(unsafe.Pointer(&b))
}

// exchangeCycle connects, sends a request, reads the response and the end of the stream, and closes.
func (w *worker) exchangeCycle(buf *buffers) outcome {
	fd, e := w.connect()
	if e != 0 {
		return w.cycleFailed("connect", e)
	}
	o := done
	switch {
	case !w.writeAll(fd, w.cycle.opening), w.cycle.rest > 0 && !w.writeAll(fd, w.payload[:w.cycle.rest]):
		o = w.cycleFailed("write", 0)
	case !w.discard(fd, w.spec.Response, buf):
		o = w.cycleFailed("read", 0)
	case w.readAll(fd, w.cycle.last[:]): // the stream must end here
		o = w.cycleFailed("close", syscall.EPROTO)
	}
	w.cycle.close(fd)
	return o
}

func (c *cycler) close(fd int) {
	c.current.Store(-1)
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// connect opens the connection of one cycle.
func (w *worker) connect() (int, syscall.Errno) {
	r, _, e := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(w.cycle.family), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if e != 0 {
		return -1, e
	}
	fd := int(r)
	w.cycle.current.Store(int64(fd))
	for {
		_, _, e = syscall.RawSyscall(unix.SYS_CONNECT, r,
			uintptr(unsafe.Pointer(&w.cycle.addr[0])), uintptr(len(w.cycle.addr)))
		switch {
		case e == 0 || e == syscall.EISCONN:
			return fd, 0
		case (e == syscall.EINTR || e == syscall.EALREADY || e == syscall.EINPROGRESS) && !w.timeUp():
			continue
		}
		w.cycle.close(fd)
		return -1, e
	}
}

// cycleFailed records a failed cycle. It sleeps for 1 ms, so that a flow that always fails does not spin.
func (w *worker) cycleFailed(call string, e syscall.Errno) outcome {
	if w.timeUp() {
		return fatal
	}
	if w.failure.call == "" {
		w.failure = failure{call, e, w.clock.now()}
	}
	sleep(1e6)
	return lost
}

// serveCycles accepts connections and responds to their requests until the listening socket is shut down.
func (w *worker) serveCycles() {
	buf := w.buffers()
	for !w.stop.Load() {
		r, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(w.fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
		if e != 0 {
			if retry(e) || e == syscall.ECONNABORTED {
				runtime.Gosched() // the only point of this loop at which the Go scheduler can interrupt it
				continue
			}
			return // EINVAL: shut down
		}
		if w.serveCycle(int(r), buf) {
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, r, 0, 0)
		}
	}
}

// serveCycle serves one connection, and reports whether the worker still owns it. Without the run's token the
// connection gets no byte. If the opening does not arrive at once and in one piece, the connection is handed over, so
// that a foreign connection does not delay the run's cycles.
func (w *worker) serveCycle(fd int, buf *buffers) bool {
	all := helloSize + w.spec.Request
	n, e := w.readOpening(fd, buf.scratch[:min(all, len(buf.scratch))])
	switch {
	case e == syscall.EAGAIN || e == 0 && n > 0 && n < helloSize:
		w.handOver(fd, bytes.Clone(buf.scratch[:max(n, 0)]))
		return false
	case e != 0 || n == 0 || !w.admits(buf.scratch):
		w.refused++
	case w.discard(fd, all-n, buf) && w.writeAll(fd, w.payload[:w.spec.Response]):
		w.answered++
	}
	return true
}

// Time-outs for the opening of a connection. openingTimeout is a coarse option of the socket, which costs no system
// call. shortOpeningTimeout costs a poll per connection, and applies once a foreign connection was refused.
const (
	openingTimeout      = 2 * time.Millisecond
	shortOpeningTimeout = 500 * time.Microsecond
)

// readOpening reads the first bytes of a connection. It returns EAGAIN if none came in time.
func (w *worker) readOpening(fd int, b []byte) (n int, e syscall.Errno) {
	if w.foreignSeen.Load() && !readable(fd, shortOpeningTimeout) {
		return 0, syscall.EAGAIN
	}
	for {
		if n, e = receive(fd, b); e != syscall.EINTR {
			return n, e
		}
	}
}

// admits reports whether b begins with a hello for a cycle that has the run's token.
func (w *worker) admits(b []byte) bool {
	h, err := parseHello(b)
	return err == nil && h.Purpose == cyclePurpose && h.Token.Equal(w.token)
}
