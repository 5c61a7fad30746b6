package netload

import "math"

// A Pacer is the schedule of an open loop: operations at equal intervals from the beginning of the run, independent of
// the outcome of earlier ones. It has no state: Due maps a time to the operations that are due, and the time until the
// next.
type Pacer struct {
	Rate   float64 // operations per second, above 0
	Offset int64   // of the first operation, ns; spreads the flows of a run over one interval
}

// NewPacer returns the schedule of flow i of n flows that have rate operations per second together.
func NewPacer(rate float64, i, n int) Pacer {
	return Pacer{Rate: rate / float64(n), Offset: nanoseconds(float64(i) / rate)}
}

// Planned returns the scheduled time of operation n, counted from 0, in ns since the run began.
func (p Pacer) Planned(n uint64) int64 {
	return p.Offset + nanoseconds(float64(n)/p.Rate)
}

// nanoseconds converts seconds to ns, at most a century, so that the result does not overflow.
func nanoseconds(seconds float64) int64 { return int64(math.Min(seconds, 100*365*24*3600) * 1e9) }

// Due returns how many operations are due at a time after done were begun, and, if none is, the ns until the next.
func (p Pacer) Due(now int64, done uint64) (n uint64, wait int64) {
	if next := p.Planned(done); now < next {
		return 0, next - now
	}
	// Rounding may put the estimate off by one; Planned decides.
	total := uint64(float64(now-p.Offset)/1e9*p.Rate) + 1
	total = max(total, done+1)
	for total > done+1 && p.Planned(total-1) > now {
		total--
	}
	for p.Planned(total) <= now {
		total++
	}
	return total - done, 0
}

// Until returns how many operations are scheduled before t.
func (p Pacer) Until(t int64) uint64 {
	if t <= p.Offset {
		return 0
	}
	n, _ := p.Due(t-1, 0)
	return n
}

// In returns how many operations are scheduled in the window of a timeline.
func (p Pacer) In(t Timeline) uint64 { return p.Until(t.End) - p.Until(t.Begin) }
