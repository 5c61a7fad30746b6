package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime returns the time since this machine started. It goes on while the machine sleeps, and nobody sets it.
func Uptime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

// Asleep is how long this machine has slept since it was started: the clock that goes on meanwhile is ahead by that.
func Asleep() time.Duration {
	// Whoever loses the CPU between two readings sees too much: the least of some pairs is right.
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
