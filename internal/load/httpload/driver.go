package httpload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// A lane carries one request at a time: a connection of HTTP/1.1, or a stream of a connection of HTTP/2.
type lane interface {
	// begin sends a request and returns without waiting for the response. When the request has an outcome, the lane calls
	// the driver's done, or lost if its connection is unusable.
	begin(scheduledRequest)
	// overdue gives up the request under way if it was sent before a time. Otherwise it returns when that request was
	// sent; 0: there is none.
	overdue(before int64) int64
	close()
}

// A driver carries out one run.
type driver struct {
	Config
	line   netload.Timeline
	pacer  netload.Pacer
	zero   time.Time // when the run began, by the monotonic clock
	shards []*shard

	mu          sync.Mutex
	free        []lane // idle lanes, used in turn so that all connections carry requests
	lanes       map[lane]bool
	due         uint64    // operations that are due so far
	begun       uint64    // those that were given to a lane
	opening     int       // connections being opened
	replacing   int       // replacements that openAnother has requested and replace has not finished
	nextAddress int       // selects the next address
	opened      int       // connections opened so far
	mostOpen    int       // largest number of connections that were open at once
	lastFailure time.Time // when a connection attempt failed last
	closed      bool

	inFlight      atomic.Int64 // requests that were taken and have no outcome yet
	noNewRequests atomic.Bool  // no new request begins
	waitedBefore  uint64       // operations before this one had to wait for a lane; used by the pacing thread only
	late          *netload.Histogram
	connectTimes  *netload.Histogram
	tlsTimes      *netload.Histogram
	planned       uint64
	cpu           [2]usage // at the beginning and the end of the window

	ended, failed, timedOut atomic.Uint64 // requests since the last check
	took                    atomic.Int64  // total duration of these requests, ns
	checked                 int64         // time of the last check, ns
	start                   time.Duration // mean duration of requests in the first second with any
	stopped                 string        // why the run ends early
}

func newDriver(c Config) *driver {
	d := &driver{
		Config: c, line: netload.NewTimeline(c.Warmup, c.Window), zero: time.Now(), lanes: map[lane]bool{},
		late: netload.NewHistogram(), connectTimes: netload.NewHistogram(), tlsTimes: netload.NewHistogram(),
	}
	if c.Rate > 0 {
		d.pacer = netload.NewPacer(c.Rate, 0, 1)
	}
	for range runtime.GOMAXPROCS(0) {
		d.shards = append(d.shards, newShard(len(c.Source.Names()), d.line))
	}
	return d
}

// now returns ns since the run began.
func (d *driver) now() int64 { return int64(time.Since(d.zero)) }

