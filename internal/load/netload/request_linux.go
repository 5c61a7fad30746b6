package netload

import (
	"bytes"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"golang.org/x/sys/unix"
)

// An outcome is how one exchange ended.
type outcome int

const (
	done  outcome = iota // request answered
	lost                 // no answer in time, or the cycle failed; goes on
	fatal                // the flow is of no more use, or the run is over
)

// An exchange does one operation. It is a method value made before the loop, so calling it costs
// an indirect call and allocates nothing.
type exchange func(buf *buffers) outcome

// chunk bounds the memory of a worker: what is longer is read in pieces, and written from the one
// payload that all workers share.
const chunk = 256 << 10

type buffers struct {
	request []byte // of a datagram
	scratch []byte // what is read goes here
}

func (w *worker) buffers() *buffers {
	longest := helloSize + max(w.spec.Request, w.spec.Response)
	return &buffers{request: make([]byte, min(w.spec.Request, network.MaxDatagram)),
		scratch: make([]byte, min(longest, chunk))}
}

// take reads n bytes and forgets them.
func (w *worker) take(fd, n int, buf *buffers) bool {
	for n > 0 {
		k := min(n, len(buf.scratch))
		if !w.readAll(fd, buf.scratch[:k]) {
			return false
		}
		n -= k
	}
	return true
}

// request is the loop of every client that asks and waits.
func (w *worker) request(do exchange) {
	buf := w.buffers()
	if w.spec.OpenLoop() {
		w.openLoop(do, buf)
	} else {
		w.closedLoop(do, buf)
	}
}

// closedLoop asks again as soon as it was answered. The end of one operation is the beginning of
// the next, so that nothing between them goes unseen.
func (w *worker) closedLoop(do exchange, buf *buffers) {
	begin := w.clock.now()
	for {
		o := do(buf)
		end := w.clock.now()
		if o == fatal {
			w.cutOff(begin, end)
			return
		}
		w.took(o, begin, end)
		w.tick(end)
		if end >= w.line.End {
			return
		}
		begin = end
	}
}

// openLoop asks at planned times. A request that has to wait for the answer to the one before is
// late, and its latency counts from when it was planned: a stalled server shows in every request that
// would have been sent meanwhile.
func (w *worker) openLoop(do exchange, buf *buffers) {
	free := w.clock.now()
	for n := uint64(0); ; n++ {
		planned := w.pacer.Planned(n)
		if planned >= w.line.End {
			return
		}
		begin := w.until(planned, free)
		o := fatal
		if begin < w.line.End+int64(overtime) && !w.stop.Load() {
			// What the flow could not help is no lateness of the generator.
			if w.line.In(planned) {
				w.late.Record(begin - max(planned, free))
			}
			o = do(buf)
		}
		end := w.clock.now()
		if o == fatal {
			w.cutOffPlanned(n, end)
			return
		}
		w.took(o, planned, end)
		w.tick(end)
		free = end
	}
}

// took records one operation. It belongs to the window if it began there, in an open loop if it was planned there: what
// is slow or lost at the window's end counts as much as at its beginning.
func (w *worker) took(o outcome, from, end int64) {
	if o == done {
		w.operations.Add(end, 1)
	}
	switch {
	case !w.line.In(from):
	case o == done:
		w.latency.Record(end - from)
	default:
		w.lost++
		w.waited.Record(end - from)
	}
}

// cutOff notes an operation that did not end while it mattered. It waited at least until now.
func (w *worker) cutOff(from, now int64) {
	if w.line.In(from) {
		w.unfinished++
		w.waited.Record(now - from)
	}
}

// cutOffPlanned notes the operations of an open loop, from n on, that were planned and could not be done: leaving them
// out would show a server that never recovered as a fast one.
func (w *worker) cutOffPlanned(n uint64, now int64) {
	for ; ; n++ {
		planned := w.pacer.Planned(n)
		if planned >= w.line.End || planned >= now {
			return
		}
		w.cutOff(planned, now)
	}
}

func (w *worker) exchangeTCP(buf *buffers) outcome {
	if !w.writeAll(w.fd, w.payload[:w.spec.Request]) || !w.take(w.fd, w.spec.Response, buf) {
		return fatal
	}
	return done
}

// answerTCP answers requests until the client closes. It only counts: what the clock would tell here is
// the client's to say, and would slow it down.
func (w *worker) answerTCP() {
	buf := w.buffers()
	for w.take(w.fd, w.spec.Request, buf) && w.writeAll(w.fd, w.payload[:w.spec.Response]) {
		w.answered++
	}
}

