package computeload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
)

// Run carries out a run. An error means that there is no report. It changes the settings of the Go runtime, which the
// owner of the process restores.
func Run(ctx context.Context, c Config) (Report, error) {
	r := Report{Version: netload.Version(), Huge: -1}
	if err := c.validate(); err != nil {
		return r, err
	}
	cpus, err := inspectCPUs()
	if err != nil {
		return r, err
	}
	chosen, reason := choose(cpus, c)
	if reason == "" {
		reason = lackingMemory(c, len(chosen))
	}
	if reason != "" {
		return Report{Unsupported: reason}, nil
	}
	of := loops[c.Loop]
	t := newTeam(c, of, chosen)
	tuneRuntime(2*len(chosen), of.collects)
	if err := t.run(ctx); err != nil {
		var lacking unsupported
		if errors.As(err, &lacking) {
			return Report{Unsupported: lacking.Error()}, nil
		}
		return r, err
	}
	t.report(&r)
	return r, nil
}

// unsupported is an error of a loop that this machine cannot carry out; its text is the reason.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// inspectCPUs returns the CPUs that this process may use.
func inspectCPUs() ([]machine.CPU, error) {
	numbers, err := machine.AllowedCPUs()
	var cpus []machine.CPU
	for _, n := range numbers {
		cpus = append(cpus, machine.InspectCPU(n))
	}
	return cpus, err
}

// tuneRuntime keeps the Go runtime from disturbing the threads: no garbage collection, and more processors than
// threads, which block theirs. If loops allocate memory, there are as many processors as threads, so that the collector
// takes its time from them.
func tuneRuntime(threads int, collects bool) {
	if collects {
		runtime.GOMAXPROCS(max(threads/2, 1))
		return
	}
	runtime.GOMAXPROCS(max(threads+4, runtime.GOMAXPROCS(0)))
	debug.SetGCPercent(-1)
}

// A team is all threads of a run.
type team struct {
	config  Config
	of      definition
	cpus    []machine.CPU
	workers []*worker
	word    atomic.Uint64
	stop    atomic.Bool

	base   time.Time     // times are since then
	alone  chan struct{} // closed when the first thread may begin
	all    chan struct{} // closed when all may
	ready  sync.WaitGroup
	ended  sync.WaitGroup
	before Reading
	after  Reading
}

// A worker is a thread of a team. Its fields may be read once its goroutine has ended.
type worker struct {
	*team
	cpus    []int
	loop    loop
	batch   int    // operations
	left    uint64 // operations outside of the windows
	aside   int64  // time of the loop that does not count, ns
	huge    float64
	window  *window
	solo    *window // of the first thread alone; nil: there is none
	latency *netload.Histogram
	err     error
}

func newTeam(c Config, of definition, cpus []machine.CPU) *team {
	t := &team{config: c, of: of, cpus: cpus, alone: make(chan struct{}), all: make(chan struct{})}
	each := 1
	if of.pairs {
		each = 2
	}
	for group := range slices.Chunk(cpus, each) {
		w := &worker{team: t, batch: 1, huge: -1, latency: netload.NewHistogram()}
		for _, cpu := range group {
			w.cpus = append(w.cpus, cpu.Number)
		}
		t.workers = append(t.workers, w)
	}
	return t
}

// run prepares all threads, lets the first one work alone if that is wanted, and then all of them.
func (t *team) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { t.stop.Store(true) })
	defer stop()
	t.ready.Add(len(t.workers))
	for _, w := range t.workers {
		t.ended.Go(w.thread)
	}
	t.ready.Wait()
	if err := t.failure(); err != nil {
		t.stop.Store(true)
		close(t.alone)
		close(t.all)
		t.ended.Wait()
		return err
	}
	t.base = time.Now()
	warmup, length, solo := int64(max(t.config.Warmup, minWarmup)), int64(t.config.Window), int64(0)
	if t.config.Alone > 0 && len(t.workers) > 1 {
		solo = warmup + int64(t.config.Alone)
		t.workers[0].solo = newWindow(warmup, solo, t.of.counts)
	}
	begin := solo + warmup
	for _, w := range t.workers {
		w.window = newWindow(begin, begin+length, t.of.counts)
	}
	close(t.alone)
	t.sleep(ctx, solo)
	close(t.all)
	t.sleep(ctx, begin)
	var used []int
	for _, cpu := range t.cpus {
		used = append(used, cpu.Number)
	}
	var beforeErr, afterErr error
	t.before, beforeErr = readCPUs(used)
	t.sleep(ctx, begin+length)
	t.after, afterErr = readCPUs(used)
	t.ended.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(beforeErr, afterErr)
}

