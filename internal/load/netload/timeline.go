package netload

import "time"

// A Timeline cuts a run into warm-up, window and what comes after it. Times are nanoseconds since
// the run began on this side's clock.
type Timeline struct {
	Begin, End int64 // of the window
}

// NewTimeline is the timeline of a run with this warm-up and window.
func NewTimeline(warmup, window time.Duration) Timeline {
	return Timeline{Begin: int64(warmup), End: int64(warmup + window)}
}

// Steps is how many whole or begun steps the window has.
func (t Timeline) Steps() int {
	return int((t.End - t.Begin + int64(Step) - 1) / int64(Step))
}

// In says whether at is in the window.
func (t Timeline) In(at int64) bool { return at >= t.Begin && at < t.End }

// A Meter counts along a timeline. It allocates only when made.
type Meter struct {
	Timeline
	warm, after uint64
	steps       []uint64
}

// NewMeter returns a meter of zeros.
func NewMeter(t Timeline) *Meter { return &Meter{Timeline: t, steps: make([]uint64, t.Steps())} }

// Add counts n at a time; a time before the run began is warm-up.
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

// Tally is the meter's sum.
func (m *Meter) Tally() Tally {
	t := Tally{Warm: m.warm, After: m.after}
	for _, n := range m.steps {
		t.Window += n
	}
	return t
}

// AddSteps adds what was counted in each step of the window to sum, which grows as needed, and returns it.
func (m *Meter) AddSteps(sum []uint64) []uint64 {
	for len(sum) < len(m.steps) {
		sum = append(sum, 0)
	}
	for i, n := range m.steps {
		sum[i] += n
	}
	return sum
}
