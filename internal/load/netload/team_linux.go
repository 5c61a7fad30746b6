package netload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A message is one line of the control connection.
type message struct {
	Op string `json:"op"`
	// Rate of a trial: datagrams per second over all flows of a direction.
	Rate float64 `json:"rate,omitempty"`
	// Seconds that a trial sends.
	Seconds float64 `json:"seconds,omitempty"`
	// Holds is how many datagrams this side's receive buffers can hold.
	Holds float64 `json:"holds,omitempty"`
	// Datagrams of this side since the run began.
	Sent     uint64 `json:"sent,omitempty"`
	Received uint64 `json:"received,omitempty"`
}

// The operations of the control connection, in their order. Each is answered with the same operation.
const (
	opWelcome = "welcome" // from the server only: the token is right
	opGo      = "go"      // all flows are open: start the run
	opTrial   = "trial"   // send at a rate for a time
	opCount   = "count"   // report the datagrams sent and received so far
	opEnd     = "end"     // everything was sent: drain and report
)

// A link is the control connection.
type link struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func newLink(conn net.Conn) *link {
	// A message is short; the limit stops a peer that sends an endless one.
	return &link{conn: conn, in: json.NewDecoder(io.LimitReader(conn, 1<<20)), out: json.NewEncoder(conn)}
}

func (l *link) send(m message) error {
	if err := l.out.Encode(m); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	return nil
}

func (l *link) receive() (message, error) {
	var m message
	if err := l.in.Decode(&m); err != nil {
		return m, fmt.Errorf("control connection: %w", err)
	}
	return m, nil
}

// ask sends m and returns the peer's response.
func (l *link) ask(m message) (message, error) {
	if err := l.send(m); err != nil {
		return m, err
	}
	response, err := l.receive()
	if err == nil && response.Op != m.Op {
		err = fmt.Errorf("control connection: %q was answered with %q", m.Op, response.Op)
	}
	return response, err
}

// A team holds all workers of one side of a run.
type team struct {
	*shared
	config        Config
	plan          []flow
	mu            sync.Mutex
	workers       []*worker      // guarded by mu
	endOrders     sync.Once      // closes the senders' orders
	selfEnding    sync.WaitGroup // workers that end by themselves: senders, clients and stream readers
	untilShutdown sync.WaitGroup // workers that end when their socket is shut down
	windowEnds    chan snapshots
	alarms        []*time.Timer    // set by setAlarms
	sampler       *profile.Sampler // nil if there is none; unsampled is the reason
	unsampled     string
}

// snapshots holds the snapshots at the beginning and the end of the window.
type snapshots struct {
	before, after snapshot
	err           error
}

func newTeam(c Config) *team {
	t := &team{shared: newShared(c), config: c, plan: flows(c.Workload), windowEnds: make(chan snapshots, 1)}
	if c.Role == Server && c.Workload.Kind == Ping {
		t.plan = nil // the server's kernel responds
	}
	return t
}

// openSampler opens the CPU sampler, if the run is profiled, before the clock starts.
func (t *team) openSampler() {
	if !t.config.Profile {
		return
	}
	var err error
	if t.sampler, err = profile.Open(); err != nil {
		t.unsampled = err.Error()
	}
}

// start adds a worker and starts its thread, which waits for the run to begin.
func (t *team) start(w *worker, ready func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers = append(t.workers, w)
	group := &t.untilShutdown
	if w.endsItself() {
		group = &t.selfEnding
	}
	group.Go(func() { w.runThread(ready) })
}

// members returns the workers added so far.
func (t *team) members() []*worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.workers)
}

// endsItself reports whether the worker's loop ends with the window or with the peer's stream, without a shutdown of
// its socket.
func (w *worker) endsItself() bool {
	if w.flow.Work == workStream {
		return true
	}
	if w.flow.Work == workPackets {
		return w.flow.Sender == w.role
	}
	return w.role == Client
}

