package mesh

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Limits of HTTP/2, the defaults of Istio's ztunnel except for the frame. The windows are in bytes.
const (
	streamWindow     = 4 << 20
	connectionWindow = 16 << 20
	maxStreams       = 100
	// frameSize is the largest frame, in bytes: four TLS records.
	frameSize = 64 << 10
)

// A session is an HTTP/2 connection between two proxies. The end that dialled it opens streams, each of which carries a
// pod's connection.
type session struct {
	conn   *batchedConn
	framer *http2.Framer
	// accept serves a stream that the peer has opened to a destination; nil: the peer opens none.
	accept func(st *stream, destination string)

	writing sync.Mutex // guards writes by the framer, and the encoder
	encoder *hpack.Encoder
	headers bytes.Buffer // of the encoder
	last    uint32       // last stream that this end opened

	mu       sync.Mutex
	streams  map[uint32]*stream
	claimed  int        // streams that are open or about to be
	window   int64      // bytes that may be sent
	initial  int64      // the same for new streams
	grown    *sync.Cond // a window has grown, or the session has failed
	received uint32     // bytes whose window the peer has not got back
	err      error      // why the session has ended; nil: it has not
	control  []func() error
	waiting  *sync.Cond // for control

	chunks sync.Pool // of received data: *[]byte with a capacity of frameSize
}

// newSession starts HTTP/2 on a connection whose TLS handshake is complete. The caller calls serve.
func newSession(conn *tls.Conn, raw *batchedConn, accept func(*stream, string)) (*session, error) {
	raw.batch()
	s := &session{
		conn: raw, framer: http2.NewFramer(conn, conn), accept: accept, streams: map[uint32]*stream{},
		window: 65535, initial: 65535, // until the peer says otherwise (RFC 9113 section 6.9.2)
	}
	s.grown, s.waiting = sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	s.chunks.New = func() any { chunk := make([]byte, 0, frameSize); return &chunk }
	s.encoder = hpack.NewEncoder(&s.headers)
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.framer.SetMaxReadFrameSize(frameSize)
	s.framer.SetReuseFrames()
	err := s.write(func() error {
		if accept == nil {
			if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
				return err
			}
		}
		return errors.Join(
			s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
				http2.Setting{ID: http2.SettingMaxFrameSize, Val: frameSize},
				http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams}),
			s.framer.WriteWindowUpdate(0, connectionWindow-65535))
	})
	if err != nil {
		return nil, err
	}
	if accept != nil {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
			return nil, errors.Join(errors.New("the peer does not begin with HTTP/2"), err)
		}
	}
	go s.writeControl()
	return s, nil
}

// write writes frames and sends what they made.
func (s *session) write(frames func() error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := frames()
	if err == nil {
		err = s.conn.flush()
	}
	if err != nil {
		s.fail(err)
	}
	return err
}

// writeLater leaves frames to writeControl, so that the reader never waits for the peer to read. The caller holds mu.
func (s *session) writeLater(frames func() error) {
	s.control = append(s.control, frames)
	s.waiting.Signal()
}

// writeControl writes the frames of writeLater until the session ends.
func (s *session) writeControl() {
	for {
		s.mu.Lock()
		for len(s.control) == 0 && s.err == nil {
			s.waiting.Wait()
		}
		due, err := s.control, s.err
		s.control = nil
		s.mu.Unlock()
		if err != nil {
			return
		}
		for _, frames := range due {
			if s.write(frames) != nil {
				return
			}
		}
	}
}

// writeHeaders writes a HEADERS frame with pairs of names and values. The caller holds writing.
func (s *session) writeHeaders(id uint32, end bool, pairs ...string) error {
	s.headers.Reset()
	for i := 0; i < len(pairs); i += 2 {
		if err := s.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}); err != nil {
			return err
		}
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: s.headers.Bytes(), EndHeaders: true, EndStream: end,
	})
}

// fail ends the session and all its streams.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	for _, st := range s.streams {
		st.end(s.err)
	}
	s.grown.Broadcast()
	s.waiting.Broadcast()
	s.mu.Unlock()
	_ = s.conn.Close()
}

