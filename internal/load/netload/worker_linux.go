package netload

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A clock returns nanoseconds since the run began on this side. base is set once, before the workers start.
type clock struct{ base time.Time }

func (c *clock) now() int64 { return int64(time.Since(c.base)) }

// shared holds what all workers of one side have in common.
type shared struct {
	clock       clock
	timeline    Timeline
	stop        atomic.Bool   // stop now
	foreignSeen atomic.Bool   // a server of cycles has refused a foreign connection
	run         chan struct{} // closed when the run begins
	token       Token
	// payload is the data that all workers write; it is never modified.
	payload []byte
}

func newShared(c Config) *shared {
	w := c.Workload
	longest := max(w.Size, w.Request, w.Response, DefaultStreamSize)
	line := NewTimeline(w.Warmup, w.Duration)
	if c.searches() {
		line = NewTimeline(SearchTime, 0)
	}
	return &shared{timeline: line, run: make(chan struct{}), token: c.Token, payload: make([]byte, longest)}
}

// A worker is one thread of load: the client or server side of one flow. Its fields may be read once its loop has
// ended.
type worker struct {
	*shared
	flow flow
	role Role
	spec Spec
	fd   int
	cpu  int  // CPU to pin the thread to; -1: none
	spin bool // the worker has a CPU of its own, so it may spin before scheduled times

	sent, received, operations *Meter
	latency, waited, late      *Histogram // ns; of answered requests, of unanswered ones, of the pacer
	sequence                   *sequence
	pacer                      Pacer

	lost, stale, unfinished, refused, blocked uint64
	spun                                      int64       // ns
	answered                                  uint64      // by a server, over the whole run
	complete                                  bool        // the stream was read to its end
	closed                                    atomic.Bool // the socket is closed
	failure                                   failure

	cycle    *cycler
	handOver func(fd int, head []byte) // cycles only: takes a connection whose opening is late, and what was read
	packets  *packets
	echo     *echo

	thread   Thread
	seenCPUs unix.CPUSet // CPUs that the thread ran on
	nextNote int64       // time of the next call of noteCPU
}

// A failure is the first error of a hot loop. It is formatted after the loop.
type failure struct {
	call string
	err  syscall.Errno
	at   int64
}

func (f failure) String() string {
	if f.call == "" {
		return ""
	}
	why := "the connection was closed"
	if f.err != 0 {
		why = f.err.Error()
	}
	return fmt.Sprintf("%s: %s, %.3f s after the start", f.call, why, float64(f.at)/1e9)
}

// fail records the worker's first failure.
func (w *worker) fail(call string, e syscall.Errno) {
	if w.failure.call == "" && !retry(e) {
		w.failure = failure{call, e, w.clock.now()}
	}
}

// timeUp reports whether waiting is pointless: the worker must stop, or overtime has passed since the window's end.
func (w *worker) timeUp() bool {
	return w.stop.Load() || w.clock.now() > w.timeline.End+int64(overtime)
}

// newWorker returns a worker without its socket, and without the state that prepare makes.
func newWorker(s *shared, f flow, c Config) *worker {
	w := &worker{shared: s, flow: f, role: c.Role, spec: c.Workload, fd: -1, cpu: -1,
		sent: NewMeter(s.timeline), received: NewMeter(s.timeline), operations: NewMeter(s.timeline)}
	if len(c.CPUs) > 0 {
		w.cpu = c.CPUs[f.Index%len(c.CPUs)]
	}
	w.spin = len(flows(c.Workload)) <= max(len(c.CPUs), 1)
	if c.Role == Client && !c.Workload.Kind.Stream() {
		w.latency, w.waited = NewHistogram(), NewHistogram()
	}
	if c.Workload.Rate > 0 {
		w.late = NewHistogram()
	}
	return w
}

