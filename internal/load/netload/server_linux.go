package netload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/agent"
)

// A server is the listening side of a run.
type server struct {
	*team
	addr          netip.AddrPort
	listener      int
	openingSocket int // UDP socket for the openings of flows; -1: none
	pending       agent.Admission
	control       chan *link
	handedOver    atomic.Bool // the listening socket belongs to the workers
	closing       atomic.Bool
	refused       atomic.Uint64
	lateCycles    atomic.Uint64 // cycles served by serveLate
	taken         []atomic.Bool // by index in the plan: the flow is open
	loops         sync.WaitGroup
}

func serve(ctx context.Context, c Config, ready func(netip.AddrPort)) (Report, error) {
	s, err := newServer(c)
	if err != nil {
		return Report{}, err
	}
	tuneRuntime(len(s.plan))
	s.loops.Go(s.accept)
	if s.openingSocket >= 0 {
		s.loops.Go(s.acceptUDP)
	}
	ready(s.addr)
	r, err := s.session(ctx)
	s.close()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	r.Refused += s.refused.Load()
	r.Answered += s.lateCycles.Load()
	return r, err
}

// newServer binds one port for TCP and, if the workload needs it, for UDP.
func newServer(c Config) (*server, error) {
	s := &server{team: newTeam(c), openingSocket: -1, control: make(chan *link, 1)}
	s.taken = make([]atomic.Bool, len(s.plan))
	// A port that the kernel chooses for TCP may be in use for UDP.
	for range 16 {
		var err error
		if s.listener, s.addr, err = listenTCP(c.Addr, c.Workload); err != nil {
			return nil, err
		}
		if s.cycles() {
			if err := setTimeout(s.listener, unix.SO_RCVTIMEO, openingTimeout); err != nil {
				unix.Close(s.listener)
				return nil, err
			}
		}
		if !c.Workload.Kind.UDP() {
			return s, nil
		}
		if s.openingSocket, err = bindUDP(s.addr, c.Workload); err == nil {
			return s, nil
		}
		unix.Close(s.listener)
		if c.Addr.Port() != 0 {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no port at %s is free for TCP and UDP", c.Addr.Addr())
}

// cycles reports whether the workers themselves accept the run's connections (tcp-crr).
func (s *server) cycles() bool { return len(s.plan) > 0 && !s.plan[0].persistent() }

// accept accepts connections. With tcp-crr it ends when the control connection is open, and leaves the listening socket
// to the workers.
func (s *server) accept() {
	for !s.closing.Load() && !s.handedOver.Load() {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_CLOEXEC)
		if err != nil {
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBADF) {
				return
			}
			continue // timed out, interrupted, aborted
		}
		s.admitAfterOpening(fd, nil)
	}
}

// admitAfterOpening reads the opening of a connection in the background, and then admits or refuses the connection.
// head is the part of the opening that was read already.
func (s *server) admitAfterOpening(fd int, head []byte) {
	var h hello
	var err error
	s.pending.Add(
		func() { h, err = readConnection(fd, head) },
		func() { _ = unix.Shutdown(fd, unix.SHUT_RDWR) },
		func() {
			if err != nil || !h.Token.Equal(s.config.Token) {
				s.refuse(fd)
				return
			}
			s.admit(fd, h)
		})
}

// readConnection reads the opening of a connection, of which head has been read already. It takes at most
// agent.AdmissionTime, however slowly the rest arrives.
func readConnection(fd int, head []byte) (hello, error) {
	b := make([]byte, helloSize)
	n := copy(b, head)
	for end := time.Now().Add(agent.AdmissionTime); n < helloSize; {
		left := time.Until(end)
		if left <= 0 {
			return hello{}, errHello
		}
		if err := setTimeouts(fd, max(left, time.Millisecond)); err != nil {
			return hello{}, err
		}
		k, err := unix.Read(fd, b[n:])
		if err != nil && !errors.Is(err, unix.EINTR) || err == nil && k == 0 {
			return hello{}, errHello
		}
		n += max(k, 0)
	}
	return parseHello(b)
}

// refuse closes a connection without sending a byte, and counts it.
func (s *server) refuse(fd int) {
	s.refused.Add(1)
	s.foreignSeen.Store(s.handedOver.Load())
	unix.Close(fd)
}

// admit passes a connection that has presented the token to the handler of its purpose.
func (s *server) admit(fd int, h hello) {
	switch {
	case h.Purpose == controlPurpose:
		s.admitControl(fd)
	case h.Purpose == flowPurpose:
		s.admitFlow(fd, int(h.Flow))
	case s.handedOver.Load():
		s.serveLate(fd)
	default: // a cycle before the workers have taken over
		s.refuse(fd)
	}
}

// serveLate serves a cycle whose opening came too late for the worker that accepted it.
func (s *server) serveLate(fd int) {
	conn := os.NewFile(uintptr(fd), "cycle")
	defer conn.Close()
	_ = setTimeouts(fd, agent.AdmissionTime)
	if _, err := io.CopyN(io.Discard, conn, int64(s.config.Workload.Request)); err != nil {
		return
	}
	if _, err := conn.Write(s.payload[:s.config.Workload.Response]); err == nil {
		s.lateCycles.Add(1)
	}
}

// admitControl accepts the control connection and refuses a second one.
func (s *server) admitControl(fd int) {
	file := os.NewFile(uintptr(fd), "control")
	conn, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		s.refused.Add(1)
		return
	}
	select {
	case s.control <- newLink(conn):
	default:
		s.refused.Add(1)
		conn.Close()
	}
}

