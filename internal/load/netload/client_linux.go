package netload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Run carries out one side of a run and returns its results. A server calls ready once, with the address that it
// listens on. When ctx ends, Run stops within a few tenths of a second. It turns the garbage collector off for the
// whole process and leaves it off; the agent turns it on again when no run is in progress.
func Run(ctx context.Context, c Config, ready func(netip.AddrPort)) (Report, error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	late := fmt.Errorf("the run took longer than its bound of %s", c.bound())
	ctx, cancel := context.WithTimeoutCause(ctx, c.bound(), late)
	defer cancel()
	if c.Role == Server {
		return serve(ctx, c, ready)
	}
	return runClient(ctx, c)
}

func runClient(ctx context.Context, c Config) (Report, error) {
	idle, err := c.measureIdle()
	if err != nil {
		return Report{}, err
	}
	t := newTeam(c)
	memory := usedMemory()
	tuneRuntime(len(t.plan))
	control, err := dialControl(ctx, c)
	if err != nil {
		return Report{}, err
	}
	defer control.conn.Close()
	defer context.AfterFunc(ctx, func() { control.conn.Close(); t.abort() })()
	defer t.release()
	t.openSampler()
	if err := t.open(ctx); err != nil {
		t.abandon()
		return Report{}, err
	}
	found, err := t.runFlows(ctx, control)
	if err != nil {
		t.abandon()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return Report{}, err
	}
	r, err := t.report()
	if err != nil {
		return r, err
	}
	r.Cost.Idle, r.Cost.IdleMemory, r.Sweep = idle, memory, found
	return r, nil
}

// measureIdle returns how many CPUs are busy on average while no run is in progress.
func (c Config) measureIdle() (float64, error) {
	if c.Watch == nil {
		return 0, nil
	}
	return c.Watch(c.Idle)
}

// abandon stops all workers of a run that failed and waits for them.
func (t *team) abandon() {
	t.abort()
	select {
	case <-t.run:
	default:
		close(t.run) // releases workers that wait for the run to begin
	}
	t.closeOrders()
	t.selfEnding.Wait()
	t.untilShutdown.Wait()
}

// runFlows carries out the run once all flows are open, and returns what a search found.
func (t *team) runFlows(ctx context.Context, control *link) (found *SweepReport, err error) {
	begun, err := control.ask(message{Op: opGo})
	if err != nil {
		return nil, err
	}
	t.begin(ctx)
	if t.config.searches() {
		if found, err = t.search(control, max(t.bufferCapacity(), begun.Holds)); err != nil {
			return nil, err
		}
	}
	t.selfEnding.Wait()
	response, err := control.ask(message{Op: opEnd, Sent: t.sentDatagrams()})
	if err != nil {
		return nil, err
	}
	t.awaitDatagrams(response.Sent)
	t.shutdown()
	t.untilShutdown.Wait()
	return found, nil
}

// search runs the trials of a sweep. held is how many datagrams the receivers' buffers can hold.
func (t *team) search(control *link, held float64) (*SweepReport, error) {
	s := newSweep(t.config.Workload.Loss, held)
	var before message
	for {
		rate, done := s.Next()
		rate = min(rate, t.config.Workload.Limit()/float64(8*t.config.Workload.Size))
		each := s.Duration(rate)
		// A sweep that takes longer than planned ends early with the trials so far.
		if done || t.clock.now()+int64(each+2*drain) > t.timeline.Begin {
			break
		}
		result, err := t.tryRate(control, rate, each, &before)
		if err != nil {
			return nil, err
		}
		s.Record(result)
	}
	t.closeOrders()
	return &SweepReport{Rate: cmp.Or(s.passed, s.Fallback()), Trials: s.trials, Step: s.Step()}, nil
}

// tryRate runs one trial: the senders of both sides send for d at a rate. Then it counts the datagrams sent and
// received since before, and updates before.
func (t *team) tryRate(control *link, rate float64, d time.Duration, before *message) (Trial, error) {
	if _, err := control.ask(message{Op: opTrial, Rate: rate, Seconds: d.Seconds()}); err != nil {
		return Trial{}, err
	}
	now := t.clock.now()
	t.order(rate, now, now+int64(d))
	if len(t.senders()) == 0 {
		time.Sleep(d)
	}
	t.awaitOrders()
	other, err := control.ask(message{Op: opCount})
	if err != nil {
		return Trial{}, err
	}
	t.awaitQuiet()
	all := message{Sent: t.sentDatagrams() + other.Sent, Received: t.receivedDatagrams() + other.Received}
	trial := Trial{Rate: rate, Sent: all.Sent - before.Sent, Received: all.Received - before.Received}
	*before = all
	directions := 1.0
	if t.config.Workload.Direction == Both {
		directions = 2
	}
	trial.Achieved = float64(trial.Sent) / d.Seconds() / directions
	return trial, nil
}

// errNotServer is returned if what listens closes the control connection without a response.
var errNotServer = errors.New("closed the connection: it is not this run's server")

