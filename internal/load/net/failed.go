package netload

import (
	"fmt"

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
