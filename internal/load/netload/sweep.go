package netload

import "time"

// A Trial is one step of a sweep: a rate was offered, so much was sent, so much of it arrived.
type Trial struct {
	Rate     float64 `json:"rate"`     // offered, datagrams per second; Unpaced for as fast as it goes
	Achieved float64 `json:"achieved"` // sent, datagrams per second
	Sent     uint64  `json:"sent"`
	Received uint64  `json:"received"`
}

// Loss is the fraction of what was sent that did not arrive.
func (t Trial) Loss() float64 {
	if t.Sent == 0 || t.Received >= t.Sent {
		return 0
	}
	return float64(t.Sent-t.Received) / float64(t.Sent)
}

// Unpaced is a rate above everything: the generator's own ceiling.
const Unpaced = 1e9

// A sweep finds the highest rate whose loss stays at or below a threshold, by bisection as in RFC 2544 section 26.1:
// an unpaced trial gives the ceiling, then every trial halves the interval between the highest rate that passed and
// the lowest that failed. It is a pure state machine: Next says what to try, Took takes the outcome.
type sweep struct {
	Threshold float64 // highest loss that passes, as a fraction
	Precision float64 // ends when the interval is below this fraction of its upper end
	MaxTrials int
	Held      float64 // datagrams that the receivers' buffers may hold

	passed, failed float64 // the highest rate that passed, and the lowest that failed; 0 as long as none did
	first          float64 // what arrived of the unpaced trial: the first guess
	trials         []Trial
}

// newSweep returns a sweep to 2 % of the rate in at most 12 trials, for receivers whose buffers hold so many datagrams.
func newSweep(threshold, held float64) *sweep {
	return &sweep{Threshold: threshold, Precision: 0.02, MaxTrials: 12, Held: held}
}

// The shortest and the longest trial, and how many times as long as the receivers' buffers take to fill it lasts.
const (
	leastTrial = 100 * time.Millisecond
	mostTrial  = 500 * time.Millisecond
	outlast    = 4
)

// Duration returns how long a trial at a rate sends: long enough that the buffers cannot hold what is too much.
func (s *sweep) Duration(rate float64) time.Duration {
	if rate >= Unpaced {
		return mostTrial // what will be sent is not known
	}
	seconds := min(outlast*s.Held/rate, mostTrial.Seconds())
	return max(leastTrial, time.Duration(seconds*float64(time.Second)))
}

// Next is the rate of the next trial; done says that there is none.
func (s *sweep) Next() (rate float64, done bool) {
	switch {
	case len(s.trials) == 0:
		return Unpaced, false
	case s.failed == 0: // even unpaced passed
		return 0, true
	case len(s.trials) >= s.MaxTrials || s.failed-s.passed <= s.Precision*s.failed:
		return 0, true
	case len(s.trials) == 1 && s.first > 0 && s.first < s.failed:
		return s.first, false
	default:
		return (s.passed + s.failed) / 2, false
	}
}

// Took takes the outcome of the trial that Next asked for. A rate counts as what was really sent, where
// that is less than what was asked for.
func (s *sweep) Took(t Trial) {
	rate := min(t.Rate, t.Achieved)
	if len(s.trials) == 0 && t.Sent > 0 {
		s.first = rate * float64(min(t.Received, t.Sent)) / float64(t.Sent)
	}
	s.trials = append(s.trials, t)
	if t.Sent > 0 && t.Loss() <= s.Threshold {
		s.passed = max(s.passed, rate)
		return
	}
	if s.failed == 0 || rate < s.failed {
		s.failed = max(rate, 1)
	}
	// The path is not quite the same from trial to trial; what failed now can't have passed before.
	s.passed = min(s.passed, s.failed)
}

// StepDown returns the rate of the next window after n windows lost more than the threshold, the last of them at rate,
// of which so many datagrams per second were received. Steps grow, from 2 % on.
func StepDown(rate, received float64, n int) float64 {
	return max(min(received, rate*(1-float64(int(1)<<n)/100)), 1)
}

// Fallback is a rate to measure at when none passed: half of the lowest that failed.
func (s *sweep) Fallback() float64 { return max(s.failed/2, 1) }
