package computeload

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// since returns the nanoseconds since a time.
func since(began time.Time) int64 { return int64(time.Since(began)) }

// record records a latency, if latencies are recorded.
func record(latencies *netload.Histogram, ns int64) {
	if latencies != nil {
		latencies.Record(ns)
	}
}

// A syscallLoop asks for the process ID of the parent, which the kernel looks up each time.
type syscallLoop struct {
	parent uintptr
	wrong  bool
}

func startSyscall(place) (loop, error) { return &syscallLoop{parent: uintptr(os.Getppid())}, nil }

func (s *syscallLoop) run(n int, _ *netload.Histogram) {
	got := s.parent
	for range n {
		got, _, _ = syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	s.wrong = s.wrong || got != s.parent
}

func (s *syscallLoop) check() error {
	if s.wrong {
		return errors.New("the kernel named another parent")
	}
	return nil
}

// A partner is the second thread of a loop. It is locked and pinned, and ends when its loop is closed.
type partner struct {
	ended chan struct{}
	err   error // once it has ended
}

// startPartner starts a thread on a CPU, which runs work until that returns.
func startPartner(cpu int, work func() error) (*partner, error) {
	p := &partner{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.ended)
		runtime.LockOSThread() // never unlocked: the thread is pinned, so it ends with the goroutine
		err := pin(cpu)
		started <- err
		if err == nil {
			p.err = work()
		}
	}()
	return p, <-started
}

// A switchLoop sends a byte through a pipe to a thread on the same CPU, which sends it back through another one. Calls
// bypass Go's scheduler.
type switchLoop struct {
	there, back [2]int // read and write ends
	partner     *partner
	count       byte
	err         error
}

func startSwitch(p place) (loop, error) {
	s := &switchLoop{}
	if err := errors.Join(unix.Pipe2(s.there[:], unix.O_CLOEXEC), unix.Pipe2(s.back[:], unix.O_CLOEXEC)); err != nil {
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	var err error
	s.partner, err = startPartner(p.cpus[0], s.respond)
	return s, err
}

// respond sends back each byte plus one until the pipe is closed.
func (s *switchLoop) respond() error {
	var b [1]byte
	for {
		if n, err := transfer(unix.SYS_READ, s.there[0], &b); n == 0 || err != nil {
			return err
		}
		b[0]++
		if _, err := transfer(unix.SYS_WRITE, s.back[1], &b); err != nil {
			return err
		}
	}
}

// transfer reads or writes one byte. It returns 0 at the end of the pipe.
func transfer(call uintptr, fd int, b *[1]byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(b)), 1)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, fmt.Errorf("pipe: %w", errno)
		}
	}
}

func (s *switchLoop) run(n int, latencies *netload.Histogram) {
	var b [1]byte
	for range n {
		if s.err != nil {
			return
		}
		s.count++
		b[0] = s.count
		began := time.Now()
		_, err := transfer(unix.SYS_WRITE, s.there[1], &b)
		if err == nil {
			_, err = transfer(unix.SYS_READ, s.back[0], &b)
		}
		record(latencies, since(began)/2)
		if s.err = err; err == nil && b[0] != s.count+1 {
			s.err = errors.New("another byte came back")
		}
	}
}

func (s *switchLoop) check() error { return s.err }

func (s *switchLoop) close() {
	unix.Close(s.there[1])
	<-s.partner.ended
	unix.Close(s.there[0])
	unix.Close(s.back[0])
	unix.Close(s.back[1])
}

// A wakeLoop wakes a thread on another CPU, which sleeps until then, and sleeps until it is woken by that thread.
type wakeLoop struct {
	there, back atomic.Uint32 // how often each side was woken
	ends        atomic.Bool
	partner     *partner
	count       uint32
	err         error
}

func startWake(p place) (loop, error) {
	w := &wakeLoop{}
	var err error
	w.partner, err = startPartner(p.cpus[1], w.respond)
	return w, err
}

// respond wakes the other side each time it is woken.
func (w *wakeLoop) respond() error {
	for count := uint32(0); ; {
		if err := await(&w.there, count); err != nil || w.ends.Load() {
			return err
		}
		count++
		if err := wake(&w.back); err != nil {
			return err
		}
	}
}

// Operations of futex(2), for threads of one process.
const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// await sleeps until a word is no longer count.
func await(word *atomic.Uint32, count uint32) error {
	for word.Load() == count {
		_, _, errno := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, uintptr(count),
			0, 0, 0)
		if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
			return fmt.Errorf("wait: %w", errno)
		}
	}
	return nil
}

// wake increments a word and wakes the thread that sleeps until then.
func wake(word *atomic.Uint32) error {
	word.Add(1)
	_, _, errno := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("wake: %w", errno)
	}
	return nil
}

