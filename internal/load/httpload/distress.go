package httpload

import (
	"fmt"
	"time"
)

// A Pulse summarizes how a server did in the last second.
type Pulse struct {
	Ended    uint64        // requests with an outcome
	Failed   uint64        // those with status 429 or 5xx, or without an answer for another reason than a time-out
	TimedOut uint64        // those without an answer in time; not in Failed
	Oldest   time.Duration // longest wait of a request without an outcome
	Mean     time.Duration // mean time from sending to the outcome
	Start    time.Duration // Mean of the first second in which requests ended
}

// A server is in distress beyond these limits. They allow for a published run at 1300 clients, whose means are some
// seconds from its first second on, with requests of more than ten: there this is the requested load, not distress.
const (
	distressFailed = 0.5              // share of the requests that end in a second
	distressEnded  = 20               // fewest requests for that share
	distressOldest = 30 * time.Second // longest wait of a request
	distressSlower = 20               // ratio of the mean latency to that of the start
	distressSlow   = 5 * time.Second  // smallest mean latency for that ratio
)

// Distress returns why a server is in distress, "" if it is not.
func Distress(p Pulse) string {
	failed := p.Failed + p.TimedOut
	switch {
	case p.Ended >= distressEnded && float64(failed) > distressFailed*float64(p.Ended):
		return fmt.Sprintf("%d of %d requests in a second failed (status 429 or 5xx, or no answer): "+
			"the server is in distress", failed, p.Ended)
	case p.Oldest > distressOldest:
		return fmt.Sprintf("a request has waited %.0f s for its answer: the server is in distress", p.Oldest.Seconds())
	case p.Mean > distressSlow && p.Start > 0 && p.Mean > distressSlower*p.Start:
		return fmt.Sprintf("requests took %.3g s in a second and %.3g s at the start: the server is in distress",
			p.Mean.Seconds(), p.Start.Seconds())
	}
	return ""
}

// withoutTimeouts returns distress without regard to timed-out requests, for trials whose time-out is shorter than the
// run's.
func withoutTimeouts(distress func(Pulse) string) func(Pulse) string {
	if distress == nil {
		return nil
	}
	return func(p Pulse) string {
		p.TimedOut = 0
		return distress(p)
	}
}