// runThread is the worker's goroutine: it locks and pins a thread, waits for the run to begin, works, and records what
// the thread used.
func (w *worker) runThread(ready func()) {
	runtime.LockOSThread() // never unlocked: the thread is pinned, so it ends with the goroutine
	w.thread = Thread{Work: string(w.flow.Work), Pinned: -1}
	if w.cpu >= 0 {
		var set unix.CPUSet
		set.Set(w.cpu)
		if err := unix.SchedSetaffinity(0, &set); err == nil {
			w.thread.Pinned = w.cpu
		}
	}
	// By default, timers may fire up to 50 µs late.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ready()
	<-w.run
	if w.flow.persistent() {
		unshareFileTable()
	}
	user, system := threadTimes()
	begin := time.Now()
	w.work()
	w.thread.Lifetime = time.Since(begin).Seconds()
	user2, system2 := threadTimes()
	w.thread.User, w.thread.System = user2-user, system2-system
	w.noteCPU()
	for cpu := range len(w.seenCPUs) * 64 {
		if w.seenCPUs.IsSet(cpu) {
			w.thread.CPUs = append(w.thread.CPUs, cpu)
		}
	}
}

// unshareFileTable gives the thread its own copy of the process's file table: for a table that threads share, the
// kernel takes a reference on the file in every system call. An empty close_range makes the copy, because container
// runtimes forbid unshare. Without close_range in the kernel, system calls are slower.
func unshareFileTable() {
	const none = math.MaxInt32
	_ = unix.CloseRange(none, none, unix.CLOSE_RANGE_UNSHARE)
}

// work runs the loop for the worker's work and side.
func (w *worker) work() {
	client := w.role == Client
	switch w.flow.Work {
	case workRequest:
		if client {
			w.requestLoop(w.exchangeTCP)
		} else {
			w.serveTCP()
		}
	case workDatagram:
		if client {
			w.requestLoop(w.exchangeUDP)
		} else {
			w.serveUDP()
		}
	case workCycle:
		if client {
			w.requestLoop(w.exchangeCycle)
		} else {
			w.serveCycles()
		}
	case workEcho:
		w.pings()
	case workStream:
		if w.flow.Sender == w.role {
			w.writeStream()
		} else {
			w.readStream()
		}
	case workNothing:
		if client {
			w.waitUntil(w.timeline.End, w.clock.now())
		} else {
			w.readAll(w.fd, make([]byte, 1)) // returns when the client closes the connection
		}
	case workPackets:
		if w.flow.Sender == w.role {
			w.sendPackets()
		} else {
			w.receivePackets()
		}
	}
}

// noteCPU records the CPU that the thread is on.
func (w *worker) noteCPU() {
	var cpu uint32
	_, _, e := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	if e == 0 {
		w.seenCPUs.Set(int(cpu))
	}
}

// tick calls noteCPU once per Step; loops call it once per operation.
func (w *worker) tick(now int64) {
	if now >= w.nextNote {
		w.nextNote = now + int64(Step)
		w.noteCPU()
	}
}

// spinMargin is how long before a scheduled time a worker with its own CPU stops sleeping and spins, in ns: about the
// time that a wake-up takes. The time spent spinning is subtracted from the run's cost.
const spinMargin = 30_000

// waitUntil waits for a time of the run's clock and returns the current time. It returns early if the worker must stop.
func (w *worker) waitUntil(planned, now int64) int64 {
	for now < planned && !w.stop.Load() {
		rest := planned - now
		switch {
		case !w.spin:
			sleep(min(rest, int64(Step)))
			now = w.clock.now()
		case rest > 2*spinMargin:
			sleep(min(rest-spinMargin, int64(Step)))
			now = w.clock.now()
		default:
			begin := now
			for now < planned {
				now = w.clock.now()
			}
			w.spun += now - begin
		}
	}
	return now
}

// threadTimes returns the CPU seconds of the calling thread; 0 if they are not available.
func threadTimes() (user, system float64) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0, 0
	}
	return seconds(u.Utime), seconds(u.Stime)
}

func seconds(tv unix.Timeval) float64 { return float64(tv.Sec) + float64(tv.Usec)/1e6 }
