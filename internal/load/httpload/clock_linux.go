package httpload

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestSleep bounds how long the thread sleeps at once. The runtime does not know that the thread sleeps, so it gives
// the thread's processor to no other goroutine, and the garbage collector, which stops all threads, waits for the sleep
// to end.
const longestSleep = 500 * time.Microsecond

// sleep blocks the calling thread for at most d; it may return early. The runtime's own timers may be a millisecond
// late on an idle machine, and a thread that blocks in the runtime has to wait for a processor afterwards.
func sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(min(d, longestSleep)))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// disableTimerSlack makes the kernel wake the calling thread on time; by default it may be up to 50 µs late to save
// power. The returned function restores the previous setting.
func disableTimerSlack() func() {
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) != nil {
		return func() {} // wake-ups stay late; the report has the lateness
	}
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0) }
}
