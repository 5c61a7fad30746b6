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

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A message is one line of the control connection.
type message struct {
	Op string `json:"op"`
	// Of a trial: datagrams per second over all flows of a direction.
	Rate float64 `json:"rate,omitempty"`
	// Of a trial: how long it sends, in seconds.
	Seconds float64 `json:"seconds,omitempty"`
	// Datagrams that this side's receive buffers may hold.
	Holds float64 `json:"holds,omitempty"`
	// Datagrams of this side since the run began.
	Sent     uint64 `json:"sent,omitempty"`
	Received uint64 `json:"received,omitempty"`
}

// The operations of the control connection, in the order in which they come. Each is answered with the
// same operation.
const (
	opWelcome = "welcome" // server only: the token is right
	opGo      = "go"      // all flows are open: the run begins now
	opTrial   = "trial"   // send at a rate for a time
	opCount   = "count"   // say what was sent and received so far
	opEnd     = "end"     // all was sent: drain, and report
)

// A link is the control connection.
type link struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func newLink(conn net.Conn) *link {
	// A message is short; a peer that sends something endless is cut off.
	return &link{conn: conn, in: json.NewDecoder(io.LimitReader(conn, 1<<20)), out: json.NewEncoder(conn)}
}

func (l *link) say(m message) error {
	if err := l.out.Encode(m); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	return nil
}

func (l *link) hear() (message, error) {
	var m message
	if err := l.in.Decode(&m); err != nil {
		return m, fmt.Errorf("control connection: %w", err)
	}
	return m, nil
}

// ask says m and hears the answer to it.
func (l *link) ask(m message) (message, error) {
	if err := l.say(m); err != nil {
		return m, err
	}
	answer, err := l.hear()
	if err == nil && answer.Op != m.Op {
		err = fmt.Errorf("control connection: %q was answered with %q", m.Op, answer.Op)
	}
	return answer, err
}

// A team is all workers of one side.
type team struct {
	*shared
	config    Config
	plan      []flow
	mu        sync.Mutex
	workers   []*worker      // guarded by mu, while flows are opened
	orders    sync.Once      // closes the senders' orders
	running   sync.WaitGroup // senders, askers and stream readers: they end by themselves
	waiting   sync.WaitGroup // those that end when they are shut down
	looks     chan lookResult
	alarms    []*time.Timer    // of the guard
	sampler   *profile.Sampler // nil where there is none, of which unsampled is the reason
	unsampled string
}

type lookResult struct {
	before, after look
	err           error
}

func newTeam(c Config) *team {
	t := &team{shared: newShared(c), config: c, plan: flows(c.Workload), looks: make(chan lookResult, 1)}
	if c.Role == Server && c.Workload.Kind == network.Ping {
		t.plan = nil // its kernel answers
	}
	return t
}

// prepareSamples opens the sampler, if one is wanted, before the clock starts.
func (t *team) prepareSamples() {
	if !t.config.Profile {
		return
	}
	var err error
	if t.sampler, err = profile.Open(); err != nil {
		t.unsampled = err.Error()
	}
}

// hire makes the worker of a flow and starts its thread, which waits for the run to begin.
func (t *team) hire(w *worker, ready func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers = append(t.workers, w)
	group := &t.waiting
	if w.endsItself() {
		group = &t.running
	}
	group.Go(func() { w.life(ready) })
}

// members are the workers so far.
func (t *team) members() []*worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.workers)
}

// endsItself says whether the worker's loop ends with the window or with its peer's, without being shut down.
func (w *worker) endsItself() bool {
	if w.flow.Work == workStream {
		return true
	}
	if w.flow.Work == workPackets {
		return w.flow.Sender == w.role
	}
	return w.role == Client
}

