package netload

import "math"

// A Pacer is the schedule of an open loop: operations at equal distances from the beginning of the run, whatever
// became of the ones before. It holds no state: time in, what is due and how long to wait out.
type Pacer struct {
	Rate   float64 // operations per second, above 0
	Offset int64   // of the first operation, ns; spreads the flows of a run over one interval
}

// NewPacer is the schedule of flow i of n flows that have rate operations per second together.
func NewPacer(rate float64, i, n int) Pacer {
	return Pacer{Rate: rate / float64(n), Offset: nanoseconds(float64(i) / rate)}
}

// Planned is when operation n, counted from 0, is due, in ns since the run began.
func (p Pacer) Planned(n uint64) int64 {
	return p.Offset + nanoseconds(float64(n)/p.Rate)
}

// nanoseconds are those of so many seconds, a century at most: no run waits for what is due later.
func nanoseconds(seconds float64) int64 { return int64(math.Min(seconds, 100*365*24*3600) * 1e9) }

// Due says how many operations are due at a time of which done were begun, and, if none is, how
// many ns remain until the next one.
func (p Pacer) Due(now int64, done uint64) (n uint64, wait int64) {
	if next := p.Planned(done); now < next {
		return 0, next - now
	}
	// The estimate may be one off either way; the plan decides.
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

// Until is how many operations are planned before a time.
func (p Pacer) Until(t int64) uint64 {
	if t <= p.Offset {
		return 0
	}
	n, _ := p.Due(t-1, 0)
	return n
}

// In is how many operations are planned in the window of a timeline.
func (p Pacer) In(t Timeline) uint64 { return p.Until(t.End) - p.Until(t.Begin) }