func (w *wakeLoop) run(n int, latencies *netload.Histogram) {
	for range n {
		if w.err != nil {
			return
		}
		began := time.Now()
		if w.err = wake(&w.there); w.err == nil {
			w.err = await(&w.back, w.count)
		}
		record(latencies, since(began)/2)
		w.count++
	}
}

func (w *wakeLoop) check() error {
	if w.err == nil && (w.there.Load() != w.count || w.back.Load() != w.count) {
		return fmt.Errorf("%d wakes, of which %d were sent and %d answered", w.count, w.there.Load(), w.back.Load())
	}
	return w.err
}

func (w *wakeLoop) close() {
	w.ends.Store(true)
	_ = wake(&w.there) // fails only for an address that is not mapped
	<-w.partner.ended
}

// nap is how long a timerLoop sleeps.
const nap = 100 * time.Microsecond

// A timerLoop sleeps, and measures how much longer it slept than it asked for.
type timerLoop struct{ err error }

func startTimer(place) (loop, error) {
	// The kernel may end sleeps later, by 50 µs by default, to save energy. 1 ns is the smallest slack.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("set the slack of timers: %w", err)
	}
	return &timerLoop{}, nil
}

func (t *timerLoop) run(n int, latencies *netload.Histogram) {
	for range n {
		wanted := unix.NsecToTimespec(int64(nap))
		began := time.Now()
		_, _, errno := syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&wanted)), 0, 0)
		late := since(began) - int64(nap)
		switch {
		case errno == unix.EINTR: // by a signal of Go's runtime
		case errno != 0:
			t.err = fmt.Errorf("nanosleep: %w", errno)
		case late < 0:
			t.err = fmt.Errorf("a sleep of %v ended %d ns too early", nap, -late)
		default:
			record(latencies, late)
		}
	}
}

func (t *timerLoop) check() error { return t.err }

// A processLoop starts a program that ends at once, on the same CPU.
type processLoop struct {
	args []string
	err  error
}

func startProcess(p place) (loop, error) {
	if len(p.program) == 0 {
		return nil, fmt.Errorf("%w: no program that ends at once", errConfig)
	}
	return &processLoop{args: p.program}, nil
}

func (p *processLoop) run(n int, latencies *netload.Histogram) {
	for range n {
		if p.err != nil {
			return
		}
		began := time.Now()
		p.err = p.once()
		record(latencies, since(began))
	}
}

// once starts a process and waits until it has ended.
func (p *processLoop) once() error {
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	pid, err := syscall.ForkExec(p.args[0], p.args, attr)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.args[0], err)
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for %s: %w", p.args[0], err)
		case !status.Exited() || status.ExitStatus() != 0:
			return fmt.Errorf("%s ended with status %#x", p.args, uint32(status))
		}
		return nil
	}
}

func (p *processLoop) check() error { return p.err }

// An openLoop opens and closes a file that is always there.
type openLoop struct {
	path []byte // with a zero at its end
	fd   uintptr
	err  error
}

func startOpen(place) (loop, error) {
	program, err := os.Executable()
	return &openLoop{path: append([]byte(program), 0)}, err
}

func (o *openLoop) run(n int, latencies *netload.Histogram) {
	here := unix.AT_FDCWD
	for range n {
		began := time.Now()
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(&o.path[0])),
			unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			_, _, errno = syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		record(latencies, since(began))
		if errno != 0 && errno != unix.EINTR && o.err == nil {
			o.err = fmt.Errorf("open or close a file: %w", errno)
		}
		o.fd = fd
	}
}

func (o *openLoop) check() error {
	if o.err == nil && o.fd < 3 {
		return fmt.Errorf("a file was opened as descriptor %d", o.fd)
	}
	return o.err
}

// A swapLoop increments a word that all threads share, by compare-and-swap.
type swapLoop struct {
	word *atomic.Uint64
	done uint64
	lost bool
}

func startSwap(p place) (loop, error) { return &swapLoop{word: p.word}, nil }

func (s *swapLoop) run(n int, _ *netload.Histogram) {
	before := s.word.Load()
	for range n {
		for {
			if v := s.word.Load(); s.word.CompareAndSwap(v, v+1) {
				break
			}
		}
	}
	s.done += uint64(n)
	s.lost = s.lost || s.word.Load()-before < uint64(n)
}

// check compares the word with this thread's part of it; other threads may still be working.
func (s *swapLoop) check() error {
	if got := s.word.Load(); s.lost || got < s.done {
		return fmt.Errorf("a word that was incremented %d times is %d", s.done, got)
	}
	return nil
}