// prepare gives a worker what its work needs beyond a socket.
func (t *team) prepare(w *worker) error {
	spec := w.spec
	switch w.flow.Work {
	case workStream:
		return limitRate(w.fd, spec)
	case workPackets:
		sender := w.flow.Sender == w.role
		w.packets = newPackets(spec.Size, spec.Offload, sender)
		if !sender {
			w.sequence = newSequence(w.line)
		}
		if spec.Offload {
			if err := setOffload(w.fd, spec.Size, sender); err != nil {
				return err
			}
		}
		if !sender && polls(spec) {
			if err := setTimestamps(w.fd); err != nil {
				return err
			}
		}
		w.packets.controls = !sender && (spec.Offload || polls(spec))
		w.pacer = t.pacer(w.flow, max(t.config.offered(), 1))
	case workEcho:
		w.pacer = t.pacer(w.flow, spec.Rate)
		return setTimeouts(w.fd, spec.Timeout)
	case workRequest, workDatagram, workCycle:
		if w.flow.Work == workDatagram && w.role == Client {
			// The one wait that has a time-out: an answer may be lost.
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

// pacer is the schedule of a flow among those that share a rate with it.
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

// begin starts the run: the clock, the workers and the two looks at the kernel's counters.
func (t *team) begin(ctx context.Context) {
	t.clock.base = time.Now()
	close(t.run)
	t.guard()
	if t.config.searches() {
		return
	}
	go t.watch(ctx)
	t.order(t.config.offered(), 0, t.line.End)
	t.noMoreOrders()
}

// guard sees to it that nobody waits for ever: a request that is not answered some time after the window
// will not be, and by half of the grace time streams must have drained.
func (t *team) guard() {
	after := func(d time.Duration, wake func(*worker)) {
		t.alarms = append(t.alarms, time.AfterFunc(d, func() {
			for _, w := range t.members() {
				wake(w)
			}
		}))
	}
	after(time.Duration(t.line.End)+overtime, func(w *worker) {
		if w.role == Client && w.endsItself() && w.flow.Work != workStream {
			w.wake()
		}
	})
	after(time.Duration(t.line.End)+grace/2, (*worker).wake)
}

// wake makes a worker's blocked call return. A run that is over has no sockets left: then it does nothing.
func (w *worker) wake() {
	fd := w.fd
	if w.cycle != nil {
		fd = int(w.cycle.current.Load())
	}
	if fd >= 0 && !w.closed.Load() {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
}

// watch looks at the counters when the window begins and when it ends.
func (t *team) watch(ctx context.Context) {
	// Where we may, ahead of the workers: on a full machine a look would come late. It takes well under a
	// millisecond, twice a run. The thread ends with this goroutine.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	var r lookResult
	senders := t.tcpSenders()
	if r.before, r.err = t.lookAt(ctx, t.line.Begin, senders); r.err == nil {
		r.err = t.sample(func() (err error) {
			r.after, err = t.lookAt(ctx, t.line.End, senders)
			return err
		})
	}
	t.looks <- r
}

// sample samples the CPUs, if they are sampled, until what it calls returns.
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

// lookAt waits for a time of the run's clock and looks.
func (t *team) lookAt(ctx context.Context, at int64, senders []*worker) (look, error) {
	select {
	case <-time.After(time.Duration(at - t.clock.now())):
		return lookAround(senders, t.config.Count)
	case <-ctx.Done():
		return look{}, context.Cause(ctx)
	}
}

// tcpSenders are the workers whose sockets have something to tell in TCP_INFO.
func (t *team) tcpSenders() []*worker {
	return slices.DeleteFunc(t.members(), func(w *worker) bool {
		return w.flow.Work != workRequest && (w.flow.Work != workStream || w.flow.Sender != w.role)
	})
}

// senders are the workers that send datagrams.
func (t *team) senders() []*worker {
	return slices.DeleteFunc(t.members(), func(w *worker) bool {
		return w.flow.Work != workPackets || w.flow.Sender != w.role
	})
}

// order lets all senders of datagrams send at a rate, over all of them.
func (t *team) order(rate float64, begin, end int64) {
	list := t.senders()
	for _, w := range list {
		w.packets.orders <- segment{rate: rate / float64(len(list)), begin: begin, end: end}
	}
}

func (t *team) noMoreOrders() {
	t.orders.Do(func() {
		for _, w := range t.senders() {
			close(w.packets.orders)
		}
	})
}

// collect waits until this side's senders have carried out their orders.
func (t *team) collect() {
	for _, w := range t.senders() {
		<-w.packets.sent
	}
}

// settle waits until no more datagrams arrive, but no longer than drain.
func (t *team) settle() {
	last := t.counted()
	for range int(drain / settleStep) {
		time.Sleep(settleStep)
		now := t.counted()
		if now == last {
			return
		}
		last = now
	}
}

// settleStep without a datagram means that all have arrived: the question how many did has come the
// same way after them.
const settleStep = 3 * time.Millisecond

// counted is how many datagrams have arrived so far.
func (t *team) counted() (n uint64) {
	for _, w := range t.members() {
		if w.packets != nil {
			n += w.packets.count.Load()
		}
	}
	return n
}

// drained waits until as many datagrams have arrived as were sent, but no longer than drain.
func (t *team) drained(sent uint64) {
	for deadline := time.Now().Add(drain); t.counted() < sent && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// shutdown wakes every worker that waits for its peer.
func (t *team) shutdown() {
	for _, w := range t.members() {
		w.wake()
	}
}

// abort makes every worker give up.
func (t *team) abort() {
	t.stop.Store(true)
	t.shutdown()
}

// dismiss closes the sockets after all workers have ended.
func (t *team) dismiss() {
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

// report puts together what the workers saw, after all of them have ended.
func (t *team) report() (Report, error) {
	if t.config.searches() {
		return Report{Role: t.config.Role, Version: Version()}, nil
	}
	looks := <-t.looks
	if looks.err != nil {
		return Report{}, looks.err
	}
	r := Report{Role: t.config.Role, Version: Version(), ReceivedAll: true,
		Window: float64(t.line.End-t.line.Begin) / 1e9, Cost: cost(looks.before, looks.after), Unsampled: t.unsampled}
	if t.sampler != nil {
		r.Layers = t.sampler.Seconds()
	}
	r.count(looks.before, looks.after)
	senders := t.tcpSenders()
	r.TCP = tcpReport(looks.before, looks.after, senders)
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
			r.Facts = append(r.Facts, result.Fact{Name: "udp.receive", Value: receiving(t.config.Workload)})
		}
	}
	r.Facts = append(r.Facts, result.Fact{Name: "offloads", Value: preflight.Offloads(t.local())})
	r.Latency, r.Waited, r.Late = latency.Encode(), waited.Encode(), late.Encode()
	return r, nil
}

// local is the address that this side's packets come from.
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

// planned is how many operations this side's open loops planned in the window.
func (t *team) planned() (n float64) {
	for _, w := range t.members() {
		sends := w.flow.Work == workPackets && w.flow.Sender == w.role && w.spec.Rate > 0
		asks := w.flow.Work != workPackets && w.role == Client && w.spec.OpenLoop()
		if (sends || asks) && w.flow.Work != workStream {
			n += float64(w.pacer.In(w.line))
		}
	}
	return n
}

// addTo adds what one worker saw to the report.
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

// skbOverhead is the least that the kernel charges a receive buffer for a datagram besides its payload, in bytes. Those
// that it has joined (UDP_GRO) share it.
const skbOverhead = 512

// holds returns how many datagrams the buffers of this side's receivers may hold.
func (t *team) holds() (n float64) {
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

// buffers tells what the kernel granted of the socket buffers asked for.
func (t *team) buffers() []result.Fact {
	for _, w := range t.members() {
		in, err1 := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		out, err2 := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		if err1 == nil && err2 == nil {
			// The kernel doubles what it was asked for, for its own bookkeeping.
			return []result.Fact{
				{Name: "udp.rcvbuf", Value: strconv.Itoa(in)}, {Name: "udp.sndbuf", Value: strconv.Itoa(out)}}
		}
	}
	return nil
}
