package mesh

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
)

// A stream carries a pod's connection in a session. The session's mu guards its fields.
type stream struct {
	session *session
	id      uint32
	window  int64      // bytes that may be sent
	arrived *sync.Cond // something of what follows has changed
	status  int        // the peer's response; 0: none yet
	queue   []*[]byte  // received data that was not taken yet
	ended   bool       // the peer sends no more
	err     error      // why the stream was cut; nil: it was not
	unread  uint32     // bytes that were taken and whose window the peer has not got back
}

// end cuts the stream. The caller holds mu.
func (st *stream) end(err error) {
	if st.err == nil {
		st.err = err
	}
	st.arrived.Broadcast()
	st.session.grown.Broadcast()
}

// awaitStatus waits for the response of the peer, and returns an error unless it has reached the destination.
func (st *stream) awaitStatus() error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for st.status == 0 && st.err == nil {
		st.arrived.Wait()
	}
	if st.err == nil && st.status != http.StatusOK {
		return fmt.Errorf("the peer responds with %d", st.status)
	}
	return st.err
}

// respond responds to the request that opened the stream. Any status except http.StatusOK ends it.
func (st *stream) respond(status int) error {
	s := st.session
	return s.write(func() error {
		return s.writeHeaders(st.id, status != http.StatusOK, ":status", strconv.Itoa(status))
	})
}

// put queues data, in the last chunk if it has room. The caller holds mu.
func (st *stream) put(data []byte) {
	if len(data) == 0 {
		return
	}
	if n := len(st.queue); n > 0 && cap(*st.queue[n-1])-len(*st.queue[n-1]) >= len(data) {
		*st.queue[n-1] = append(*st.queue[n-1], data...)
		return
	}
	chunk := st.session.chunks.Get().(*[]byte)
	*chunk = append((*chunk)[:0], data...)
	st.queue = append(st.queue, chunk)
}

// take waits for data and returns all there is; none means that the peer sends no more.
func (st *stream) take() ([]*[]byte, error) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(st.queue) == 0 && !st.ended && st.err == nil {
		st.arrived.Wait()
	}
	if st.err != nil {
		return nil, st.err
	}
	chunks := st.queue
	st.queue = nil
	return chunks, nil
}

// giveBack returns the window of n bytes that the pod has got, a quarter of the window at a time.
func (st *stream) giveBack(n uint32) error {
	s := st.session
	s.mu.Lock()
	st.unread += n
	due := st.unread
	if due < streamWindow/4 || st.ended {
		s.mu.Unlock()
		return nil
	}
	st.unread = 0
	s.mu.Unlock()
	return s.write(func() error { return s.framer.WriteWindowUpdate(st.id, due) })
}

// reserve waits until the windows allow to send something, and returns how much of most bytes may be sent.
func (st *stream) reserve(most int) (int, error) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for min(st.window, s.window) <= 0 && st.err == nil {
		s.grown.Wait()
	}
	if st.err != nil {
		return 0, st.err
	}
	n := min(int64(most), st.window, s.window)
	st.window -= n
	s.window -= n
	return int(n), nil
}

// send sends data, at most frameSize bytes, as far as the windows allow.
func (st *stream) send(data []byte) error {
	for len(data) > 0 {
		n, err := st.reserve(len(data))
		if err != nil {
			return err
		}
		err = st.session.write(func() error { return st.session.framer.WriteData(st.id, false, data[:n]) })
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// reset cuts the stream and lets the peer know.
func (st *stream) reset() {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.err == nil && s.err == nil {
		s.writeLater(func() error { return s.framer.WriteRSTStream(st.id, http2.ErrCodeCancel) })
	}
	st.end(errors.New("the pod's connection was cut"))
}

// close removes a stream that has ended both ways or was cut.
func (st *stream) close() {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.id)
	s.claimed--
}

// join carries data between the stream and a pod's connection until both directions have ended, or one is cut, which
// cuts both. It closes both.
func (st *stream) join(c *net.TCPConn) {
	cut := func() {
		st.reset()
		abort(c)
	}
	var outward sync.WaitGroup
	outward.Go(func() {
		if st.fromPod(c) != nil {
			cut()
		}
	})
	if st.toPod(c) != nil {
		cut()
	}
	outward.Wait()
	st.close()
	_ = c.Close()
}

// fromPod sends what the pod sends, and its end.
func (st *stream) fromPod(c *net.TCPConn) error {
	buf := make([]byte, frameSize)
	for {
		n, err := c.Read(buf)
		if sendErr := st.send(buf[:n]); sendErr != nil {
			return sendErr
		}
		if errors.Is(err, io.EOF) {
			return st.session.write(func() error { return st.session.framer.WriteData(st.id, true, nil) })
		}
		if err != nil {
			return err
		}
	}
}

// toPod writes what the peer sends to the pod, and its end.
func (st *stream) toPod(c *net.TCPConn) error {
	for {
		chunks, err := st.take()
		if err != nil {
			return err
		}
		if len(chunks) == 0 {
			return c.CloseWrite()
		}
		var buffers net.Buffers
		for _, chunk := range chunks {
			buffers = append(buffers, *chunk)
		}
		n, err := buffers.WriteTo(c)
		for _, chunk := range chunks {
			st.session.chunks.Put(chunk)
		}
		if err == nil {
			err = st.giveBack(uint32(n))
		}
		if err != nil {
			return err
		}
	}
}

// abort closes a connection so that its other end sees a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
