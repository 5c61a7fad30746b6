package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Asleep is how long this machine has slept since it was started: the clock that goes on meanwhile is ahead by that.
func Asleep() time.Duration {
	var awake, whole unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &whole) != nil {
		return 0
	}
	return time.Duration(whole.Nano() - awake.Nano())
}
