//go:build !linux

package probe

import "time"

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }

func raisePriority() {}