// prepare sets the options of a worker's socket and makes the state that its work needs.
func (t *team) prepare(w *worker) error {
	spec := w.spec
	switch w.flow.Work {
	case workStream:
		return limitRate(w.fd, spec)
	case workPackets:
		sender := w.flow.Sender == w.role
		w.packets = newPackets(spec.Size, spec.Offload, sender)
		if !sender {
			w.sequence = newSequence(w.timeline)
		}
		if spec.Offload {
			if err := setOffload(w.fd, spec.Size, sender); err != nil {
				return err
			}
		}
		if !sender && polls(spec) {
			// The kernel reports when datagrams arrived.
			if err := unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
				return fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
			}
		}
		w.packets.controls = !sender && (spec.Offload || polls(spec))
		w.pacer = t.pacer(w.flow, max(t.config.offered(), 1))
	case workEcho:
		w.pacer = t.pacer(w.flow, spec.Rate)
		return setTimeouts(w.fd, spec.Timeout)
	case workRequest, workDatagram, workCycle:
		if w.flow.Work == workDatagram && w.role == Client {
			// A response may be lost, so the wait needs a time-out.
			if err := setTimeouts(w.fd, spec.Timeout); err != nil {
				return err
			}
		}
		if spec.OpenLoop() {
			w.pacer = t.pacer(w.flow, spec.Rate)
		}
	}
	return nil
}

// pacer returns the schedule of a flow; flows with the same work and sender share the rate.
func (t *team) pacer(f flow, rate float64) Pacer {
	before, all := 0, 0
	for _, o := range t.plan {
		if o.Work != f.Work || o.Sender != f.Sender {
			continue
		}
		if o.Index < f.Index {
			before++
		}
		all++
	}
	return NewPacer(rate, before, all)
}

// begin starts the clock and the workers, and takes the snapshots of the kernel's counters in the background.
func (t *team) begin(ctx context.Context) {
	t.clock.base = time.Now()
	close(t.run)
	t.setAlarms()
	if t.config.searches() {
		return
	}
	go t.measureWindow(ctx)
	t.order(t.config.offered(), 0, t.timeline.End)
	t.closeOrders()
}

// setAlarms bounds every wait: requests without a response end overtime after the window, streams that have not drained
// end after half of the grace time.
func (t *team) setAlarms() {
	after := func(d time.Duration, wake func(*worker)) {
		t.alarms = append(t.alarms, time.AfterFunc(d, func() {
			for _, w := range t.members() {
				wake(w)
			}
		}))
	}
	after(time.Duration(t.timeline.End)+overtime, func(w *worker) {
		if w.role == Client && w.endsItself() && w.flow.Work != workStream {
			w.wake()
		}
	})
	after(time.Duration(t.timeline.End)+grace/2, (*worker).wake)
}

