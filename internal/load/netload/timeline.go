package netload

import "time"

// A Timeline divides a run into warm-up, window and the time after it. Times are nanoseconds since the run began on
// this side's clock.
type Timeline struct {
	Begin, End int64 // of the window
}

// NewTimeline returns the timeline of a run with this warm-up and window.
func NewTimeline(warmup, window time.Duration) Timeline {
	return Timeline{Begin: int64(warmup), End: int64(warmup + window)}
}

// Steps returns the number of steps in the window, counting an incomplete last one.
func (t Timeline) Steps() int {
	return int((t.End - t.Begin + int64(Step) - 1) / int64(Step))
}

// In reports whether at is in the window.
func (t Timeline) In(at int64) bool { return at >= t.Begin && at < t.End }

// A Meter counts events along a timeline. Only NewMeter allocates.
type Meter struct {
	Timeline
	warm, after uint64
	steps       []uint64
}

// NewMeter returns a meter with all counts 0.
func NewMeter(t Timeline) *Meter { return &Meter{Timeline: t, steps: make([]uint64, t.Steps())} }

// Add counts n at a time; times before the run began count as warm-up.
func (m *Meter) Add(at int64, n uint64) {
	if at >= m.End {
		m.after += n
		return
	}
	if at < m.Begin {
		m.warm += n
		return
	}
	m.steps[uint64(at-m.Begin)/uint64(Step)] += n
}

// Tally returns the sums of warm-up, window and the time after it.
func (m *Meter) Tally() Tally {
	t := Tally{Warm: m.warm, After: m.after}
	for _, n := range m.steps {
		t.Window += n
	}
	return t
}

// AddSteps adds the count of each step of the window to sum, which grows as needed, and returns it.
func (m *Meter) AddSteps(sum []uint64) []uint64 {
	for len(sum) < len(m.steps) {
		sum = append(sum, 0)
	}
	for i, n := range m.steps {
		sum[i] += n
	}
	return sum
}
