package web

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep waits on the calling thread. The runtime's own timers may come a millisecond late where
// nothing else is to do.
func sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early, and the caller looks at the clock
}
