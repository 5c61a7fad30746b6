package httpload

import (
	"math"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// A usage is what this process has used of CPUs, and waited for them, at a time.
type usage struct {
	at, cpu time.Duration
	wake    wake
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wakeMetric is how long goroutines could have gone on and had no processor, since the process began.
const wakeMetric = "/sched/latencies:seconds"

// A wake is what [wakeMetric] says at a time. Who reads answers waits there when the generator has not CPU enough: the
// answers are there and nobody looks, which else would be taken for the server's time.
type wake struct {
	counts []uint64
	bounds []float64 // s, one more than counts
}

func wakeNow() wake {
	s := []metrics.Sample{{Name: wakeMetric}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return wake{} // a runtime that does not say
	}
	h := s[0].Value.Float64Histogram()
	return wake{h.Counts, h.Buckets}
}

// since is the median of what came after another one, in seconds, to the lower bound of its bucket; 0 if unknown.
func (w wake) since(before wake) float64 {
	if len(w.counts) != len(before.counts) {
		return 0
	}
	var all, seen uint64
	for i, n := range w.counts {
		all += n - before.counts[i]
	}
	for i, n := range w.counts {
		seen += n - before.counts[i]
		if seen > 0 && 2*seen >= all {
			return math.Max(w.bounds[i], 0) // the first one begins at minus infinity
		}
	}
	return 0
}
