package httpload

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestSleep bounds how long the thread sleeps at once. The runtime does not know that it sleeps, so that nobody
// takes its place meanwhile; what has to stop all threads, as the garbage collector does, waits for its end.
const longestSleep = 500 * time.Microsecond

// sleep waits on the calling thread. The runtime's own timers may come a millisecond late where nothing else is to do,
// and a thread that it knows to wait must wait for a place again afterwards. It may end early: look at the clock.
func sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(min(d, longestSleep)))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// punctual has the kernel wake the calling thread in time, which it otherwise does up to 50 µs late, to save power. The
// function that it returns takes that back.
func punctual() func() {
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) != nil {
		return func() {} // it is then as late as it is, which the run tells
	}
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0) }
}