// dialControl opens the control connection. The server may still be starting, so failed attempts are repeated until
// dialTimeout has passed. A proxy of a mesh accepts connections for a server that does not listen yet, and closes them.
func dialControl(ctx context.Context, c Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialer net.Dialer
	for {
		wait := 500 * time.Microsecond
		conn, err := dialer.DialContext(ctx, "tcp", c.Addr.String())
		if err == nil {
			wait = 20 * time.Millisecond
			var l *link
			if l, err = authenticate(conn, c.Token); !errors.Is(err, errNotServer) {
				return l, err
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(err, errNotServer) {
				return nil, fmt.Errorf("what listens at %s %w", c.Addr, err)
			}
			return nil, fmt.Errorf("no server at %s within %s: %w", c.Addr, dialTimeout, err)
		case <-time.After(wait):
		}
	}
}

// authenticate sends the token and waits for the server to accept it. It closes conn on errors.
func authenticate(conn net.Conn, token Token) (*link, error) {
	l := newLink(conn)
	conn.SetDeadline(time.Now().Add(dialTimeout))
	_, err := conn.Write(hello{Purpose: controlPurpose, Token: token}.append(nil))
	var m message
	if err == nil {
		m, err = l.receive()
	}
	if err == nil && m.Op != opWelcome {
		err = fmt.Errorf("unexpected %q", m.Op)
	}
	if err != nil {
		conn.Close()
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			return nil, errNotServer
		}
		return nil, fmt.Errorf("open the control connection: %w", err)
	}
	conn.SetDeadline(time.Time{})
	return l, nil
}

// open opens all flows, one after the other, and starts their workers.
func (t *team) open(ctx context.Context) error {
	var ready sync.WaitGroup
	for _, f := range t.plan {
		w := newWorker(t.shared, f, t.config)
		hello := hello{Purpose: flowPurpose, Flow: uint16(f.Index), Token: t.config.Token}
		var err error
		switch {
		case !f.persistent():
			hello.Purpose = cyclePurpose
			w.cycle = newCycler(t.config.Addr, hello, t.config.Workload.Request)
		case f.Work == workEcho:
			w.fd, w.echo, err = openEcho(t.config.Addr.Addr(), t.config.Workload.Size)
		case f.udp():
			w.fd, err = openUDP(ctx, t.config.Addr, hello, t.config.Workload)
		default:
			w.fd, err = openTCP(t.config.Addr, hello, t.config.Workload)
		}
		if err == nil {
			err = t.prepare(w)
		}
		if err != nil {
			if w.fd >= 0 {
				unix.Close(w.fd)
			}
			return fmt.Errorf("open flow %d of %d to %s: %w", f.Index+1, len(t.plan), t.config.Addr, err)
		}
		ready.Add(1)
		t.start(w, ready.Done)
	}
	ready.Wait()
	return nil
}

// openTCP connects a flow and waits until the server has accepted it. With an error, the caller closes the descriptor
// unless it is -1.
func openTCP(a netip.AddrPort, h hello, w Spec) (int, error) {
	fd, err := openSocket(a.Addr(), unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	ack := make([]byte, ackSize)
	err = setTimeouts(fd, dialTimeout)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err == nil {
		err = tuneTCP(fd, w)
	}
	if err == nil {
		err = retryInterrupted(func() error { return unix.Connect(fd, sockaddr(a)) })
	}
	if err == nil {
		_, err = unix.Write(fd, h.append(nil))
	}
	for n := 0; err == nil && n < ackSize; {
		var k int
		err = retryInterrupted(func() (err error) { k, err = unix.Read(fd, ack[n:]); return err })
		if err == nil && k == 0 {
			err = errors.New("the server closed it")
		}
		n += k
	}
	if err == nil && !isAck(ack, h.Flow) {
		err = errors.New("the server's acknowledgement is malformed")
	}
	if err == nil {
		err = setTimeouts(fd, 0)
	}
	return fd, err
}

// retryInterrupted repeats a call that a signal interrupted.
func retryInterrupted(call func() error) error {
	for {
		err := call()
		if errors.Is(err, unix.EISCONN) {
			return nil
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EALREADY) {
			return err
		}
	}
}

// udpRepeat is how long openUDP waits for the response to an opening before it sends the opening again.
const udpRepeat = 100 * time.Millisecond

// openUDP opens a flow of datagrams; errors are as for openTCP. The opening may be lost, so it is repeated until it is
// answered.
func openUDP(ctx context.Context, a netip.AddrPort, h hello, w Spec) (int, error) {
	fd, err := openSocket(a.Addr(), unix.SOCK_DGRAM)
	if err != nil {
		return -1, err
	}
	if err := growBuffers(fd, w); err != nil {
		return fd, err
	}
	if err := setTimeouts(fd, udpRepeat); err != nil {
		return fd, err
	}
	if err := unix.Connect(fd, sockaddr(a)); err != nil {
		return fd, err
	}
	response := make([]byte, ackSize+1)
	for deadline := time.Now().Add(dialTimeout); time.Now().Before(deadline) && ctx.Err() == nil; {
		if _, err := unix.Write(fd, h.append(nil)); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return fd, err
		}
		n, err := unix.Read(fd, response)
		if err == nil && isAck(response[:max(n, 0)], h.Flow) {
			return fd, setTimeouts(fd, 0)
		}
	}
	return fd, fmt.Errorf("no response to UDP datagrams within %s", dialTimeout)
}
