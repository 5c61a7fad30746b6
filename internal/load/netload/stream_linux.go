package netload

import (
	"golang.org/x/sys/unix"
)

// writeStream writes until the window ends and then closes its half of the connection.
func (w *worker) writeStream() {
	size := w.spec.Size
	if w.spec.Kind == TCPRRLoaded {
		size = DefaultStreamSize
	}
	buf := w.payload[:size]
	now := w.clock.now()
	for now < w.timeline.End && !w.stop.Load() {
		n, e := send(w.fd, buf)
		now = w.clock.now()
		if e != 0 {
			if retry(e) {
				continue
			}
			w.fail("write", e)
			return
		}
		w.sent.Add(now, uint64(n))
		w.tick(now)
	}
	_ = unix.Shutdown(w.fd, unix.SHUT_WR)
}

// readSize is the size of a reader's buffer in bytes: that of iperf3's default, small enough for a second-level cache.
const readSize = 128 << 10

// readStream reads until the writer closes its half.
func (w *worker) readStream() {
	buf := make([]byte, readSize)
	for {
		n, e := receive(w.fd, buf)
		now := w.clock.now()
		if e != 0 {
			if retry(e) {
				continue
			}
			w.fail("read", e)
			return
		}
		if n == 0 {
			w.complete = true
			return
		}
		w.received.Add(now, uint64(n))
		w.tick(now)
	}
}