// connectFirst opens the initial connections. It fails only if none succeeds: later, a connection that cannot be opened
// is a failed request.
func (d *driver) connectFirst(ctx context.Context) error {
	errs := make(chan error, d.Connections)
	const atOnce = 64
	gate := make(chan struct{}, atOnce)
	for range d.Connections {
		gate <- struct{}{}
		go func() {
			errs <- d.connect(ctx, nil)
			<-gate
		}()
	}
	var failed error
	worked := false
	for range d.Connections {
		if err := <-errs; err != nil {
			failed = err
		} else {
			worked = true
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !worked {
		return fmt.Errorf("no connection to %v: %w", d.Server.Addresses, failed)
	}
	d.zero = time.Now()
	return nil
}

// connect opens a connection. It begins request o on it, unless o is nil, and gives its other lanes work.
func (d *driver) connect(ctx context.Context, o *scheduledRequest) error {
	d.mu.Lock()
	d.opening++
	turn := d.nextAddress
	d.nextAddress++
	d.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	made, took, err := d.open(limited, turn)
	d.mu.Lock()
	d.opening--
	if err != nil {
		d.lastFailure = time.Now()
		d.mu.Unlock()
		return err
	}
	if d.closed {
		d.mu.Unlock()
		made[0].close()
		return errors.New("the run is over")
	}
	d.opened++
	for _, l := range made {
		d.lanes[l] = true
	}
	d.mostOpen = max(d.mostOpen, (len(d.lanes)+len(made)-1)/len(made))
	d.connectTimes.Record(int64(took.connect))
	if d.Server.TLS != nil {
		d.tlsTimes.Record(int64(took.tls))
	}
	d.mu.Unlock()
	if o != nil {
		made[0].begin(*o)
		made = made[1:]
	}
	for _, l := range made {
		d.done(l)
	}
	return nil
}

// A scheduledRequest is an operation that has yet to be sent.
type scheduledRequest struct {
	n       uint64 // number of the operation, from 0
	planned int64  // scheduled time, ns since the run began
}

// open opens a connection and returns its lanes, at least one.
func (d *driver) open(ctx context.Context, turn int) ([]lane, opening, error) {
	conn, took, err := d.Server.dial(ctx, turn)
	if err != nil {
		return nil, took, err
	}
	if d.Server.HTTP2 {
		lanes, err := openHTTP2(d, conn)
		return lanes, took, err
	}
	return []lane{openLine(d, conn)}, took, nil
}

// done gives a lane that is free its next request, or puts it into free if none is due. In a closed loop the lane's
// client sends its next request, unless the run has not begun or its window has ended.
func (d *driver) done(l lane) {
	var now int64
	if d.Clients > 0 {
		now = d.now() // before mu is locked
	}
	d.mu.Lock()
	wanted := d.begun < d.due
	if d.Clients > 0 {
		wanted = d.due > 0 && now < d.line.End
	}
	if d.noNewRequests.Load() || !wanted {
		d.free = append(d.free, l)
		d.mu.Unlock()
		return
	}
	o := d.next(now)
	d.mu.Unlock()
	l.begin(o)
}

// next takes the next operation, which in a closed loop is scheduled for now. The caller holds mu.
func (d *driver) next(now int64) scheduledRequest {
	o := scheduledRequest{n: d.begun, planned: now}
	if d.Clients == 0 {
		o.planned = d.pacer.Planned(o.n)
	}
	d.begun++
	d.inFlight.Add(1)
	return o
}

// lost removes and closes a lane whose connection is unusable. It has the lane replaced if requests are waiting, in a
// closed loop always.
func (d *driver) lost(l lane) {
	d.mu.Lock()
	known := d.lanes[l]
	delete(d.lanes, l)
	if i := slices.Index(d.free, l); i >= 0 {
		d.free = slices.Delete(d.free, i, i+1)
	}
	if known && !d.closed && !d.noNewRequests.Load() && (d.Clients > 0 || d.begun < d.due) {
		d.openAnother()
	}
	d.mu.Unlock()
	l.close()
}

// openAnother opens a connection in the background. The caller holds mu. The connection is counted at once, because on
// a busy machine the next call may come long before the goroutine runs.
func (d *driver) openAnother() {
	d.replacing++
	go func() {
		d.replace()
		d.mu.Lock()
		d.replacing--
		d.mu.Unlock()
	}()
}

// retryPause limits how often a server that refuses connections is tried again.
const retryPause = 20 * time.Millisecond

// replace opens a connection in place of a lost one and retries until it succeeds. Each failed attempt counts as a
// failed request, because the connection would have carried one.
func (d *driver) replace() {
	for !d.noNewRequests.Load() {
		o := d.take()
		if o == nil && d.Clients == 0 {
			return // another connection has taken the request
		}
		began := d.now()
		err := d.connect(context.Background(), o)
		if err == nil {
			return
		}
		if o == nil {
			o = &scheduledRequest{planned: began}
			d.inFlight.Add(1)
		}
		d.fail(*o, err)
		time.Sleep(retryPause)
	}
}

// take returns the next operation that is due, nil if there is none. In a closed loop it returns one only if every
// request has a connection of its own, so that connecting is part of the request.
func (d *driver) take() *scheduledRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Clients > 0 && !d.Reconnect || d.Clients == 0 && d.begun == d.due {
		return nil
	}
	o := d.next(d.now())
	return &o
}

// fail records a request that could not be sent.
func (d *driver) fail(o scheduledRequest, err error) {
	now := d.now()
	d.record(0, outcome{kind: d.Source.Request(o.n).Kind,
		planned: o.planned, sent: now, end: now, failure: failureOf(err)})
	d.inFlight.Add(-1)
}

// record counts an outcome for the next check, and for the report if its request belongs to the window.
func (d *driver) record(lane int, o outcome) {
	d.ended.Add(1)
	d.took.Add(o.end - o.sent)
	switch {
	case o.failure == TimedOut:
		d.timedOut.Add(1)
	case o.status == 0, o.status == http.StatusTooManyRequests, o.status >= http.StatusInternalServerError:
		d.failed.Add(1)
	}
	if d.line.In(o.planned) {
		d.shards[lane%len(d.shards)].add(o)
	}
}

// dispatch gives the operations that are due to free lanes, and opens another connection if no lane is free.
func (d *driver) dispatch() {
	for {
		d.mu.Lock()
		if d.begun == d.due {
			d.mu.Unlock()
			return
		}
		if len(d.free) == 0 {
			if len(d.lanes)+max(d.opening, d.replacing) < d.Most && time.Since(d.lastFailure) > retryPause {
				d.openAnother()
			}
			d.waitedBefore = d.due
			d.mu.Unlock()
			return
		}
		l := d.free[0]
		d.free = d.free[1:]
		o := d.next(0)
		d.mu.Unlock()
		// Waiting for a lane is due to the server, not to the generator.
		if o.n >= d.waitedBefore && d.line.In(o.planned) {
			d.late.Record(d.now() - o.planned)
		}
		l.begin(o)
	}
}

// watchInterval is how often the driver checks for overdue requests and distress.
const watchInterval = 20 * time.Millisecond

// pace sends requests at scheduled times until the window ends.
func (d *driver) pace(ctx context.Context) {
	// This thread occupies one of the runtime's processors, so the other goroutines get one more.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer disableTimerSlack()()
	d.planned = d.pacer.In(d.line)
	next := int64(0)
	for ctx.Err() == nil {
		now := d.now()
		if now >= next {
			d.watch(now)
			next = now + int64(watchInterval)
		}
		if now >= d.line.End || d.stopped != "" {
			break
		}
		d.mu.Lock()
		n, wait := d.pacer.Due(now, d.due)
		d.due += n
		d.mu.Unlock()
		if n == 0 {
			d.sleep(time.Duration(min(wait, next-now, d.line.End-now)))
			continue
		}
		d.dispatch()
	}
	if d.stopped != "" {
		return
	}
	// The last turn of the loop may have missed operations that were scheduled just before the end.
	d.mu.Lock()
	d.due = max(d.due, d.pacer.Until(d.line.End))
	d.mu.Unlock()
	d.dispatch()
}

// runClosedLoop makes each client send its next request as soon as the last one is answered, until the window ends.
func (d *driver) runClosedLoop(ctx context.Context) {
	d.mu.Lock()
	d.due = 1 // from now on, done makes every free lane send a request
	waiting, missing := d.free, d.Clients-len(d.lanes)
	d.free = nil
	d.mu.Unlock()
	for _, l := range waiting {
		d.done(l)
	}
	for range missing {
		go d.replace()
	}
	for ctx.Err() == nil {
		now := d.now()
		d.watch(now)
		if now >= d.line.End || d.stopped != "" {
			return
		}
		time.Sleep(min(watchInterval, time.Duration(d.line.End-now)))
	}
}

// watch gives up the requests that are overdue at the time now, and reads the CPU time when the window begins and when
// it ends.
func (d *driver) watch(now int64) {
	for i, at := range []int64{d.line.Begin, d.line.End} {
		if now >= at && d.cpu[i].at == 0 {
			d.cpu[i] = usage{at: time.Duration(max(d.now(), 1)), cpu: cpuTime(), wake: wakeNow()}
		}
	}
	d.mu.Lock()
	lanes := make([]lane, 0, len(d.lanes))
	for l := range d.lanes {
		lanes = append(lanes, l)
	}
	d.mu.Unlock()
	oldest := now
	for _, l := range lanes {
		if sent := l.overdue(now - int64(d.Timeout)); sent > 0 {
			oldest = min(oldest, sent)
		}
	}
	d.checkDistress(now, oldest)
}

// checkDistress calls Distress once a second, and sets stopped to its reason if the run must end.
func (d *driver) checkDistress(now, oldest int64) {
	if d.Distress == nil || now-d.checked < int64(time.Second) || now >= d.line.End || d.stopped != "" {
		return
	}
	d.checked = now
	p := ServerHealth{Ended: d.ended.Swap(0), Failed: d.failed.Swap(0),
		TimedOut: d.timedOut.Swap(0), Oldest: time.Duration(now - oldest)}
	if took := d.took.Swap(0); p.Ended > 0 {
		p.Mean = time.Duration(took / int64(p.Ended))
	}
	if d.start == 0 {
		d.start = p.Mean
	}
	p.Start = d.start
	d.stopped = d.Distress(p)
}

// drain waits for the responses to requests under way, at most for the time-out of a request. Those left then count as
// timed out, and those for which no lane was free as unsent.
func (d *driver) drain(ctx context.Context) {
	end := d.now() + int64(d.Timeout)
	if d.Clients > 0 {
		d.noNewRequests.Store(true)
	}
	for ctx.Err() == nil && d.now() < end {
		d.mu.Lock()
		left := d.Rate > 0 && d.begun < d.due
		d.mu.Unlock()
		if !left && d.inFlight.Load() == 0 {
			break
		}
		if left {
			d.dispatch()
		}
		d.watch(d.now())
		time.Sleep(time.Millisecond)
	}
	d.noNewRequests.Store(true)
	d.watch(d.now() + int64(d.Timeout) + 1) // everything is overdue, and distress is not checked
	d.mu.Lock()
	from, to := d.begun, d.due
	d.begun = d.due
	d.mu.Unlock()
	if d.Rate > 0 {
		for n := from; n < to; n++ {
			d.record(0, outcome{kind: d.Source.Request(n).Kind, planned: d.pacer.Planned(n), end: d.now(), failure: Unsent})
		}
	}
}

// closeAll closes every connection.
func (d *driver) closeAll() {
	d.noNewRequests.Store(true)
	d.mu.Lock()
	d.closed = true
	lanes := d.lanes
	d.lanes = map[lane]bool{}
	d.mu.Unlock()
	for l := range lanes {
		l.close()
	}
}

// report merges the shards into a report.
func (d *driver) report() Report {
	names := d.Source.Names()
	sum := newShard(len(names), d.line)
	var steps []uint64
	for _, s := range d.shards {
		s.mu.Lock()
		sum.total.merge(s.total)
		for i := range s.kinds {
			sum.kinds[i].merge(s.kinds[i])
		}
		sum.service.Merge(s.service)
		sum.first.Merge(s.first)
		sum.retryAfter += s.retryAfter
		steps = s.meter.AddSteps(steps)
		s.mu.Unlock()
	}
	r := Report{
		Window: d.Window.Seconds(), Total: sum.total.tally(), Steps: steps, RetryAfter: sum.retryAfter,
		Service: sum.service.Encode(), FirstByte: sum.first.Encode(), Late: d.late.Encode(),
		CPU: (d.cpu[1].cpu - d.cpu[0].cpu).Seconds(), Elapsed: (d.cpu[1].at - d.cpu[0].at).Seconds(),
		Wake: d.cpu[1].wake.since(d.cpu[0].wake),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Connect, r.TLS = d.connectTimes.Encode(), d.tlsTimes.Encode()
	r.Connections, r.AtOnce = d.opened, d.mostOpen
	r.Planned, r.Stopped = d.planned, d.stopped
	if d.Clients > 0 {
		r.Planned = r.Total.OK + r.Total.Failed()
	}
	for i, name := range names {
		k := Kind{Name: name, Tally: sum.kinds[i].tally()}
		if len(names) == 1 {
			k.Tally = r.Total
		}
		r.Kinds = append(r.Kinds, k)
	}
	return r
}
