package netload

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is the largest number of messages in one sendmmsg or recvmmsg.
const batch = 64

// controlSize is the space for control messages in bytes: a timestamp and a segment size need 56.
const controlSize = 64

// maxSegments is how many datagrams the kernel accepts in one message with segmentation offload.
const maxSegments = 64

// mmsghdr is struct mmsghdr of recvmmsg(2) on a 64-bit machine.
type mmsghdr struct {
	hdr    unix.Msghdr
	length uint32
	_      [4]byte
}

// A sendOrder is an order to send at one rate for a time.
type sendOrder struct {
	rate       float64 // of this flow, datagrams per second
	begin, end int64   // on the run's clock
}

// packets holds the buffers and counters of a worker that sends or receives datagrams.
type packets struct {
	size     int // of one datagram
	segments int // datagrams per message, 1 without offload
	msgs     [batch]mmsghdr
	iovs     [batch]unix.Iovec
	buf      []byte // batch messages of stride bytes each
	stride   int
	controls bool                           // whether control messages are received
	control  [batch][controlSize / 8]uint64 // aligned as the kernel's structures are

	orders chan sendOrder // for the sender; closed after the last
	sent   chan uint64    // datagrams sent for an order
	number uint64         // next sequence number
	count  atomic.Uint64  // datagrams received so far, with duplicates; a search reads it during the run
}

// newPackets allocates the message vectors, whose pointers refer to p itself: p must not be copied.
func newPackets(size int, offload, sender bool) *packets {
	p := &packets{size: size, segments: 1, stride: size + 1, orders: make(chan sendOrder, 1), sent: make(chan uint64, 1)}
	if offload {
		p.segments = max(1, min(maxSegments, 65000/size))
		p.stride = p.segments * size
		if !sender {
			p.stride = 1 << 16
		}
	}
	p.buf = make([]byte, batch*p.stride)
	for i := range p.msgs {
		p.iovs[i].Base = &p.buf[i*p.stride]
		p.iovs[i].SetLen(p.stride)
		p.msgs[i].hdr.Iov = &p.iovs[i]
		p.msgs[i].hdr.SetIovlen(1)
	}
	return p
}

// setOffload enables segmentation offload on a sender's socket, or its counterpart (GRO) on a receiver's.
func setOffload(fd, size int, sender bool) error {
	if sender {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size); err != nil {
			return fmt.Errorf("set UDP_SEGMENT to %d: %w", size, err)
		}
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1); err != nil {
		return fmt.Errorf("set UDP_GRO: %w", err)
	}
	return nil
}

// sendPackets carries out orders until the channel is closed.
func (w *worker) sendPackets() {
	for o := range w.packets.orders {
		w.packets.sent <- w.sendSegment(o)
	}
}

// sendSegment sends at the order's rate and returns how many datagrams the kernel accepted. All datagrams that are due
// are sent in one call: one at low rates, several if they are due faster than calls return.
func (w *worker) sendSegment(o sendOrder) (count uint64) {
	pace := w.pacer
	pace.Rate = o.rate
	now := w.waitUntil(o.begin, w.clock.now())
	for now < o.end && !w.stop.Load() {
		due, wait := pace.Due(now-o.begin, count)
		if due == 0 {
			now = w.waitUntil(now+wait, now)
			continue
		}
		if w.late != nil && w.timeline.In(now) {
			w.late.Record(now - o.begin - pace.Planned(count))
		}
		n, e := w.sendBatch(int(min(due, batch*maxSegments)), now)
		if e != 0 {
			if !retry(e) && e != syscall.ENOBUFS && e != syscall.ECONNREFUSED {
				w.fail("send", e)
				return count
			}
			w.blocked++
		}
		w.sent.Add(now, uint64(n))
		count += uint64(n)
		w.tick(now)
		now = w.clock.now()
	}
	return count
}

// sendBatch numbers and sends up to n datagrams and returns how many the kernel accepted. The numbers of the others are
// used again, so that they do not count as lost.
func (w *worker) sendBatch(n int, now int64) (int, syscall.Errno) {
	p := w.packets
	vlen, filled := 0, 0
	for vlen < batch && filled < n {
		k := min(p.segments, n-filled)
		at := vlen * p.stride
		for s := range k {
			putDatagram(p.buf[at+s*p.size:], p.number+uint64(filled+s), now)
		}
		p.iovs[vlen].SetLen(k * p.size)
		filled += k
		vlen++
	}
	r, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(w.fd),
		uintptr(unsafe.Pointer(&p.msgs)), uintptr(vlen), unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	taken := 0
	for i := range int(r) {
		taken += int(p.iovs[i].Len) / p.size
	}
	p.number += uint64(taken)
	return taken, 0
}