// failure returns the error of the first thread that has one.
func (t *team) failure() error {
	for _, w := range t.workers {
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// sleep waits until a time since the start of the run, or until ctx ends.
func (t *team) sleep(ctx context.Context, until int64) {
	select {
	case <-time.After(time.Duration(until) - time.Since(t.base)):
	case <-ctx.Done():
	}
}

// ReadCPUs returns what the CPUs have done that this process may use.
func ReadCPUs() (Reading, error) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		return Reading{}, err
	}
	return readCPUs(cpus)
}

func readCPUs(cpus []int) (r Reading, err error) {
	for _, cpu := range cpus {
		r.CPUs = append(r.CPUs, CPUState{Number: cpu, Frequency: machine.Frequency(cpu)})
	}
	r.Throttled = machine.Throttled()
	stat, err := machine.ReadCPUStat()
	for i, cpu := range cpus {
		r.CPUs[i].Times = stat[cpu]
	}
	return r, err
}

// thread is the goroutine of a worker: it locks and pins a thread, starts the loop, and works.
func (w *worker) thread() {
	runtime.LockOSThread() // never unlocked: the thread is pinned, so it ends with the goroutine
	w.err = w.begin()
	w.ready.Done()
	<-w.alone
	if w.err != nil {
		return
	}
	if held, is := w.loop.(closer); is {
		defer held.close()
	}
	if w.stop.Load() { // before the windows are there, if another thread failed
		return
	}
	if w.solo != nil {
		w.work(w.solo, nil)
	}
	<-w.all
	w.work(w.window, w.latency)
	if w.err == nil && !w.stop.Load() {
		w.err = w.loop.check()
	}
}

// begin pins the thread and starts its loop.
func (w *worker) begin() error {
	if err := pin(w.cpus[0]); err != nil {
		return err
	}
	var err error
	w.loop, err = w.of.start(place{
		cpus: w.cpus, set: w.config.Set, pages: w.config.Pages, seed: w.config.Seed + uint64(w.cpus[0]),
		program: w.config.Program, word: &w.word, aside: &w.aside,
		huge: func(share float64) { w.huge = share },
	})
	return err
}

// pin pins the calling thread to a CPU.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin a thread to CPU %d: %w", cpu, err)
	}
	return nil
}

// work repeats batches of the loop until a window has ended.
func (w *worker) work(in *window, latencies *netload.Histogram) {
	now := func() int64 { return since(w.base) }
	var used unix.Rusage
	counting := false
	for from := now(); from < in.end && !w.stop.Load(); {
		record := latencies
		if from < in.begin {
			record = nil
		} else if !counting {
			counting = true
			w.usage(&used)
		}
		before := w.aside
		w.loop.run(w.batch, record)
		to, aside := now(), w.aside-before
		in.add(w.batch, from, to, aside)
		if from < in.begin {
			w.left += uint64(w.batch)
			w.batch = nextBatch(w.batch, to-from-aside)
		}
		from = to
	}
	var after unix.Rusage
	w.usage(&after)
	if counting {
		in.thread.CPUTime = seconds(after.Utime) - seconds(used.Utime) + seconds(after.Stime) - seconds(used.Stime)
		in.thread.Voluntary, in.thread.Involuntary = after.Nvcsw-used.Nvcsw, after.Nivcsw-used.Nivcsw
	}
	in.thread.CPU = w.cpus[0]
}

// usage reads what the calling thread has used.
func (w *worker) usage(u *unix.Rusage) {
	if err := unix.Getrusage(unix.RUSAGE_THREAD, u); err != nil && w.err == nil {
		w.err = fmt.Errorf("read the CPU time of a thread: %w", err)
	}
}

func seconds(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }

// report fills in the results.
func (t *team) report(r *Report) {
	latency := netload.NewHistogram()
	var windows []*window
	for _, w := range t.workers {
		r.Threads = append(r.Threads, w.window.done())
		windows = append(windows, w.window)
		latency.Merge(w.latency)
		r.Left += w.left
		if w.huge >= 0 && (r.Huge < 0 || w.huge < r.Huge) {
			r.Huge = w.huge
		}
		if w.solo != nil {
			alone := w.solo.done()
			r.Alone = &alone
		}
		if w.err != nil && r.Wrong == "" {
			r.Wrong = w.err.Error()
		}
	}
	r.Steps, r.Latency = sum(windows), latency.Encode()
	for i, cpu := range t.cpus {
		r.CPUs = append(r.CPUs, UsedCPU{CPU: cpu, Before: t.before.CPUs[i].Frequency, After: t.after.CPUs[i].Frequency})
	}
	r.Machine, r.Throttled = t.after.Since(t.before), t.after.Throttled-t.before.Throttled
}