// admitFlow accepts a TCP flow of the plan and starts its worker.
func (s *server) admitFlow(fd, index int) {
	if index >= len(s.plan) || s.plan[index].udp() || !s.plan[index].persistent() || s.taken[index].Swap(true) ||
		setTimeouts(fd, 0) != nil {
		s.refuse(fd)
		return
	}
	w := newWorker(s.shared, s.plan[index], s.config)
	w.fd = fd
	if err := s.prepare(w); err != nil {
		s.refuse(fd)
		return
	}
	s.start(w, func() {})
	// The client sends nothing before this acknowledgement; then only the worker uses the socket.
	_, _ = unix.Write(fd, appendAck(nil, uint16(index)))
}

// acceptUDP accepts flows of datagrams. Each gets its own socket on the same port, connected to the flow's client, so
// that it receives only that client's datagrams.
func (s *server) acceptUDP() {
	b := make([]byte, helloSize+1)
	for !s.closing.Load() {
		n, peer, err := unix.Recvfrom(s.openingSocket, b, 0)
		if err != nil || n == 0 || peer == nil {
			continue // timed out, interrupted, or shut down
		}
		h, err := parseHello(b[:n])
		if err != nil || n != helloSize || !h.Token.Equal(s.config.Token) || h.Purpose != flowPurpose ||
			int(h.Flow) >= len(s.plan) || !s.plan[h.Flow].udp() {
			s.refused.Add(1)
			continue
		}
		if s.taken[h.Flow].Load() { // the acknowledgement was lost
			_ = unix.Sendto(s.openingSocket, appendAck(nil, h.Flow), 0, peer)
			continue
		}
		if err := s.admitUDP(h.Flow, peer); err != nil {
			s.refused.Add(1)
		}
	}
}

func (s *server) admitUDP(index uint16, peer unix.Sockaddr) error {
	fd, err := bindUDP(s.addr, s.config.Workload)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, peer); err != nil {
		unix.Close(fd)
		return fmt.Errorf("connect to %s: %w", addrPort(peer), err)
	}
	w := newWorker(s.shared, s.plan[index], s.config)
	w.fd = fd
	if err := s.prepare(w); err != nil {
		unix.Close(fd)
		return err
	}
	s.taken[index].Store(true)
	s.start(w, func() {})
	_, err = unix.Write(fd, appendAck(nil, index))
	return err
}

// session carries out the run that the client leads over the control connection, and returns when that connection ends.
func (s *server) session(ctx context.Context) (Report, error) {
	memory := usedMemory()
	idle, err := s.config.measureIdle()
	if err != nil {
		return Report{}, err
	}
	var control *link
	select {
	case control = <-s.control:
	case <-ctx.Done():
		return Report{}, fmt.Errorf("no client came: %w", context.Cause(ctx))
	}
	defer control.conn.Close()
	defer context.AfterFunc(ctx, func() { control.conn.Close() })()
	if s.cycles() {
		s.startCycles()
	}
	defer s.release()
	s.openSampler()
	if err := s.serveControl(ctx, control); err != nil {
		s.abandon()
		return Report{}, err
	}
	r, err := s.report()
	r.Cost.Idle, r.Cost.IdleMemory = idle, memory
	return r, err
}

// startCycles gives the listening socket to as many workers as the client has.
func (s *server) startCycles() {
	s.handedOver.Store(true)
	s.loops.Wait()
	for _, f := range s.plan {
		w := newWorker(s.shared, f, s.config)
		w.fd, w.handOver = s.listener, s.admitAfterOpening
		s.start(w, func() {})
	}
}

// serveControl carries out the client's messages until opEnd.
func (s *server) serveControl(ctx context.Context, control *link) error {
	if err := control.send(message{Op: opWelcome}); err != nil {
		return err
	}
	begun := false
	for {
		m, err := control.receive()
		if err != nil {
			return fmt.Errorf("the client went away: %w", err)
		}
		response := message{Op: m.Op}
		switch {
		case m.Op == opGo && !begun && len(s.members()) == len(s.plan):
			begun = true
			defer context.AfterFunc(ctx, s.abort)()
			s.begin(ctx)
			response.Holds = s.bufferCapacity()
		case m.Op == opTrial && begun && m.valid(s.config):
			now := s.clock.now()
			s.order(m.Rate, now, now+int64(m.Seconds*1e9))
		case m.Op == opCount && begun && s.config.searches():
			s.awaitOrders()
			s.awaitQuiet()
			response.Sent, response.Received = s.sentDatagrams(), s.receivedDatagrams()
		case m.Op == opEnd && begun:
			s.closeOrders()
			s.selfEnding.Wait()
			response.Sent = s.sentDatagrams()
			if err := control.send(response); err != nil {
				return err
			}
			s.awaitDatagrams(m.Sent)
			s.shutdown()
			s.untilShutdown.Wait()
			return nil
		default:
			return fmt.Errorf("control connection: %q makes no sense here", m.Op)
		}
		if err := control.send(response); err != nil {
			return err
		}
	}
}

// valid reports whether a trial is within the limits of the run.
func (m message) valid(c Config) bool {
	return c.searches() && m.Rate > 0 && m.Rate <= Unpaced && m.Seconds >= 0 && m.Seconds <= c.bound().Seconds()
}

// close ends the loops, evicts connections that have not presented a token, and closes the port.
func (s *server) close() {
	s.closing.Store(true)
	_ = unix.Shutdown(s.listener, unix.SHUT_RDWR)
	if s.openingSocket >= 0 {
		_ = unix.Shutdown(s.openingSocket, unix.SHUT_RDWR)
	}
	s.loops.Wait()
	s.pending.Close()
	unix.Close(s.listener)
	if s.openingSocket >= 0 {
		unix.Close(s.openingSocket)
	}
	select {
	case l := <-s.control:
		l.conn.Close()
	default:
	}
}
