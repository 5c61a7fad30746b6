package netload

import (
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// CheckMedian is an error that Is result.ErrNotSupported where the window of an open loop is too short for the median
// that the workload is judged by; it names a window that would do.
func CheckMedian(w workload.Spec) error {
	if !w.OpenLoop() || w.Metric() != metric.P50 {
		return nil
	}
	need := NeededSamples(0.5)
	due := NewPacer(w.Rate, 0, 1).In(NewTimeline(w.Warmup, w.Duration))
	if due >= uint64(need) {
		return nil
	}
	enough := time.Duration(math.Ceil(float64(need)/w.Rate)) * time.Second
	return result.NotSupported(fmt.Sprintf(
		"at %g per second %d operations are due in a window of %v, and a median takes %d: a window of %v has them",
		w.Rate, due, w.Duration, need, enough))
}
