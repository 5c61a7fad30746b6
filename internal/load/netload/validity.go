package netload

import (
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// failedAtMost is the share of requests without success above which a run does not count: one limit for all
// workloads of requests, whatever their tool.
const failedAtMost = 0.01

// TooManyFailed says whether a run has more failures than may be.
func TooManyFailed(failed, all uint64) bool { return float64(failed) > failedAtMost*float64(all) }

// Failures says how many requests failed, and how many may.
func Failures(failed, all uint64) string {
	return fmt.Sprintf("%d of %d requests failed (%s; the limit is %s)", failed, all,
		unit.Format(float64(failed)/float64(max(all, 1)), unit.Ratio), unit.Format(failedAtMost, unit.Ratio))
}

// CheckMedian is an error that Is result.ErrNotSupported where the window of an open loop is too short for a median of
// what is due in it at a rate per second; it names a window that would do.
func CheckMedian(rate float64, warmup, window time.Duration) error {
	need := stats.MinSamples(0.5, 0.95)
	due := NewPacer(rate, 0, 1).In(NewTimeline(warmup, window))
	if due >= uint64(need) {
		return nil
	}
	enough := time.Duration(math.Ceil(float64(need)/rate)) * time.Second
	return result.NotSupported(fmt.Sprintf(
		"at %g per second %d operations are due in a window of %v, and a median takes %d: a window of %v has them",
		rate, due, window, need, enough))
}