// claim reserves one stream of the session. It returns false if the session has ended or has all the streams it may.
func (s *session) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.claimed >= maxStreams {
		return false
	}
	s.claimed++
	return true
}

// open opens a stream to a destination and waits for the peer's response. The session must have been claimed.
func (s *session) open(destination string) (*stream, error) {
	var st *stream
	err := s.write(func() error {
		s.last += 2
		id := s.last - 1 // odd (RFC 9113 section 5.1.1)
		s.mu.Lock()
		st = s.add(id)
		s.mu.Unlock()
		return s.writeHeaders(id, false, ":method", "CONNECT", ":authority", destination)
	})
	if err == nil {
		err = st.awaitStatus()
	}
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// add adds a stream. The caller holds mu.
func (s *session) add(id uint32) *stream {
	st := &stream{session: s, id: id, window: s.initial, err: s.err}
	st.arrived = sync.NewCond(&s.mu)
	s.streams[id] = st
	return st
}

// serve reads frames until the session ends.
func (s *session) serve() {
	for {
		frame, err := s.framer.ReadFrame()
		if err == nil {
			err = s.receive(frame)
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// receive handles a frame of the peer.
func (s *session) receive(frame http2.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.DataFrame:
		s.receiveData(st, f)
	case *http2.MetaHeadersFrame:
		return s.receiveHeaders(st, f)
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			s.window += int64(f.Increment)
		} else if st != nil {
			st.window += int64(f.Increment)
		}
		s.grown.Broadcast()
	case *http2.RSTStreamFrame:
		if st != nil {
			st.end(fmt.Errorf("the peer has reset the stream: %v", f.ErrCode))
		}
	case *http2.SettingsFrame:
		s.receiveSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			data := f.Data
			s.writeLater(func() error { return s.framer.WritePing(true, data) })
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the peer ends the connection: %v", f.ErrCode)
	}
	return nil
}

// receiveData queues data for the stream's pod. The connection's window is given back at once, so that a pod that does
// not read delays only its own stream.
func (s *session) receiveData(st *stream, f *http2.DataFrame) {
	s.received += f.Length
	if n := s.received; n >= connectionWindow/4 {
		s.received = 0
		s.writeLater(func() error { return s.framer.WriteWindowUpdate(0, n) })
	}
	if st == nil || st.err != nil {
		return // it was reset
	}
	st.put(f.Data())
	st.ended = st.ended || f.StreamEnded()
	st.arrived.Signal()
}

// receiveHeaders handles a request or its response.
func (s *session) receiveHeaders(st *stream, f *http2.MetaHeadersFrame) error {
	switch {
	case s.accept == nil && st != nil:
		st.status, _ = strconv.Atoi(f.PseudoValue("status"))
		st.ended = st.ended || f.StreamEnded()
		st.arrived.Broadcast()
	case s.accept != nil && st == nil && f.PseudoValue("method") == "CONNECT":
		s.claimed++
		go s.accept(s.add(f.StreamID), f.PseudoValue("authority"))
	default:
		return errors.New("headers that no stream expects")
	}
	return nil
}

func (s *session) receiveSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		for _, st := range s.streams {
			st.window += int64(v) - s.initial
		}
		s.initial = int64(v)
		s.grown.Broadcast()
	}
	s.writeLater(s.framer.WriteSettingsAck)
}

// A batchedConn reads ahead, and collects what TLS writes until it is flushed, so that a frame of several records is
// one system call.
type batchedConn struct {
	net.Conn
	reader     *bufio.Reader
	mu         sync.Mutex
	collecting bool
	pending    []byte
}

func newBatchedConn(c net.Conn) *batchedConn {
	return &batchedConn{Conn: c, reader: bufio.NewReaderSize(c, 2*frameSize)}
}

func (c *batchedConn) Read(data []byte) (int, error) { return c.reader.Read(data) }

// batch begins to collect, after the handshake.
func (c *batchedConn) batch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collecting = true
}

func (c *batchedConn) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.collecting {
		return c.Conn.Write(data)
	}
	c.pending = append(c.pending, data...)
	return len(data), nil
}

func (c *batchedConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.Conn.Write(c.pending)
	c.pending = c.pending[:0]
	return err
}