// From pollRate datagrams per second and flow on, a receiver polls its socket every pollEvery instead of being woken by
// every datagram. A wake-up costs the sender an interrupt of the receiver's CPU, which on a veth pair limits the rate;
// network cards moderate their interrupts for the same reason. The kernel's timestamps then give the arrival times, and
// the receive buffer holds the datagrams between two polls.
const (
	pollRate  = 50_000
	pollEvery = 50_000 // ns
)

// polls reports whether the receivers of a workload poll.
func polls(w Spec) bool {
	return w.Searches() || w.Kind == UDPUnpaced || w.Rate/float64(w.Flows) >= pollRate
}

// receivePackets counts datagrams until the socket is shut down.
func (w *worker) receivePackets() {
	polled := polls(w.spec)
	for {
		r, e := w.receiveBatch()
		now := w.clock.now()
		if e != 0 {
			if retry(e) || e == syscall.ECONNREFUSED {
				continue
			}
			w.fail("receive", e)
			return
		}
		if !w.countMessages(r, now) {
			return
		}
		w.tick(now)
		if polled && r < batch {
			sleep(pollEvery)
		}
	}
}

// receiveBatch waits for a datagram and receives all that have arrived by then.
func (w *worker) receiveBatch() (int, syscall.Errno) {
	w.packets.resetControls()
	r, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(w.fd),
		uintptr(unsafe.Pointer(&w.packets.msgs)), batch, unix.MSG_WAITFORONE, 0, 0)
	return int(r), e
}

// resetControls restores the header fields that the kernel overwrites.
func (p *packets) resetControls() {
	if !p.controls {
		return
	}
	for i := range p.msgs {
		p.msgs[i].hdr.Control = (*byte)(unsafe.Pointer(&p.control[i]))
		p.msgs[i].hdr.SetControllen(controlSize)
	}
}

// countMessages accounts for the n messages of one call. It returns false if the socket was shut down.
func (w *worker) countMessages(n int, now int64) bool {
	p := w.packets
	good := uint64(0)
	for i := range n {
		length := int(p.msgs[i].length)
		if length == 0 {
			return false
		}
		size, arrived := length, now
		if p.controls {
			size, arrived = p.parseControls(i, length, now)
		}
		if size != p.size || length%size != 0 {
			w.refused++
			continue
		}
		b := p.buf[i*p.stride:]
		for at := 0; at < length; at += size {
			seq, sent := getDatagram(b[at:])
			if seq >= 1<<56 { // a repeated hello, which begins with a letter
				w.refused++
				continue
			}
			w.sequence.Observe(seq, sent, arrived)
			good++
		}
	}
	w.received.Add(now, good)
	p.count.Add(good)
	return true
}

// parseControls reads the control messages of message i: the size of the datagrams that the kernel joined (UDP_GRO),
// and their arrival time (SCM_TIMESTAMPNS). The defaults are one datagram of the whole length, and now.
func (p *packets) parseControls(i, length int, now int64) (size int, arrived int64) {
	size, arrived = length, now
	control := (*[controlSize]byte)(unsafe.Pointer(&p.control[i]))
	left := min(int(p.msgs[i].hdr.Controllen), controlSize)
	for at := 0; left-at >= unix.SizeofCmsghdr; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
		data := at + unix.CmsgLen(0)
		switch {
		case int(h.Len) < unix.CmsgLen(0) || at+int(h.Len) > left:
			return size, arrived
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && int(h.Len) >= unix.CmsgLen(4):
			size = int(*(*int32)(unsafe.Pointer(&control[data])))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && int(h.Len) >= unix.CmsgLen(16):
			ts := (*unix.Timespec)(unsafe.Pointer(&control[data]))
			arrived = ts.Nano()
		}
		at += unix.CmsgSpace(int(h.Len) - unix.CmsgLen(0))
	}
	if size <= 0 || size > length {
		size = length
	}
	return size, arrived
}