// wake makes a worker's blocked system call return. It does nothing once the sockets are closed.
func (w *worker) wake() {
	fd := w.fd
	if w.cycle != nil {
		fd = int(w.cycle.current.Load())
	}
	if fd >= 0 && !w.closed.Load() {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
}

// measureWindow takes snapshots of the counters when the window begins and when it ends.
func (t *team) measureWindow(ctx context.Context) {
	// With the highest priority, if permitted: on a busy machine a snapshot would be late. It takes well under a
	// millisecond, twice a run. The thread ends with this goroutine.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	var r snapshots
	senders := t.tcpSenders()
	if r.before, r.err = t.snapshotAt(ctx, t.timeline.Begin, senders); r.err == nil {
		r.err = t.sample(func() (err error) {
			r.after, err = t.snapshotAt(ctx, t.timeline.End, senders)
			return err
		})
	}
	t.windowEnds <- r
}

// sample calls until, and meanwhile samples the CPUs if there is a sampler.
func (t *team) sample(until func() error) error {
	if t.sampler == nil {
		return until()
	}
	if err := t.sampler.Begin(); err != nil {
		return err
	}
	err := until()
	return errors.Join(err, t.sampler.End())
}

// snapshotAt waits for a time of the run's clock and takes a snapshot.
func (t *team) snapshotAt(ctx context.Context, at int64, senders []*worker) (snapshot, error) {
	select {
	case <-time.After(time.Duration(at - t.clock.now())):
		return takeSnapshot(senders, t.config.Count)
	case <-ctx.Done():
		return snapshot{}, context.Cause(ctx)
	}
}

// tcpSenders returns the workers whose sockets have useful TCP_INFO: those that send.
func (t *team) tcpSenders() []*worker {
	return slices.DeleteFunc(t.members(), func(w *worker) bool {
		return w.flow.Work != workRequest && (w.flow.Work != workStream || w.flow.Sender != w.role)
	})
}

// senders returns the workers that send datagrams.
func (t *team) senders() []*worker {
	return slices.DeleteFunc(t.members(), func(w *worker) bool {
		return w.flow.Work != workPackets || w.flow.Sender != w.role
	})
}

// order makes the senders of datagrams send at a rate, summed over all of them, from begin to end of the run's clock.
func (t *team) order(rate float64, begin, end int64) {
	list := t.senders()
	for _, w := range list {
		w.packets.orders <- sendOrder{rate: rate / float64(len(list)), begin: begin, end: end}
	}
}

// closeOrders ends the senders' loops after their current order. Only the first call has an effect.
func (t *team) closeOrders() {
	t.endOrders.Do(func() {
		for _, w := range t.senders() {
			close(w.packets.orders)
		}
	})
}

// awaitOrders waits until this side's senders have completed their order.
func (t *team) awaitOrders() {
	for _, w := range t.senders() {
		<-w.packets.sent
	}
}

// awaitQuiet waits until no more datagrams arrive, for at most drain.
func (t *team) awaitQuiet() {
	last := t.receivedDatagrams()
	for range int(drain / settleStep) {
		time.Sleep(settleStep)
		now := t.receivedDatagrams()
		if now == last {
			return
		}
		last = now
	}
}

// settleStep is a time after which all datagrams have arrived if none came meanwhile: the peer's message that asks for
// the count took the same path after them.
const settleStep = 3 * time.Millisecond

// receivedDatagrams returns how many datagrams have arrived so far.
func (t *team) receivedDatagrams() (n uint64) {
	for _, w := range t.members() {
		if w.packets != nil {
			n += w.packets.count.Load()
		}
	}
	return n
}

// awaitDatagrams waits until as many datagrams have arrived as were sent, for at most drain.
func (t *team) awaitDatagrams(sent uint64) {
	for deadline := time.Now().Add(drain); t.receivedDatagrams() < sent && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// shutdown wakes every worker that waits for its peer.
func (t *team) shutdown() {
	for _, w := range t.members() {
		w.wake()
	}
}

// abort makes every worker stop as soon as possible.
func (t *team) abort() {
	t.stop.Store(true)
	t.shutdown()
}

// release closes the sampler and the sockets; all workers must have ended.
func (t *team) release() {
	for _, alarm := range t.alarms {
		alarm.Stop()
	}
	if t.sampler != nil {
		t.sampler.Close()
	}
	for _, w := range t.members() {
		w.closed.Store(true)
		if w.flow.persistent() {
			unix.Close(w.fd)
		}
	}
}

func (t *team) sentDatagrams() (n uint64) {
	for _, w := range t.senders() {
		n += w.sent.Tally().Total()
	}
	return n
}

// report combines the workers' results; all workers must have ended.
func (t *team) report() (Report, error) {
	if t.config.searches() {
		return Report{Role: t.config.Role, Version: Version()}, nil
	}
	ends := <-t.windowEnds
	if ends.err != nil {
		return Report{}, ends.err
	}
	r := Report{Role: t.config.Role, Version: Version(), ReceivedAll: true,
		Window: float64(t.timeline.End-t.timeline.Begin) / 1e9, Cost: cost(ends.before, ends.after), Unsampled: t.unsampled}
	if t.sampler != nil {
		r.Layers = t.sampler.Seconds()
	}
	r.addCounters(ends.before, ends.after)
	senders := t.tcpSenders()
	r.TCP = tcpReport(ends.before, ends.after, senders)
	latency, waited, late := NewHistogram(), NewHistogram(), NewHistogram()
	var jitters []float64
	for _, w := range t.members() {
		w.addTo(&r)
		if w.latency != nil {
			latency.Merge(w.latency)
			waited.Merge(w.waited)
		}
		if w.late != nil {
			late.Merge(w.late)
		}
		if w.sequence != nil {
			jitters = append(jitters, w.sequence.Jitter()/1e9)
		}
	}
	if len(jitters) > 0 {
		r.Jitter = stats.Median(jitters)
	}
	r.Planned = t.planned()
	if t.config.Workload.Kind.UDP() {
		r.DatagramBytes = t.config.Workload.Size
		r.Facts = append(r.Facts, t.buffers()...)
		if len(jitters) > 0 {
			mode := "woken by each"
			if polls(t.config.Workload) {
				mode = fmt.Sprintf("polled every %d µs", pollEvery/1000)
			}
			r.Facts = append(r.Facts, result.Fact{Name: "udp.receive", Value: mode})
		}
	}
	r.Facts = append(r.Facts, result.Fact{Name: "offloads", Value: machine.Offloads(t.local())})
	r.Latency, r.Waited, r.Late = latency.Encode(), waited.Encode(), late.Encode()
	return r, nil
}

// local returns the source address of this side's packets; the zero Addr if there is no route.
func (t *team) local() netip.Addr {
	if t.config.Role == Server {
		return t.config.Addr.Addr()
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(t.config.Addr)) // sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
}

// planned returns how many operations this side's open loops scheduled in the window.
func (t *team) planned() (n float64) {
	for _, w := range t.members() {
		sends := w.flow.Work == workPackets && w.flow.Sender == w.role && w.spec.Rate > 0
		asks := w.flow.Work != workPackets && w.role == Client && w.spec.OpenLoop()
		if (sends || asks) && w.flow.Work != workStream {
			n += float64(w.pacer.In(w.timeline))
		}
	}
	return n
}

// addTo adds one worker's results to the report.
func (w *worker) addTo(r *Report) {
	r.Sent.add(w.sent.Tally())
	r.Received.add(w.received.Tally())
	r.Operations.add(w.operations.Tally())
	r.Answered += w.answered
	switch {
	case w.flow.Work == workPackets || w.spec.Kind.Stream():
		r.Steps = w.received.AddSteps(r.Steps)
	case w.flow.Work != workStream:
		r.Steps = w.operations.AddSteps(r.Steps)
	}
	if w.flow.Work == workStream && w.flow.Sender != w.role && !w.complete {
		r.ReceivedAll = false
	}
	r.Lost += w.lost
	r.Stale += w.stale
	r.Unfinished += w.unfinished
	r.Refused += w.refused
	r.Blocked += w.blocked
	r.Spin += float64(w.spun) / 1e9
	if s := w.sequence; s != nil {
		r.Arrived += s.Arrived
		r.Gaps += s.Gaps()
		r.Reordered += s.Reordered
		r.Duplicate += s.Duplicate
	}
	if text := w.failure.String(); text != "" && r.Failure == "" {
		r.Failure = fmt.Sprintf("flow %d (%s): %s", w.flow.Index, w.flow.Work, text)
	}
	r.Threads = append(r.Threads, w.thread)
}

// skbOverhead is the least that the kernel charges a receive buffer per datagram in addition to its payload, in bytes.
// Datagrams joined by UDP_GRO share it.
const skbOverhead = 512

// bufferCapacity returns how many datagrams the receive buffers of this side can hold.
func (t *team) bufferCapacity() (n float64) {
	each := float64(t.config.Workload.Size)
	if !t.config.Workload.Offload {
		each += skbOverhead
	}
	for _, w := range t.members() {
		if w.flow.Work != workPackets || w.flow.Sender == w.role {
			continue
		}
		if granted, err := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			n += float64(granted) / each
		}
	}
	return n
}

// buffers returns facts about the socket buffers that the kernel granted, in bytes.
func (t *team) buffers() []result.Fact {
	for _, w := range t.members() {
		in, err1 := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		out, err2 := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		if err1 == nil && err2 == nil {
			// The kernel doubles the requested size for its own bookkeeping.
			return []result.Fact{
				{Name: "udp.rcvbuf", Value: strconv.Itoa(in)}, {Name: "udp.sndbuf", Value: strconv.Itoa(out)}}
		}
	}
	return nil
}
