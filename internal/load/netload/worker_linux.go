package netload

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"golang.org/x/sys/unix"
)

// A clock is nanoseconds since the run began on this side. It is set once, before the workers go.
type clock struct{ base time.Time }

func (c *clock) now() int64 { return int64(time.Since(c.base)) }

// A shared is what all workers of one side have in common.
type shared struct {
	clock clock
	line  Timeline
	stop  atomic.Bool   // give up now
	wary  atomic.Bool   // somebody connected to a server of cycles who is not of this run
	run   chan struct{} // closed when the run begins
	token Token
	// payload is what all workers write from; nobody writes to it.
	payload []byte
}

func newShared(c Config) *shared {
	w := c.Workload
	longest := max(w.Size, w.Request, w.Response, network.DefaultStreamSize)
	line := NewTimeline(w.Warmup, w.Duration)
	if c.searches() {
		line = NewTimeline(network.SearchTime, 0)
	}
	return &shared{line: line, run: make(chan struct{}), token: c.Token, payload: make([]byte, longest)}
}

// A worker is one thread of load: one flow's client or server side. After its loop has ended its
// fields are read by the goroutine that waited for it.
type worker struct {
	*shared
	flow flow
	role Role
	spec network.Spec
	fd   int
	cpu  int  // to be pinned to, -1: none
	spin bool // has a CPU of its own, so that it may spin for the last microseconds

	sent, received, operations *Meter
	latency, waited, late      *Histogram // of requests: answered, and not; of the generator itself
	sequence                   *sequence
	pacer                      Pacer

	lost, stale, unfinished, refused, blocked uint64
	spun                                      int64
	answered                                  uint64      // by a server, over the whole run
	complete                                  bool        // a stream was read to its end
	closed                                    atomic.Bool // the socket
	failure                                   failure

	cycle    *cycler
	handOver func(fd int, said []byte) // by a server of cycles: who does not open at once, and what was read
	packets  *packets
	echo     *echo

	thread Thread
	seen   unix.CPUSet // where it has run
	look   int64       // when to look next
}

// A failure is the first thing that went wrong in a hot loop; made into text after it.
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

func (w *worker) fail(call string, e syscall.Errno) {
	if w.failure.call == "" && !retry(e) {
		w.failure = failure{call, e, w.clock.now()}
	}
}

// over says that it makes no sense to go on waiting: told to stop, or the window has ended some time ago.
func (w *worker) over() bool {
	return w.stop.Load() || w.clock.now() > w.line.End+int64(overtime)
}

// newWorker prepares everything that a hot loop needs.
func newWorker(s *shared, f flow, c Config) *worker {
	w := &worker{shared: s, flow: f, role: c.Role, spec: c.Workload, fd: -1, cpu: -1,
		sent: NewMeter(s.line), received: NewMeter(s.line), operations: NewMeter(s.line)}
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

// life is what a worker's goroutine does from beginning to end: it takes a thread, waits for the
// run to begin, works, and accounts for the thread.
func (w *worker) life(ready func()) {
	runtime.LockOSThread() // never unlocked: the thread is pinned, so it ends with the goroutine
	w.thread = Thread{Work: string(w.flow.Work), Pinned: -1}
	if w.cpu >= 0 {
		var set unix.CPUSet
		set.Set(w.cpu)
		if err := unix.SchedSetaffinity(0, &set); err == nil {
			w.thread.Pinned = w.cpu
		}
	}
	// Timers of this thread fire when asked, not up to 50 µs later.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ready()
	<-w.run
	if w.flow.persistent() {
		ownFiles()
	}
	user, system := threadTimes()
	begin := time.Now()
	w.work()
	w.thread.Lifetime = time.Since(begin).Seconds()
	user2, system2 := threadTimes()
	w.thread.User, w.thread.System = user2-user, system2-system
	w.where()
	for cpu := range len(w.seen) * 64 {
		if w.seen.IsSet(cpu) {
			w.thread.CPUs = append(w.thread.CPUs, cpu)
		}
	}
}

// ownFiles gives the thread a table of files of its own, a copy of the process's: the kernel counts a reference for any
// system call on a file of a table that threads share, which a program with one thread is spared. It is close_range of
// nothing that makes the copy, since runtimes of containers refuse unshare. Where the kernel has none, it is slower.
func ownFiles() {
	const none = math.MaxInt32
	_ = unix.CloseRange(none, none, unix.CLOSE_RANGE_UNSHARE)
}

// work runs the loop of the worker's kind and side.
func (w *worker) work() {
	client := w.role == Client
	switch w.flow.Work {
	case workRequest:
		if client {
			w.request(w.exchangeTCP)
		} else {
			w.answerTCP()
		}
	case workDatagram:
		if client {
			w.request(w.exchangeUDP)
		} else {
			w.answerUDP()
		}
	case workCycle:
		if client {
			w.request(w.exchangeCycle)
		} else {
			w.answerCycles()
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
			w.until(w.line.End, w.clock.now())
		} else {
			w.readAll(w.fd, make([]byte, 1)) // there is nothing to read until the client has closed
		}
	case workPackets:
		if w.flow.Sender == w.role {
			w.sendPackets()
		} else {
			w.receivePackets()
		}
	}
}

// where notes the CPU that the thread is on.
func (w *worker) where() {
	var cpu uint32
	_, _, e := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	if e == 0 {
		w.seen.Set(int(cpu))
	}
}

// tick is called in every turn of a loop and looks around every tenth of a second.
func (w *worker) tick(now int64) {
	if now >= w.look {
		w.look = now + int64(Step)
		w.where()
	}
}

// spinMargin is how long before a planned time a worker with a CPU of its own stops sleeping and
// spins: about what waking up takes. The time spun is accounted for and taken off the run's cost.
const spinMargin = 30_000

// until waits for a time of the run's clock and returns the time it is then.
func (w *worker) until(planned, now int64) int64 {
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

func threadTimes() (user, system float64) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0, 0
	}
	return seconds(u.Utime), seconds(u.Stime)
}

func seconds(tv unix.Timeval) float64 { return float64(tv.Sec) + float64(tv.Usec)/1e6 }
