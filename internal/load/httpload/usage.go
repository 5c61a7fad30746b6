package httpload

import (
	"math"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// A usage holds the CPU time of this process, and its waits for CPUs, up to the time at.
type usage struct {
	at, cpu time.Duration
	wake    wake
}

// cpuTime returns the CPU time of this process; 0 if it is not available.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wakeMetric is how long goroutines were runnable without a processor, since the process began.
const wakeMetric = "/sched/latencies:seconds"

// A wake holds the values of [wakeMetric] at a time. If the generator lacks CPU time, the goroutines that read
// responses wait there, and without this metric the wait would pass for the server's time.
type wake struct {
	counts []uint64
	bounds []float64 // seconds, one more than counts
}

// wakeNow reads the metric; the result is empty if the runtime does not have it.
func wakeNow() wake {
	s := []metrics.Sample{{Name: wakeMetric}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return wake{}
	}
	h := s[0].Value.Float64Histogram()
	return wake{h.Counts, h.Buckets}
}

// since returns the median wait since another reading in seconds, as the lower bound of its bucket; 0 if it is unknown.
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
			return math.Max(w.bounds[i], 0) // the first bucket begins at minus infinity
		}
	}
	return 0
}
