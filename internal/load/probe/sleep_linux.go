package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil blocks the calling thread until t. Go's timers may be a millisecond late, because the runtime's poller has
// that resolution.
func sleepUntil(t time.Time) {
	for {
		wait := time.Until(t)
		if wait <= 0 {
			return
		}
		rest := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&rest, nil) // a signal may end it early
	}
}

// raisePriority makes the calling thread run soon after it wakes, if permitted. It sets the highest priority, and the
// kernel's shortest time slice: since Linux 6.12 threads with shorter slices run first, and that needs no privilege.
func raisePriority() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Runtime: uint64(100 * time.Microsecond)}, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}
