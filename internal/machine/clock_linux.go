package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime returns the time since this machine started. It continues while the machine sleeps, and cannot be set.
func Uptime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

// Asleep returns how long this machine has slept since it started: the boot-time clock minus the monotonic clock, which
// stops meanwhile.
func Asleep() time.Duration {
	// A thread that loses the CPU between the two readings gets too large a difference, so the smallest of several is
	// used.
	const pairs = 5
	least := Uptime()
	for range pairs {
		awake := clock(unix.CLOCK_MONOTONIC)
		least = min(least, Uptime()-awake)
	}
	return least
}

// clock reads one of the clocks that every kernel has.
func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
