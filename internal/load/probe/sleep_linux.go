package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil blocks the calling thread: timers of Go's are up to a millisecond late, since they wait in whole ones.
func sleepUntil(t time.Time) {
	for {
		wait := time.Until(t)
		if wait <= 0 {
			return
		}
		rest := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&rest, nil) // a signal ends it early
	}
}

// hasten has the calling thread run soon after it wakes, where it may: above others, and with the shortest slice that
// the kernel knows (since Linux 6.12, for which nobody needs a right), which it runs before those with longer ones.
func hasten() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Runtime: uint64(100 * time.Microsecond)}, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}
