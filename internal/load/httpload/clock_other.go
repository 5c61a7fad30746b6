//go:build !linux

package httpload

import "time"

func sleep(d time.Duration) { time.Sleep(d) }

func disableTimerSlack() func() { return func() {} }
