//go:build !linux

package machine

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Volume has the facts of what a directory of this machine is on; other systems than Linux are not asked.
func Volume(string) []result.Fact {
	return []result.Fact{{Name: "filesystem", Value: result.Unknown},
		{Name: "backing", Value: result.Unknown}, {Name: "device", Value: result.Unknown}}
}

// Shared is true: other systems than Linux are not asked whether only this machine uses a file system.
func Shared(string) bool { return true }

// Facts are those of every machine, unknown here.
func Facts() []result.Fact { return unknown }

// Throttled is 0: other systems than Linux are not asked.
func Throttled() int64 { return 0 }

// Uptime returns a time that goes on while the machine sleeps. Here that is the one of day, which may be set.
func Uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Asleep is 0: other systems than Linux are not asked.
func Asleep() time.Duration { return 0 }

var unknown = []result.Fact{{Name: "kernel", Value: result.Unknown}}