// exchangeUDP sends one datagram and waits for its answer. Requests are numbered by their first byte, which the
// server returns, so that the answer to a request that was given up is not taken for the next one's.
func (w *worker) exchangeUDP(buf *buffers) outcome {
	buf.request[0]++
	begin := w.clock.now()
	for {
		_, e := send(w.fd, buf.request)
		if e == 0 {
			break
		}
		if (retry(e) || e == syscall.ENOBUFS) && !w.over() {
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

// answerUDP answers datagrams until the socket is shut down.
func (w *worker) answerUDP() {
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
		if n != w.spec.Request { // a repeated opening, or not ours
			w.refused++
			continue
		}
		response[0] = request[0]
		if _, e := send(w.fd, response); e != 0 && !retry(e) && e != syscall.ENOBUFS && e != syscall.ECONNREFUSED {
			w.fail("send", e)
			return
		}
		w.answered++
	}
}

// A cycler holds what the cycles of tcp-crr need.
//
// Who closes first keeps the connection in TIME_WAIT. Here it is the server, as with HTTP/1.0: after
// the response it closes, and the client reads the end before it closes too. It costs the same packets
// as netperf's TCP_CRR, where the client closes first, but the client's ports are free at once, and a
// new connection from the same port ends the server's TIME_WAIT (RFC 6191), so that no number of cycles
// exhausts the ports. A reset (SO_LINGER 0) would save packets that real connections send.
type cycler struct {
	family  int
	addr    []byte       // raw sockaddr
	opening []byte       // hello and request in one
	rest    int          // bytes of the request that did not fit
	current atomic.Int64 // the connection of the cycle that is going on, -1: none
	last    [1]byte
}

func newCycler(a netip.AddrPort, h hello, request int) *cycler {
	c := &cycler{family: family(a.Addr()), addr: rawSockaddr(a)}
	c.current.Store(-1)
	c.opening = append(h.append(nil), make([]byte, min(request, chunk))...)
	c.rest = request - min(request, chunk)
	return c
}

// rawSockaddr is the address as connect takes it, made once and not per call.
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

// networkOrder is a port as it lies in memory.
func networkOrder(port int) uint16 {
	b := [2]byte{byte(port >> 8), byte(port)}
	return *(*uint16)(unsafe.Pointer(&b))
}

func (w *worker) exchangeCycle(buf *buffers) outcome {
	fd, e := w.connect()
	if e != 0 {
		return w.cycleFailed("connect", e)
	}
	o := done
	switch {
	case !w.writeAll(fd, w.cycle.opening), w.cycle.rest > 0 && !w.writeAll(fd, w.payload[:w.cycle.rest]):
		o = w.cycleFailed("write", 0)
	case !w.take(fd, w.spec.Response, buf):
		o = w.cycleFailed("read", 0)
	case w.readAll(fd, w.cycle.last[:]): // the end, and not another byte
		o = w.cycleFailed("close", syscall.EPROTO)
	}
	w.cycle.close(fd)
	return o
}

func (c *cycler) close(fd int) {
	c.current.Store(-1)
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// connect makes one connection of a cycle.
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
		case (e == syscall.EINTR || e == syscall.EALREADY || e == syscall.EINPROGRESS) && !w.over():
			continue
		}
		w.cycle.close(fd)
		return -1, e
	}
}

// cycleFailed ends a cycle that came to nothing. A flow that fails all the time must not spin.
func (w *worker) cycleFailed(call string, e syscall.Errno) outcome {
	if w.over() {
		return fatal
	}
	if w.failure.call == "" {
		w.failure = failure{call, e, w.clock.now()}
	}
	sleep(1e6)
	return lost
}

// answerCycles accepts, reads the token and the request, answers and closes, until the listening socket is shut down.
func (w *worker) answerCycles() {
	buf := w.buffers()
	for !w.stop.Load() {
		r, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(w.fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
		if e != 0 {
			if retry(e) || e == syscall.ECONNABORTED {
				runtime.Gosched() // the one place in this loop where the runtime may have its way
				continue
			}
			return // shut down: EINVAL
		}
		if w.answerCycle(int(r), buf) {
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, r, 0, 0)
		}
	}
}

// answerCycle serves one connection; without the token it gets no byte. An opening comes in one piece, right after
// the connection: one that does not is handed over, so that no stranger keeps the cycles of the run waiting. The
// result says whether the connection is still the worker's.
func (w *worker) answerCycle(fd int, buf *buffers) bool {
	all := helloSize + w.spec.Request
	n, e := w.opening(fd, buf.scratch[:min(all, len(buf.scratch))])
	switch {
	case e == syscall.EAGAIN || e == 0 && n > 0 && n < helloSize:
		w.handOver(fd, bytes.Clone(buf.scratch[:max(n, 0)]))
		return false
	case e != 0 || n == 0 || !w.admits(buf.scratch):
		w.refused++
	case w.take(fd, all-n, buf) && w.writeAll(fd, w.payload[:w.spec.Response]):
		w.answered++
	}
	return true
}

// Time-outs of openings. The first is that of the socket, which costs less than a system call and is coarse; once
// somebody was turned away it is the second.
const (
	silentAfter = 2 * time.Millisecond
	waryFor     = 500 * time.Microsecond
)

// opening reads what comes first on a connection.
func (w *worker) opening(fd int, b []byte) (n int, e syscall.Errno) {
	if w.wary.Load() && !readable(fd, waryFor) {
		return 0, syscall.EAGAIN
	}
	for {
		if n, e = receive(fd, b); e != syscall.EINTR {
			return n, e
		}
	}
}

// admits says whether b opens with the run's token and is for a cycle.
func (w *worker) admits(b []byte) bool {
	h, err := parseHello(b)
	return err == nil && h.Purpose == cycleRole && h.Token.Equal(w.token)
}
