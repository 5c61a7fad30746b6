package httpload

import (
	"fmt"
	"time"
)

// A Pulse is how a server fared in the second before.
type Pulse struct {
	Ended    uint64        // requests, with and without an answer
	Failed   uint64        // of them, by status 429 or 5xx, or without an answer in the time that they had
	TimedOut uint64        // of them, without an answer when that time was over; not in Failed
	Oldest   time.Duration // that the longest of those without an outcome has waited
	Mean     time.Duration // from sending to the outcome
	Start    time.Duration // the same in the first second in which requests ended
}

// Beyond these a server is in distress. A published run at 1300 clients has means of some seconds from its first second
// on, and requests of more than ten; that is what was asked for, and not distress.
const (
	distressFailed = 0.5              // share of the requests that end within a second
	distressEnded  = 20               // of at least so many
	distressOldest = 30 * time.Second // that a request waits
	distressSlower = 20               // times the mean latency of the start
	distressSlow   = 5 * time.Second  // and at least this
)

// Distress says why a server has had enough, "" if it has not.
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

// impatient leaves out timeouts, where they are shorter than those of the run to end a trial soon.
func impatient(distress func(Pulse) string) func(Pulse) string {
	if distress == nil {
		return nil
	}
	return func(p Pulse) string {
		p.TimedOut = 0
		return distress(p)
	}
}
