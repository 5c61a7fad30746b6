package httpload

import (
	"fmt"
	"time"
)

// A ServerHealth summarizes how a server did in the last second.
type ServerHealth struct {
	Ended    uint64        // requests with an outcome
	Failed   uint64        // those with status 429 or 5xx, or without a response for another reason than a time-out
	TimedOut uint64        // those without a response in time; not in Failed
	Oldest   time.Duration // longest wait of a request without an outcome
	Mean     time.Duration // mean time from sending to the outcome
	Start    time.Duration // Mean of the first second in which requests ended
}

// A server is in distress beyond these limits. The limits tolerate the load of a published run with 1300 clients, which
// is not distress: from its first second on the mean latency is some seconds, and single requests take more than ten.
const (
	distressFailed = 0.5              // share of failures among the requests that end in a second
	distressEnded  = 20               // fewest requests for which that share counts
	distressOldest = 30 * time.Second // longest wait of a request
	distressSlower = 20               // ratio of the mean latency to that at the start
	distressSlow   = 5 * time.Second  // smallest mean latency for which that ratio counts
)

// Distress returns why a server is in distress, or "" if it is not.
func Distress(p ServerHealth) string {
	failed := p.Failed + p.TimedOut
	switch {
	case p.Ended >= distressEnded && float64(failed) > distressFailed*float64(p.Ended):
		return fmt.Sprintf("%d of %d requests in a second failed (status 429 or 5xx, or no response): "+
			"the server is in distress", failed, p.Ended)
	case p.Oldest > distressOldest:
		return fmt.Sprintf("a request has waited %.0f s for its response: the server is in distress", p.Oldest.Seconds())
	case p.Mean > distressSlow && p.Start > 0 && p.Mean > distressSlower*p.Start:
		return fmt.Sprintf("requests took %.3g s in a second and %.3g s at the start: the server is in distress",
			p.Mean.Seconds(), p.Start.Seconds())
	}
	return ""
}

// withoutTimeouts returns distress without regard to timed-out requests, for trials whose time-out is shorter than the
// run's.
func withoutTimeouts(distress func(ServerHealth) string) func(ServerHealth) string {
	if distress == nil {
		return nil
	}
	return func(p ServerHealth) string {
		p.TimedOut = 0
		return distress(p)
	}
}
