package netload

import (
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// maxFailedShare is the share of failed requests above which a run does not count: one limit for all workloads with
// requests, whatever their tool.
const maxFailedShare = 0.01

// TooManyFailed reports whether so many of a run's requests failed that it must not count.
func TooManyFailed(failed, all uint64) bool { return float64(failed) > maxFailedShare*float64(all) }

// Failures describes how many requests failed, and the limit.
func Failures(failed, all uint64) string {
	return fmt.Sprintf("%d of %d requests failed (%s; the limit is %s)", failed, all,
		unit.Format(float64(failed)/float64(max(all, 1)), unit.Ratio), unit.Format(maxFailedShare, unit.Ratio))
}

// CheckMedian returns an error that Is result.ErrNotSupported if the window of an open loop at rate operations per
// second is too short for a median; the error names a window that is long enough.
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
